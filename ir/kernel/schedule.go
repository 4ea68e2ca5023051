package kernel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Schedule returns the kernels of a group, in order; equal groups share them, see
// [Cache]. It may add tensors to the program for what goes from one of them to
// the next. A compiler bug comes back
// as an error that names the group, or is found by [Check], which whoever prints
// or runs a kernel has to call.
func (p *Program) Schedule(g *Group, d Device) (launches []Launch, err error) {
	defer func() {
		if r := recover(); r != nil {
			launches, err = nil, format.Errorf("kernel: cannot schedule %s: %v", g.Name(), r)
		}
	}()
	if g.Kind == ControlKind {
		return nil, ir.Errorf(ir.ErrUnsupported, "a %s group has no kernel of its own", g.Kind)
	}
	c := canonOf(g, d)
	if known, ok := p.options.Cache.launches[string(c.text)]; ok {
		return c.recall(known), nil
	}
	launches = schedule(newEmitter(g.program, d), g)
	p.options.Cache.launches[string(c.text)] = c.remember(launches)
	return launches, nil
}

func schedule(e *emitter, g *Group) []Launch {
	switch g.Kind {
	case ReduceKind:
		return scheduleReduce(e, g)
	case ContractKind:
		return scheduleContract(e, g)
	case PrefixKind:
		return schedulePrefix(e, g)
	case AttendKind:
		return scheduleAttend(e, g)
	case ScatterKind:
		return scheduleScatter(g, e.device)
	case SortKind:
		return scheduleSort(g, e.p, e.device)
	}
	return scheduleMap(e, g)
}

// lowering returns the reduction that a member of a reduce group is.
func lowering(m *Member) *ir.ReduceLowering {
	switch l := m.Node.Def().Lower.(type) {
	case *ir.ReduceLowering:
		return l
	case *ir.ScatterLowering:
		return scatterOf(m.Node).asReduction()
	}
	return contractionOf(m.Node, scalar.NewSimplifier()).asReduction()
}

// finishReduction returns the results of a reduction from its running values.
func finishReduction(m *Member, at ir.Index, acc []scalar.Expr, load ir.Load) []scalar.Expr {
	if _, ok := m.Node.Def().Lower.(*ir.ScatterLowering); ok {
		return []scalar.Expr{scatterOf(m.Node).finish(at, acc, load)}
	}
	if f := lowering(m).Finish; f != nil {
		return f(m.Node, at, acc)
	}
	return acc
}
