package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Decaying is an optimizer with weight decay.
type Decaying interface {
	Optimizer
	// WithDecay returns the optimizer with another weight decay. As in its fields, 0
	// stands for its default.
	WithDecay(decay float64) Optimizer
}

// noDecay moves no parameter that has a place among floats; 0 would stand for a default.
const noDecay = math.SmallestNonzeroFloat64

// spared are groups without weight decay, by those that they are made of.
type spared map[*Group]*Group

// of returns a group without its weight decay, or an error of kind [ir.ErrAttr] for an
// optimizer that cannot be told.
func (s spared) of(g *Group) (*Group, error) {
	if s[g] == nil {
		o, ok := g.Optimizer.(Decaying)
		if !ok {
			return nil, ir.Attrf("optimizer %T cannot be told to leave parameters without weight decay", g.Optimizer)
		}
		without := *g
		without.Optimizer = o.WithDecay(noDecay)
		s[g] = &without
	}
	return s[g], nil
}

// WithDecay returns the optimizer with another weight decay.
func (o SGD) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o Adam) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o AdamW) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o Adagrad) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o RMSProp) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o Adadelta) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o NAdam) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o RAdam) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o LAMB) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o Lion) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o Adafactor) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay, also of Rest.
func (o Muon) WithDecay(decay float64) Optimizer {
	o.WeightDecay, o.Rest.WeightDecay = decay, decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o ScheduleFree) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o SOAP) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o MARS) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}

// WithDecay returns the optimizer with another weight decay.
func (o Sophia) WithDecay(decay float64) Optimizer {
	o.WeightDecay = decay
	return o
}
