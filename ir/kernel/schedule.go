package kernel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Schedule returns the kernels of a group, in order. It may add tensors to the
// program for what goes from one of them to the next. A compiler bug comes back
// as an error that names the group, or is found by [Check], which whoever prints
// or runs a kernel has to call.
func (p *Program) Schedule(g *Group, d Device) (launches []Launch, err error) {
	defer func() {
		if r := recover(); r != nil {
			launches, err = nil, format.Errorf("kernel: cannot schedule %s: %v", g.Name(), r)
		}
	}()
	e := newEmitter(g.program, d)
	switch g.Kind {
	case MapKind:
		launches = scheduleMap(e, g)
	case ReduceKind:
		launches = scheduleReduce(e, g)
	case ContractKind:
		launches = scheduleContract(e, g)
	case PrefixKind:
		launches = schedulePrefix(e, g)
	default:
		return nil, ir.Errorf(ir.ErrUnsupported, "a %s group has no kernel of its own", g.Kind)
	}
	return launches, nil
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
