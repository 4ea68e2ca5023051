package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// OpPad pads a value.
const OpPad ir.Op = "pad"

// PadAttrs hold for each axis the padding before, after, and between elements.
type PadAttrs struct {
	Low, High []ir.Dim
	Interior  []int
}

// Visit shows the attributes.
func (a *PadAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("low", &a.Low)
	v.Dims("high", &a.High)
	v.Ints("interior", &a.Interior)
}

func init() {
	define(&ir.Def{
		Op: OpPad, Doc: "x padded with a value before, after and between its elements along each axis (XLA's Pad).",
		Operands: []string{"x", "value"}, NewAttrs: func() ir.Attrs { return &PadAttrs{} },
		Constraints: numbered(
			"x and value have one element type, which is "+plain.String()+"; value has rank 0",
			"low, high and interior have an entry for each axis of x, none negative",
			"an axis of size n becomes low + n + (n − 1)·interior + high long, low + high for n = 0; a symbolic n with interior padding is taken not to be 0",
		),
		Infer:     inferPad,
		Eval:      evalResult(evalPad),
		JVP:       jvpPad,
		Transpose: transposeEach(transposePad),
		Batch:     batchPad,
		Lower:     &ir.MapLowering{Element: padElement},
	})
}

func inferPad(n *ir.Node) ([]ir.Type, error) {
	a, x, value := n.Attrs().(*PadAttrs), n.Input(0).Type(), n.Input(1).Type()
	if err := plain.check(x.DType); err != nil {
		return nil, err
	}
	if value.DType != x.DType {
		return nil, ir.DTypef("value is %s, not %s as x is", value.DType, x.DType)
	}
	if value.Shape.Rank() != 0 {
		return nil, ir.Shapef("value is of shape %s, not of rank 0", value.Shape)
	}
	rank := len(x.Shape)
	if len(a.Low) != rank || len(a.High) != rank || len(a.Interior) != rank {
		return nil, ir.Attrf("low, high and interior have %d, %d and %d entries, not one for each of %d axes", len(a.Low), len(a.High), len(a.Interior), rank)
	}
	shape := make(ir.Shape, rank)
	for i, d := range x.Shape {
		if !a.Low[i].Valid() || !a.High[i].Valid() || a.Interior[i] < 0 {
			return nil, ir.Attrf("low is %s, high %s and interior %d on axis %d: none may be negative", a.Low[i], a.High[i], a.Interior[i], i)
		}
		shape[i] = a.Low[i].Add(dilated(d, a.Interior[i]+1)).Add(a.High[i])
	}
	return []ir.Type{{DType: x.DType, Shape: shape}}, nil
}

func evalPad(n *ir.Node, in []*ir.Array, out *ir.Array) {
	for i := range out.Len() {
		copyElement(out, i, in[1], 0)
	}
	a := n.Attrs().(*PadAttrs)
	low := sizes(a.Low)
	to := make([]int, len(out.Dims))
	positions(in[0].Dims, func(i int, at []int) {
		for axis, p := range at {
			to[axis] = low[axis] + p*(a.Interior[axis]+1)
		}
		copyElement(out, offset(out.Dims, to), in[0], i)
	})
}

func jvpPad(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	return b.Add(OpPad, n.Attrs(), orZeros(b, t[0], in[0]), orZeros(b, t[1], in[1]))
}

// transposePad slices out the cotangent of x, or sums that of the padding.
func transposePad(b *ir.Builder, n *ir.Node, operand int, _ []ir.Value, ct ir.Value) ir.Value {
	a, x := n.Attrs().(*PadAttrs), n.Input(0).Shape()
	if operand == 0 {
		stride := make([]int, len(x))
		for i, between := range a.Interior {
			stride[i] = between + 1
		}
		return Slice(b, ct, a.Low, x, stride)
	}
	isPadding := PadDims(b, Zeros(b, ir.Bool, x...), Ones(b, ir.Bool), a.Low, a.High, a.Interior)
	return sumOver(b, Select(b, isPadding, ct, ZerosLike(b, ct)), counting(0, ct.Rank()))
}

// batchPad pads along all axes except the batch axis. If the value is batched, the padding
// differs between examples and is selected elementwise.
func batchPad(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	a := n.Attrs().(*PadAttrs)
	x := BatchAt(b, in[0], axes[0], 0, size)
	low, high := slices.Insert(slices.Clone(a.Low), 0, ir.N(0)), slices.Insert(slices.Clone(a.High), 0, ir.N(0))
	interior := slices.Insert(slices.Clone(a.Interior), 0, 0)
	if axes[1] < 0 {
		return []ir.Value{PadDims(b, x, in[1], low, high, interior)}, []int{0}
	}
	isPadding := PadDims(b, Zeros(b, ir.Bool, x.Shape()...), Ones(b, ir.Bool), low, high, interior)
	padded := PadDims(b, x, Zeros(b, x.DType()), low, high, interior)
	value := BroadcastInDim(b, in[1], padded.Shape(), []int{0})
	return []ir.Value{Select(b, isPadding, value, padded)}, []int{0}
}

func padElement(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
	a := n.Attrs().(*PadAttrs)
	dims, all := sizes(n.Input(0).Shape()), sizes(n.Types()[0].Shape)
	from := make(ir.Index, len(at))
	var inside scalar.Expr
	for i, low := range sizes(a.Low) {
		var valid scalar.Expr
		from[i], valid = strided(scalar.Sub(at[i], loop.Int(low)), a.Interior[i]+1, dims[i], -low, all[i]-1-low)
		inside = both(inside, valid)
	}
	if slices.Contains(dims, 0) {
		return load(1, nil)
	}
	if inside == nil {
		return load(0, from)
	}
	return scalar.Select(inside, load(0, from), load(1, nil))
}

// Pad returns x padded along each axis with value, of rank 0, before, after and between
// its elements. Negative low and high crop, after interior padding, at most the whole
// axis; nil interior means 0.
func Pad(b *ir.Builder, x, value ir.Value, low, high, interior []int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	if interior == nil {
		interior = repeatInt(0, x.Rank())
	}
	if len(low) != x.Rank() || len(high) != x.Rank() {
		b.Failf(OpPad, []ir.Value{x, value}, ir.Attrf("low and high have %d and %d entries, not one for each of %d axes", len(low), len(high), x.Rank()))
		return ir.Value{}
	}
	grow := [2]ir.Shape{make(ir.Shape, x.Rank()), make(ir.Shape, x.Rank())}
	cut := [2]ir.Shape{make(ir.Shape, x.Rank()), make(ir.Shape, x.Rank())}
	for side, by := range [2][]int{low, high} {
		for i, d := range by {
			grow[side][i], cut[side][i] = ir.N(max(d, 0)), ir.N(max(-d, 0))
		}
	}
	y := PadDims(b, x, value, grow[0], grow[1], interior)
	if b.Err() != nil || slices.Min(append([]int{0}, slices.Concat(low, high)...)) == 0 {
		return y
	}
	size := y.Shape().Clone()
	for i, d := range size {
		if size[i] = d.Sub(cut[0][i]).Sub(cut[1][i]); !size[i].Valid() {
			b.Failf(OpPad, []ir.Value{x, value}, ir.Shapef("axis %d, of size %s once padded, is cut by more than that", i, d))
			return ir.Value{}
		}
	}
	return Slice(b, y, cut[0], size, nil)
}

// PadDims is [Pad] with sizes that may be symbolic and are not negative.
func PadDims(b *ir.Builder, x, value ir.Value, low, high []ir.Dim, interior []int) ir.Value {
	return b.Add1(OpPad, &PadAttrs{slices.Clone(low), slices.Clone(high), slices.Clone(interior)}, x, value)
}
