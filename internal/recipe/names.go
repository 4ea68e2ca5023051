//go:build !js

package recipe

import "github.com/rlx-go/rlx/ir"

// OptimizerNames are the names of all optimisers, sorted.
var OptimizerNames = []string{
	"adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "adan", "ademamix", "amsgrad", "kron", "lamb", "lars", "lbfgs", "lion", "mars", "muon",
	"nadam", "prodigy", "qhadamw", "radam", "rmsprop", "schedule-free", "sgd", "soap", "sophia", "stiefel",
}

// known are the names of a kind, sorted.
var known = map[string][]string{
	"optimizer": OptimizerNames,
	"schedule":  {"constant", "cosine", "cosine-restarts", "exponential", "linear", "one-cycle", "polynomial", "steps"},
	"policy":    {"labels", "min-cut", "nothing", "ops", "products", "within"},
}

// unknown returns the error for a name that is not of a kind: it lists those that are.
func unknown(kind, name string) error {
	return ir.Errorf(ir.ErrName, "unknown %s %q: have %q", kind, name, known[kind])
}
