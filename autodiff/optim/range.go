package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// interval is the domain of a hyperparameter.
type interval struct {
	contains func(x float64) bool
	text     string // completes "must be …"
}

var (
	finiteRate  = interval{func(x float64) bool { return x >= 0 && x <= math.MaxFloat64 }, "finite and 0 or greater"}
	positive    = interval{func(x float64) bool { return x > 0 }, "positive"}
	negative    = interval{func(x float64) bool { return x < 0 }, "negative"}
	notNegative = interval{func(x float64) bool { return x >= 0 }, "0 or greater"}
	steps       = interval{func(x float64) bool { return x >= 0 && x < 1<<31 }, "0 or greater, less than 2³¹"}
	atLeastOne  = interval{func(x float64) bool { return x >= 1 }, "1 or greater"}
	moreThanOne = interval{func(x float64) bool { return x > 1 }, "greater than 1"}
	unit        = interval{func(x float64) bool { return x > 0 && x < 1 }, "between 0 and 1, both excluded"}
	belowOne    = interval{func(x float64) bool { return x >= 0 && x < 1 }, "0 or greater and less than 1"}
	atMostOne   = interval{func(x float64) bool { return x > 0 && x <= 1 }, "greater than 0 and at most 1"}
)

// hyper is a hyperparameter with its domain.
type hyper struct {
	name   string
	value  float64
	domain interval
}

// check records an error of kind [ir.ErrAttr] for the first hyperparameter outside its domain. owner
// is the optimizer, the schedule or the option that has them.
func check(b *ir.Builder, owner string, of ...hyper) {
	for _, h := range of {
		if !h.domain.contains(h.value) {
			b.Fail(ir.Attrf("%s: %s is %v; it must be %s", owner, h.name, h.value, h.domain.text))
			return
		}
	}
}
