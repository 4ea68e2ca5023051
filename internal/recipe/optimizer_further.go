//go:build !js

package recipe

import "github.com/rlx-go/rlx/autodiff/optim"

// OptimizerNames are the names of all optimisers, sorted.
var OptimizerNames = []string{
	"adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "adan", "ademamix", "amsgrad", "kron", "lamb", "lars", "lbfgs", "lion", "mars", "muon",
	"nadam", "prodigy", "qhadamw", "radam", "rmsprop", "schedule-free", "sgd", "soap", "sophia", "stiefel",
}

// further returns an optimizer that the page's compiler lacks, for its size, nil for another name.
func further(name string, adam optim.Adam, h Numbers) optim.Optimizer {
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
