package optim

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Group says how some parameters are updated: another rate for the last layer,
// or no weight decay for biases and the scales of norms.
type Group struct {
	// Match tells which parameters belong to the group, by name.
	Match func(name string) bool
	// Optimizer is their rule; nil for that of all others.
	Optimizer Optimizer
	// Rate is what the learning rate is multiplied by; 0 stands for 1.
	Rate float64

	mayBeEmpty bool // no error where no parameter matches
}

// Vectors returns the group of a loss's parameters of fewer than two axes, as biases and
// the scales of norms are, with an optimizer of their own. For weight decay that leaves
// them alone it is that of all others with [NoDecay].
func Vectors(loss *ir.Graph, opt Optimizer) Group {
	return Group{mayBeEmpty: true, Optimizer: opt, Match: func(name string) bool {
		p, ok := loss.Port(name)
		return ok && p.Value.Rank() < 2
	}}
}

const (
	averageSlot = "average"
	sumSlot     = "sum"
)

// completed returns the groups, with the optimiser where they have none of their
// own, and one of all other parameters. A group that matches none of the trained
// parameters is an error of kind [ir.ErrName]: it is most likely misspelt.
func completed(groups []Group, opt Optimizer, trained []string) ([]*Group, error) {
	var out []*Group
	for i, g := range groups {
		if g.Match == nil {
			return nil, ir.Attrf("group %d of the step has no Match", i)
		}
		if !g.mayBeEmpty && !slices.ContainsFunc(trained, g.Match) {
			return nil, ir.Errorf(ir.ErrName, "group %d of the step matches no trained parameter: there are %v", i, trained)
		}
		if g.Optimizer == nil {
			g.Optimizer = opt
		}
		out = append(out, &g)
	}
	return append(out, &Group{Match: func(string) bool { return true }, Optimizer: opt}), nil
}

// groupOf returns the first of the groups that matches a name.
func groupOf(groups []*Group, name string) *Group {
	at := slices.IndexFunc(groups, func(g *Group) bool { return g.Match(name) })
	return groups[at]
}

// due returns whether this step, the next-th, makes an update, and how many there
// are then. The first is not there where every step makes one.
func (s *step) due(b *ir.Builder, next ir.Value) (due, updates ir.Value) {
	n := s.options.Accumulate
	if n == 0 || n == 1 {
		return ir.Value{}, next
	}
	inDomain(b, "accumulate", n > 0)
	each := ops.ConstLike(b, next, float64(max(n, 1)))
	due = ops.Eq(b, ops.Rem(b, next, each), ops.ZerosLike(b, next))
	return due, ops.Div(b, ops.Add(b, next, ops.ConstLike(b, next, float64(max(n, 1)-1))), each)
}

// accumulate adds the gradients to those since the last update, which begin
// anew once they are due.
func (s *step) accumulate(b *ir.Builder, due ir.Value) {
	if !due.Valid() {
		return
	}
	for i := range s.params {
		p := &s.params[i]
		name := s.options.SlotState(sumSlot, p.name)
		sum := b.State(name, p.grad.DType(), p.grad.Shape()...)
		p.grad = ops.Add(b, sum, times(b, p.grad, 1/float64(s.options.Accumulate)))
		b.SetState(name, s.scaling.unlessSkipped(b, ops.Select(b, due, ops.ZerosLike(b, sum), p.grad), sum))
	}
}
