//go:build !js

package recipe

import "github.com/rlx-go/rlx/autodiff/optim"

// furtherNames are the names of the optimizers that the page's compiler lacks, for its size.
var furtherNames = []string{"kron", "lbfgs", "prodigy", "stiefel"}

// furtherOptimizer returns one of them, nil for another name.
func furtherOptimizer(name string, adam optim.Adam, h Numbers) optim.Optimizer {
	switch name {
	case "kron":
		return optim.Kron{Momentum: h["momentum"], Every: int(h["every"]), WeightDecay: adam.WeightDecay}
	case "lbfgs":
		return optim.LBFGS{Pairs: int(h["pairs"])}
	case "prodigy":
		return optim.Prodigy{Adam: adam}
	case "stiefel":
		return optim.Stiefel{Momentum: h["momentum"], Rest: optim.AdamW{WeightDecay: adam.WeightDecay}}
	}
	return nil
}
