package recipe

import "github.com/rlx-go/rlx/autodiff/optim"

func further(string, optim.Adam, Numbers) optim.Optimizer { return nil }
