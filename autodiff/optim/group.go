package optim

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Group gives some parameters their own optimizer or rate, for example no weight decay for biases
// and the scales of norms.
type Group struct {
	// Match reports whether the parameter of that name belongs to the group: see [Matching].
	Match func(name string) bool
	// Optimizer is the update rule of the group; nil means that of the other parameters.
	Optimizer Optimizer
	// Rate multiplies the learning rate, not negative; 0 means 1.
	Rate float64

	mayBeEmpty bool // it is no error if no parameter matches
}

// Matching returns the Match of a [Group] of the parameters that one of the patterns covers, as those
// of [Options.Frozen] do: "*/bias", "head", "block[0-3]".
func Matching(patterns ...string) func(name string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool { return Covers(pattern, name) })
	}
}

// BelowRank2 returns a group, with its own optimizer, of the parameters of rank 0 and 1 of a loss,
// such as biases and the scales of norms; of parameters of which loops use slices alone, as those of equal blocks do that are
// stacked, the rank of a slice counts. To exclude them from weight decay, give it the optimizer
// of the other parameters with WeightDecay set to [NoDecay].
func BelowRank2(loss *ir.Graph, opt Optimizer) Group {
	return Group{mayBeEmpty: true, Optimizer: opt, Match: func(name string) bool {
		p, ok := loss.Port(name)
		return ok && (p.Value.Rank() < 2 || p.Value.Rank() == 2 && isSliced(loss, p.Value))
	}}
}

// isSliced reports whether loops use one slice of a value in each step, and nothing else uses it.
func isSliced(g *ir.Graph, v ir.Value) (sliced bool) {
	for _, n := range g.Nodes() {
		for i, in := range n.Inputs() {
			if in == v {
				a, isScan := n.Attrs().(*ops.ScanAttrs)
				if sliced = isScan && i >= a.Consts+a.Carries; !sliced {
					return false
				}
			}
		}
	}
	return sliced
}

const (
	averageSlot = "average"
	sumSlot     = "sum"
)

// completeGroups returns the groups, with opt if they have no optimizer, and a final group of all other
// parameters. A group without a trained parameter is an error of kind [ir.ErrName], since it is probably misspelt or after
// a wider one.
func completeGroups(groups []Group, opt Optimizer, trained []string) ([]*Group, error) {
	var out []*Group
	for i, g := range groups {
		if g.Match == nil {
			return nil, ir.Attrf("group %d has no Match; it needs the names of its parameters", i)
		}
		if g.Optimizer == nil {
			g.Optimizer = opt
		}
		out = append(out, &g)
		if !g.mayBeEmpty && !slices.ContainsFunc(trained, func(name string) bool { return g.Match(name) && groupOf(out, name) == &g }) {
			return nil, ir.Errorf(ir.ErrName, "group %d matches no trained parameter that no earlier group does: have %v", i, trained)
		}
	}
	return append(out, &Group{Match: func(string) bool { return true }, Optimizer: opt}), nil
}

// groupOf returns the first group that matches a name.
func groupOf(groups []*Group, name string) *Group {
	at := slices.IndexFunc(groups, func(g *Group) bool { return g.Match(name) })
	return groups[at]
}

// due returns whether step number next makes an update, and the number of updates including it. due
// is an invalid Value if every step makes one.
func (s *stepBuilder) due(b *ir.Builder, next ir.Value) (due, updates ir.Value) {
	n := s.options.Accumulate
	if n == 0 || n == 1 {
		return ir.Value{}, next
	}
	check(b, "step", hyper{"Accumulate", float64(n), steps})
	each := ops.ConstLike(b, next, float64(max(n, 1)))
	due = ops.Eq(b, ops.Rem(b, next, each), ops.ZerosLike(b, next))
	return due, ops.Div(b, ops.Add(b, next, ops.ConstLike(b, next, float64(max(n, 1)-1))), each)
}

// accumulate adds the gradients to the sums since the last update, and resets the sums once an
// update is due.
func (s *stepBuilder) accumulate(b *ir.Builder, due ir.Value) {
	if !due.Valid() {
		return
	}
	for i := range s.params {
		p := &s.params[i]
		name := s.options.SlotState(sumSlot, p.name)
		sum := b.State(name, p.grad.DType(), p.grad.Shape()...)
		p.grad = ops.Add(b, sum, scale(b, p.grad, 1/float64(s.options.Accumulate)))
		b.SetState(name, s.scaling.unlessSkipped(b, ops.Select(b, due, ops.ZerosLike(b, sum), p.grad), sum))
	}
}
