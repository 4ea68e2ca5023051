package padding

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rules are the rules of primitives of package ops that are not elementwise. They are here, not in
// the definitions, so that programs without open sizes do not link them.
var rules = map[ir.Op]func(p *ir.Padding) error{
	ops.OpDimSize:          dimSize,
	ops.OpIota:             positions,
	ops.OpRandomBits:       randomBits,
	ops.OpCheckIndex:       checkIndex,
	ops.OpReshape:          reshape,
	ops.OpTranspose:        transpose,
	ops.OpBroadcastInDim:   broadcast,
	ops.OpReverse:          reverse,
	ops.OpSlice:            slice,
	ops.OpPad:              pad,
	ops.OpConcatenate:      concatenate,
	ops.OpWindows:          windows,
	ops.OpOverlapAdd:       overlapAdd,
	ops.OpGather:           gather,
	ops.OpScatter:          scatter,
	ops.OpScatterAdd:       scatter,
	ops.OpScatterMul:       scatter,
	ops.OpScatterMin:       scatter,
	ops.OpScatterMax:       scatter,
	ops.OpReduceSum:        reduce(zeros),
	ops.OpReduceProd:       reduce(ones),
	ops.OpReduceMax:        reduce(lowest),
	ops.OpReduceMin:        reduce(highest),
	ops.OpArgMax:           arg(lowest),
	ops.OpArgMin:           arg(highest),
	ops.OpArgSort:          argSort,
	ops.OpCumSum:           cumulative(zeros),
	ops.OpCumProd:          cumulative(ones),
	ops.OpCumMax:           cumulative(lowest),
	ops.OpCumMin:           cumulative(highest),
	ops.OpCumLogSumExp:     cumulative(lowest),
	ops.OpLinearRecurrence: recurrence,
	ops.OpAssociativeScan:  associative,
	ops.OpDotGeneral:       dot,
	ops.OpConvGeneral:      conv,
}

// ruleOf returns the rule of a node, nil for one that follows from its definition.
func ruleOf(n *ir.Node) func(p *ir.Padding) error {
	if r := n.Def().Pad; r != nil {
		return r
	}
	return rules[n.Op()]
}

// neutral returns the value that padding must hold for a combination of elements of a type.
type neutral func(d ir.DType) scalar.Expr

func zeros(d ir.DType) scalar.Expr   { return scalar.Const(d, 0) }
func ones(d ir.DType) scalar.Expr    { return scalar.Const(d, 1) }
func lowest(d ir.DType) scalar.Expr  { return scalar.Extreme(d, -1) }
func highest(d ir.DType) scalar.Expr { return scalar.Extreme(d, 1) }

// refuse returns the error for ops that need true sizes.
func refuse(format string, args ...any) error { return ir.Errorf(ir.ErrUnsupported, format, args...) }

// elementwise is the rule of ops whose elements depend on those at the same position.
func elementwise(p *ir.Padding) error {
	out := make([]ir.Extent, len(p.Node.Types()[0].Shape))
	for i := range p.In {
		for axis, e := range p.In[i] {
			var err error
			if i == 0 {
				out[axis] = e
			} else if out[axis], err = p.Unify(out[axis], e); err != nil {
				return err
			}
		}
	}
	for range p.Node.Types() {
		p.Out = append(p.Out, out)
	}
	return nil
}

// checkIndex fills padding with an index that is inside.
func checkIndex(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.CheckIndexAttrs)
	fillAll(p, 0, zeros(p.Node.Input(0).DType()))
	p.NonNegative = []ir.Dim{a.Bound.Sub(ir.N(1))}
	if !p.Open(a.Bound) {
		return elementwise(p)
	}
	if d := p.Node.Input(0).DType(); d.Size() < 4 {
		return refuse("indices of type %s have an open bound", d)
	}
	p.Emit = func(e ir.PadEmitter, in []ir.Value) []ir.Value {
		b := e.Builder() // an index between the true size and that of the array is outside
		past := ops.Ge(b, in[0], ops.BroadcastTo(b, ops.Convert(b, e.Size(a.Bound), in[0].DType()), in[0].Shape()))
		return e.Copy(ops.Select(b, past, ops.ConstLike(b, in[0], float64(e.Bound(a.Bound))), in[0]))
	}
	return elementwise(p)
}

// fillAll fills all padding of an operand.
func fillAll(p *ir.Padding, operand int, value scalar.Expr) {
	for axis := range p.In[operand] {
		p.Fill(operand, axis, p.At(operand, axis), value)
	}
}

// dimSize has the true size.
func dimSize(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.DimSizeAttrs)
	p.Out = [][]ir.Extent{{}}
	size := ir.Shape(a.Sizes).Size()
	p.NonNegative = []ir.Dim{size}
	p.Emit = func(e ir.PadEmitter, _ []ir.Value) []ir.Value {
		return []ir.Value{ops.Convert(e.Builder(), e.Size(size), a.DType)}
	}
	return nil
}

func positions(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.IotaAttrs)
	out := make([]ir.Extent, len(a.Shape))
	out[a.Axis] = ir.ExtentOf(a.Shape[a.Axis])
	p.Out = [][]ir.Extent{out}
	return nil
}

// randomBits depends on the position of an element among all. Where other axes than the first one are
// open, elements are read by their true positions.
func randomBits(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.RandomBitsAttrs)
	keys := p.Node.Input(0).Rank() - 1
	if len(p.In) > 1 {
		if err := sameAxes(p, keys); err != nil {
			return err
		}
	}
	p.Out = [][]ir.Extent{p.Extents(p.Node.Types()[0].Shape)}
	copy(p.Out[0], p.In[0][:keys])
	if len(a.Shape) < 2 || !slices.ContainsFunc(a.Shape[1:], p.Open) {
		return nil
	}
	if keys > 0 || a.Pairs {
		return refuse("random bits for several keys, or in pairs, have an open axis after the first one")
	}
	p.Emit = func(e ir.PadEmitter, in []ir.Value) []ir.Value { return bitsByPosition(e, a, in) }
	p.NonNegative = []ir.Dim{ir.Shape(a.Shape).Size()}
	return nil
}

// sameAxes returns an error unless the first axes of the operands have their padding in the same
// places.
func sameAxes(p *ir.Padding, axes int) error {
	for i := range axes {
		if _, err := p.Unify(p.In[0][i], p.In[1][i]); err != nil {
			return err
		}
	}
	return nil
}

// bitsByPosition returns random bits for the padded array, drawn in the order of the true
// positions.
func bitsByPosition(e ir.PadEmitter, a *ops.RandomBitsAttrs, in []ir.Value) []ir.Value {
	b := e.Builder()
	flat := *a
	flat.Shape = []ir.Dim{ir.N(e.Bound(ir.Shape(a.Shape).Size()))}
	bits := b.Add1(ops.OpRandomBits, &flat, in...)
	shape := make(ir.Shape, len(a.Shape))
	for i, d := range a.Shape {
		shape[i] = ir.N(e.Bound(d))
	}
	place := ops.Zeros(b, ir.I32, shape...)
	for axis := range shape {
		stride := ops.BroadcastTo(b, e.Size(ir.Shape(a.Shape[axis+1:]).Size()), shape)
		place = ops.Add(b, place, ops.Mul(b, ops.Iota(b, ir.I32, axis, shape...), stride))
	}
	return []ir.Value{ops.Gather(b, bits, ops.ExpandDims(b, place, -1), ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}, Outside: ops.OutsideClip}})}
}

// reduce is the rule of a reduction with a neutral element.
func reduce(value neutral) func(p *ir.Padding) error {
	return func(p *ir.Padding) error {
		reduced := p.Node.Attrs().(*ops.AxesAttrs).Axes
		var out []ir.Extent
		for axis, e := range p.In[0] {
			if !slices.Contains(reduced, axis) {
				out = append(out, e)
				continue
			}
			p.Fill(0, axis, p.At(0, axis), value(p.Node.Input(0).DType()))
		}
		p.Out = [][]ir.Extent{out}
		return nil
	}
}

// arg is the rule of the index of an extreme: padding comes last, and the first of equal elements wins.
func arg(value neutral) func(p *ir.Padding) error {
	return func(p *ir.Padding) error {
		axis := p.Node.Attrs().(*ops.ArgAttrs).Axis
		e, err := p.Plain(0, axis)
		if err != nil {
			return err
		}
		p.Fill(0, axis, e, value(p.Node.Input(0).DType()))
		p.NonNegative = []ir.Dim{e.Size().Sub(ir.N(1))}
		p.Out = [][]ir.Extent{slices.Delete(slices.Clone(p.In[0]), axis, axis+1)}
		return nil
	}
}

// argSort has padding sorted to the end: it is NaN, the largest, or the lowest in descending order, and
// the sort is stable.
func argSort(p *ir.Padding) error {
	a, d := p.Node.Attrs().(*ops.SortAttrs), p.Node.Input(0).DType()
	e, err := p.Plain(0, a.Axis)
	if err != nil {
		return err
	}
	last := highest(d)
	switch {
	case d == ir.Bool:
		last = scalar.ConstBool(!a.Descending)
	case a.Descending:
		last = lowest(d)
	case d.IsFloat():
		last = scalar.ConstF(d, math.NaN())
	}
	p.Fill(0, a.Axis, e, last)
	p.Out = [][]ir.Extent{slices.Clone(p.In[0])}
	p.Out[0][a.Axis] = e
	if a.First != 0 {
		p.NonNegative = []ir.Dim{e.Size().Sub(ir.N(a.First))}
		p.Out[0][a.Axis] = ir.ExtentOf(ir.N(a.First))
	}
	return nil
}

// cumulative is the rule of a scan. From the front, elements see none of the padding at the end.
func cumulative(value neutral) func(p *ir.Padding) error {
	return func(p *ir.Padding) error {
		a := p.Node.Attrs().(*ops.CumSumAttrs)
		e := p.At(0, a.Axis)
		if a.Reverse || len(e) > 1 {
			p.Fill(0, a.Axis, e, value(p.Node.Input(0).DType()))
		}
		p.Out = [][]ir.Extent{slices.Clone(p.In[0])}
		p.Out[0][a.Axis] = e
		return nil
	}
}

// recurrence is the rule of coupled linear recurrences: a step over padding keeps the values.
func recurrence(p *ir.Padding) error {
	a, k := p.Node.Attrs().(*ops.CumSumAttrs), p.Node.NumResults()
	e, err := unified(p, a.Axis)
	if err != nil {
		return err
	}
	if a.Reverse || len(e) > 1 {
		for i, v := range p.Node.Inputs() {
			keep := zeros
			if i < k*k && i/k == i%k {
				keep = ones
			}
			p.Fill(i, a.Axis, e, keep(v.DType()))
		}
	}
	return nil
}

// associative is the rule of scans by an operator without a known neutral element.
func associative(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.AssociativeAttrs)
	e, err := unified(p, a.Axis)
	if err != nil {
		return err
	}
	if p.IsOpen(e) && (a.Reverse || len(e) > 1) {
		return refuse("a scan from the end would begin with padding, for which the operator is not known to be neutral")
	}
	return nil
}

// unified sets the extents of results that have the shape of all operands, and returns that of an axis
// along which elements differ.
func unified(p *ir.Padding, axis int) (ir.Extent, error) {
	if err := elementwise(p); err != nil {
		return nil, err
	}
	out := slices.Clone(p.Out[0])
	if out[axis] == nil {
		out[axis] = p.At(0, axis)
	}
	for i := range p.Out {
		p.Out[i] = out
	}
	return out[axis], nil
}

// dot fills the padding of contracted axes with zeros, in both operands: padding may be infinite.
func dot(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.DotAttrs)
	for i, l := range a.LhsContract {
		if err := fillPair(p, l, a.RhsContract[i]); err != nil {
			return err
		}
	}
	var out []ir.Extent
	for i, l := range a.LhsBatch {
		e, err := p.Unify(p.In[0][l], p.In[1][a.RhsBatch[i]])
		if err != nil {
			return err
		}
		out = append(out, e)
	}
	for axis, e := range p.In[0] {
		if !slices.Contains(a.LhsBatch, axis) && !slices.Contains(a.LhsContract, axis) {
			out = append(out, e)
		}
	}
	for axis, e := range p.In[1] {
		if !slices.Contains(a.RhsBatch, axis) && !slices.Contains(a.RhsContract, axis) {
			out = append(out, e)
		}
	}
	p.Out = [][]ir.Extent{out}
	return nil
}

// fillPair fills the padding of a contracted axis of both operands with zeros.
func fillPair(p *ir.Padding, lhs, rhs int) error {
	e, err := p.Unify(p.In[0][lhs], p.In[1][rhs])
	if err != nil {
		return err
	}
	if e == nil {
		e = p.At(0, lhs)
	}
	p.Fill(0, lhs, e, zeros(p.Node.Input(0).DType()))
	p.Fill(1, rhs, e, zeros(p.Node.Input(1).DType()))
	return nil
}

// conv fills the padding of features and spatial axes with zeros, as the convolution itself pads.
func conv(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.ConvAttrs)
	l, r := a.Lhs, a.Rhs
	grouped := !a.FeatureGroups.Is(1)
	open := func(operand, axis int) bool { return p.IsOpen(p.At(operand, axis)) }
	if grouped && (open(0, l[1]) || open(1, r[1])) || !a.BatchGroups.Is(1) && open(0, l[0]) || (grouped || !a.BatchGroups.Is(1)) && open(1, r[0]) {
		return refuse("an axis that is divided into groups is open")
	}
	zero := zeros(p.Node.Input(0).DType())
	if !grouped {
		if err := fillPair(p, l[1], r[1]); err != nil {
			return err
		}
	}
	out := p.Extents(p.Node.Types()[0].Shape)
	if out[a.Out[1]] = p.At(1, r[0]); a.BatchGroups.Is(1) {
		out[a.Out[0]] = p.At(0, l[0])
	}
	for i := range a.Strides {
		for operand, axis := range []int{l[i+2], r[i+2]} {
			e, err := p.Plain(operand, axis)
			if err != nil {
				return err
			}
			p.Fill(operand, axis, e, zero)
		}
	}
	p.Out = [][]ir.Extent{out}
	return nil
}
