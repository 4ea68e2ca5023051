package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Indices of extrema.
const (
	OpArgMax ir.Op = "argmax"
	OpArgMin ir.Op = "argmin"
)

// ArgAttrs hold the reduced axis and the element type of the result.
type ArgAttrs struct {
	Axis  int
	DType ir.DType
}

// Visit shows the attributes.
func (a *ArgAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.DType("dtype", &a.DType)
}

func (a *ArgAttrs) named() []int { return []int{a.Axis} }

func argAttrs(n *ir.Node) *ArgAttrs { return n.Attrs().(*ArgAttrs) }

func init() {
	defineArg(OpArgMax, "largest", -1, scalar.Gt)
	defineArg(OpArgMin, "smallest", 1, scalar.Lt)
}

// defineArg defines an arg-reduction by better; sign is that of the worst value.
func defineArg(op ir.Op, what string, sign int, better func(x, y scalar.Expr) scalar.Expr) {
	noGrad := "integer result"
	define(&ir.Def{
		Op: op, Operands: []string{"x"}, NewAttrs: func() ir.Attrs { return &ArgAttrs{} },
		Doc: "The index along an axis of the " + what + " element, the first one of several. NaN counts as the " + what + ".",
		Constraints: numbered(
			"the element type of x is "+reals.String()+", that of the result is "+integers.String(),
			"the axis is one of x, and its size is not 0; the result has the other axes",
		),
		Infer:   inferArg,
		Reduces: namedAxes,
		Eval:    evalResult(func(n *ir.Node, in []*ir.Array, out *ir.Array) { evalArg(n, in[0], out, sign) }),
		NoGrad:  noGrad,
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
			a, at := *argAttrs(n), axes[0]
			a.Axis = shifted([]int{a.Axis}, at)[0]
			if a.Axis < at {
				at--
			}
			return b.Add(n.Op(), &a, in[0]), []int{at}
		},
		Lower: argLowering(sign, better),
	})
}

func inferArg(n *ir.Node) ([]ir.Type, error) {
	a, x := argAttrs(n), n.Input(0)
	if err := reals.check(x.DType()); err != nil {
		return nil, err
	}
	if err := integers.checkAttr(a.DType); err != nil {
		return nil, err
	}
	if err := checkAxes([]int{a.Axis}, x.Rank()); err != nil {
		return nil, err
	}
	if x.Dim(a.Axis).Is(0) {
		return nil, ir.Shapef("axis %d of %s has no elements to choose from", a.Axis, x.Type())
	}
	return []ir.Type{{DType: a.DType, Shape: slices.Delete(x.Shape().Clone(), a.Axis, a.Axis+1)}}, nil
}

func evalArg(n *ir.Node, x, out *ir.Array, sign int) {
	axis := argAttrs(n).Axis
	positions(out.Dims, func(i int, pos []int) {
		from := slices.Insert(slices.Clone(pos), axis, 0)
		best := offset(x.Dims, from)
		for k := 1; k < x.Dims[axis]; k++ {
			from[axis] = k
			if at := offset(x.Dims, from); beats(x, at, best, sign) {
				best, out.I[i] = at, int64(k)
			}
		}
	})
}

// beats reports whether element i is better than element j, which precedes it.
func beats(x *ir.Array, i, j, sign int) bool {
	if x.F == nil {
		return compareInts(x.DType, x.I[i], x.I[j])*sign < 0
	}
	switch a, b := x.F[i], x.F[j]; {
	case math.IsNaN(b):
		return false
	case math.IsNaN(a):
		return true
	case sign < 0:
		return a > b
	default:
		return a < b
	}
}

// argLowering reduces pairs of value and index. Indices break ties, so the order of
// combination does not matter.
func argLowering(sign int, better func(x, y scalar.Expr) scalar.Expr) *ir.ReduceLowering {
	return &ir.ReduceLowering{
		Space: func(n *ir.Node) []int { return pick(sizes(n.Input(0).Shape()), []int{argAttrs(n).Axis}) },
		Accumulators: func(n *ir.Node) []ir.Accumulator {
			d, place := n.Input(0).DType(), argPlace(n)
			return []ir.Accumulator{{DType: d, Init: scalar.Extreme(d, sign)}, {DType: place, Init: scalar.Extreme(place, 1)}}
		},
		Element: func(n *ir.Node, at, r ir.Index, load ir.Load) []scalar.Expr {
			return []scalar.Expr{load(0, slices.Insert(slices.Clone(at), argAttrs(n).Axis, r[0])), scalar.Convert(r[0], argPlace(n))}
		},
		Combine: func(n *ir.Node, x, y []scalar.Expr) []scalar.Expr {
			first := scalar.Lt(x[1], y[1])
			wins := scalar.Or(better(x[0], y[0]), scalar.And(scalar.Eq(x[0], y[0]), first))
			if n.Input(0).DType().IsFloat() {
				nanX, nanY := scalar.IsNaN(x[0]), scalar.IsNaN(y[0])
				wins = scalar.Select(nanX, scalar.Or(scalar.Not(nanY), first), scalar.And(scalar.Not(nanY), wins))
			}
			return []scalar.Expr{scalar.Select(wins, x[0], y[0]), scalar.Select(wins, x[1], y[1])}
		},
		Finish: func(n *ir.Node, _ ir.Index, acc []scalar.Expr) []scalar.Expr {
			return []scalar.Expr{scalar.Convert(acc[1], argAttrs(n).DType)}
		},
	}
}

// argPlace returns the type of the indices in the reduction.
func argPlace(n *ir.Node) ir.DType {
	if size, _ := n.Input(0).Dim(argAttrs(n).Axis).Const(); size > loop.MaxElements {
		return ir.I64
	}
	return ir.I32
}

// ArgMax returns the index, i32, of the largest element of x along axis, which the result
// lacks: the first one of several, and the first NaN if there is one.
func ArgMax(b *ir.Builder, x ir.Value, axis int) ir.Value { return arg(b, OpArgMax, x, axis) }

// ArgMin returns the index, i32, of the smallest element of x along axis, which the result
// lacks: the first one of several, and the first NaN if there is one.
func ArgMin(b *ir.Builder, x ir.Value, axis int) ir.Value { return arg(b, OpArgMin, x, axis) }

func arg(b *ir.Builder, op ir.Op, x ir.Value, axis int) ir.Value {
	return b.Add1(op, &ArgAttrs{fromFront([]int{axis}, x.Rank())[0], ir.I32}, x)
}
