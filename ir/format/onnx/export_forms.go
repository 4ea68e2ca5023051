package onnx

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// form adds the nodes of an op to a model and returns its results.
type form func(e *exporter, n *ir.Node, in []exported) []exported

// oneForm makes a form from a function that returns a tensor of the shape of the result.
func oneForm(f func(e *exporter, n *ir.Node, in []exported) tensorRef) form {
	return func(e *exporter, n *ir.Node, in []exported) []exported {
		return []exported{{f(e, n, in), n.Types()[0].Shape}}
	}
}

// exportForms maps ops to their forms. A function makes it, so that programs that export nothing do not hold
// it.
func exportForms() map[ir.Op]form {
	forms := map[ir.Op]form{
		ir.OpConstant:        exportConstant,
		ops.OpDimSize:        oneForm(exportDimSize),
		ops.OpIota:           exportIota,
		ops.OpReshape:        oneForm(exportReshape),
		ops.OpTranspose:      oneForm(exportTranspose),
		ops.OpBroadcastInDim: exportBroadcast,
		ops.OpSlice:          oneForm(exportSlice),
		ops.OpPad:            oneForm(exportPad),
		ops.OpConcatenate:    oneForm(exportConcatenate),
		ops.OpReverse:        oneForm(exportReverse),
		ops.OpWindows:        oneForm(exportWindows),
		ops.OpArgMax:         oneForm(exportArgMax),
		ops.OpArgMin:         oneForm(exportArgMax),
		ops.OpArgSort:        oneForm(exportArgSort),
		ops.OpCumSum:         oneForm(exportCumSum),
		ops.OpDotGeneral:     oneForm(exportDot),
		ops.OpConvGeneral:    oneForm(exportConv),
		ops.OpGather:         oneForm(exportGather),
		ops.OpCond:           exportCond,
		ops.OpScan:           exportScan,
		ops.OpWhile:          exportWhile,
		ops.OpSoftmax:        claim(oneForm(exportSoftmax), isF32),
		ops.OpLayerNorm:      claim(oneForm(exportLayerNorm), isF32),
		ops.OpRelu:           claim(exportActivation("Relu"), isFloat),
		ops.OpGelu:           claim(exportActivation("Gelu"), isF32),
		ops.OpGeluTanh:       claim(exportActivation("Gelu", attrText("approximate", "tanh")), isF32),
		ops.OpSoftplus:       claim(exportActivation("Softplus"), isF32),
		ops.OpMaxPool:        claim(oneForm(exportMaxPool), isPlainPool),
		ops.OpAvgPool:        claim(oneForm(exportAvgPool), isPlainPool),

		ops.OpAssociativeScan:  exportAssociative,
		ops.OpQuantizeLinear:   claim(oneForm(exportQuantize), isQuantization),
		ops.OpDequantizeLinear: claim(oneForm(exportDequantize), isQuantization),
	}
	for op, kind := range map[ir.Op]string{
		ops.OpReduceSum: "ReduceSum", ops.OpReduceProd: "ReduceProd", ops.OpReduceMax: "ReduceMax", ops.OpReduceMin: "ReduceMin",
	} {
		forms[op] = oneForm(func(e *exporter, n *ir.Node, in []exported) tensorRef { return e.reduced(kind, n, in[0]) })
	}
	for op, reduction := range map[ir.Op]string{
		ops.OpScatter: "none", ops.OpScatterAdd: "add", ops.OpScatterMul: "mul", ops.OpScatterMin: "min", ops.OpScatterMax: "max",
	} {
		forms[op] = oneForm(func(e *exporter, n *ir.Node, in []exported) tensorRef { return exportScatter(e, n, in, reduction) })
	}
	return forms
}

// claim makes a form of a composite that applies where a condition holds; elsewhere its body is exported.
func claim(f form, fits func(n *ir.Node) bool) form {
	return func(e *exporter, n *ir.Node, in []exported) []exported {
		if !fits(n) {
			return e.inline(n, in)
		}
		return f(e, n, in)
	}
}

func isF32(n *ir.Node) bool { return n.Types()[0].DType == ir.F32 }

func isFloat(n *ir.Node) bool {
	d := n.Types()[0].DType
	return d == ir.F32 || d == ir.F16 || d == ir.F64
}

// formOf returns how a node is exported: by its own form, by the body of a composite, by its scalar rule, or
// by its lowering, number by number.
func (e *exporter) formOf(n *ir.Node) form {
	if f, ok := e.forms[n.Op()]; ok {
		return f
	}
	switch d := n.Def(); {
	case d.IsComposite():
		return (*exporter).inline
	case d.Scalar != nil:
		return func(e *exporter, n *ir.Node, in []exported) []exported { return []exported{e.elementwise(n, in)} }
	case d.Lower != nil:
		return lowered
	}
	return func(e *exporter, n *ir.Node, _ []exported) []exported {
		e.unsupported("ONNX has no such operation, and the op has neither a body nor a lowering")
		return make([]exported, n.NumResults())
	}
}

// inline exports the body of a composite.
func (e *exporter) inline(n *ir.Node, in []exported) []exported {
	body, err := ir.Inline(n)
	if err != nil {
		e.fail(err)
		return make([]exported, n.NumResults())
	}
	return e.graph(body, in)
}

// graph exports all nodes of a graph, given what its ports are, and returns what its outputs are.
func (e *exporter) graph(g *ir.Graph, ports []exported) []exported {
	at := make([][]exported, len(g.Nodes()))
	for i, p := range g.Ports() {
		at[p.Value.Node().ID()] = []exported{ports[i]}
	}
	for _, n := range g.Nodes() {
		if n.Op() == ir.OpPort {
			continue
		}
		in := make([]exported, len(n.Inputs()))
		for i, v := range n.Inputs() {
			in[i] = at[v.Node().ID()][v.Index()]
		}
		if at[n.ID()] = e.one(n, in); e.err != nil {
			return make([]exported, len(g.Outputs()))
		}
	}
	out := make([]exported, len(g.Outputs()))
	for i, o := range g.Outputs() {
		out[i] = at[o.Value.Node().ID()][o.Value.Index()]
	}
	return out
}

// one exports a node. An error names it.
func (e *exporter) one(n *ir.Node, in []exported) []exported {
	before := e.prefix
	if e.prefix = n.Label(); e.prefix == "" {
		e.prefix = before
	}
	defer func() { e.prefix = before }()
	for _, t := range append(n.InTypes(), n.Types()...) {
		if t.DType.IsComplex() {
			e.unsupported("ONNX has no arithmetic of complex numbers, as %s", t)
		}
	}
	var out []exported
	switch {
	case e.err != nil:
	case isEmptyNode(n):
		out = e.empties(n.Types())
	default:
		out = e.formOf(n)(e, n, in)
	}
	if e.err != nil {
		if _, named := e.err.(*ir.OpError); !named {
			e.err = n.Fail(e.err)
		}
		return make([]exported, n.NumResults())
	}
	return out
}

// isEmptyNode reports whether no result has elements: runtimes do not compute all ops on such sizes.
func isEmptyNode(n *ir.Node) bool {
	return !slices.ContainsFunc(n.Types(), func(t ir.Type) bool { return !t.Shape.Size().Is(0) })
}

// empties returns values without elements.
func (e modelMoves) empties(types []ir.Type) []exported {
	out := make([]exported, len(types))
	for i, t := range types {
		out[i] = exported{e.number(held(t.DType), 0), t.Shape}
	}
	return out
}

// exportConstant makes a literal an initializer; equal elements are one number.
func exportConstant(e *exporter, n *ir.Node, _ []exported) []exported {
	t := n.Types()[0]
	a, err := ir.ArrayOf(t, n.Attrs().(*ir.ConstantAttrs).Data)
	if err != nil {
		e.fail(err)
		return make([]exported, 1)
	}
	a.DType = held(t.DType)
	equal := a.Len() > 0
	for i := 1; i < a.Len() && equal; i++ {
		equal = a.Element(i) == a.Element(0)
	}
	if equal {
		first := ir.NewArray(a.DType)
		first.SetElement(0, a.Element(0))
		a = first
	}
	return []exported{{e.literal(a.DType, a.Dims, a.Bytes()), t.Shape}}
}

// narrowed cuts or rounds a result computed in the held type to the node's type.
func (e modelMoves) narrowed(t tensorRef, n *ir.Node) tensorRef {
	return e.narrow(t, n.Types()[0].DType)
}

func exportDimSize(e *exporter, n *ir.Node, _ []exported) tensorRef {
	a := n.Attrs().(*ops.DimSizeAttrs)
	t := e.reshape(e.dimVector(ir.Shape(a.Sizes).Size()), nil)
	return e.narrowed(e.cast(t, held(a.DType)), n)
}

func exportIota(e *exporter, n *ir.Node, _ []exported) []exported {
	a := n.Attrs().(*ops.IotaAttrs)
	size := a.Shape[a.Axis]
	dims := ir.Dims(slices.Repeat([]int{1}, len(a.Shape))...)
	dims[a.Axis] = size
	t := e.reshape(e.counting(size), dims)
	return []exported{{e.narrowed(e.cast(t, held(a.DType)), n), a.Shape}}
}

// counting returns the i64 from 0 to a size.
func (e modelMoves) counting(size ir.Dim) tensorRef {
	limit := e.reshape(e.dimVector(size), nil)
	return e.op("Range", ir.I64, ir.Shape{size}, []tensorRef{e.number(ir.I64, 0), limit, e.number(ir.I64, 1)})
}

func exportReshape(e *exporter, n *ir.Node, in []exported) tensorRef {
	if len(in[0].dims) == 0 {
		return in[0].tensorRef
	}
	return e.reshape(e.whole(in[0]), n.Types()[0].Shape)
}

func exportTranspose(e *exporter, n *ir.Node, in []exported) tensorRef {
	if len(in[0].dims) == 0 {
		return in[0].tensorRef
	}
	return e.transpose(in[0].tensorRef, n.Attrs().(*ops.TransposeAttrs).Perm)
}

// exportBroadcast reshapes a value to axes of size 1; nodes that need it whole expand it.
func exportBroadcast(e *exporter, n *ir.Node, in []exported) []exported {
	a := n.Attrs().(*ops.BroadcastAttrs)
	t, out := in[0].tensorRef, n.Types()[0].Shape
	if len(t.dims) == 0 {
		return []exported{{t, out}}
	}
	order := all(len(a.Axes))
	slices.SortFunc(order, func(i, j int) int { return a.Axes[i] - a.Axes[j] })
	t = e.transpose(t, order)
	dims := ir.Dims(slices.Repeat([]int{1}, len(out))...)
	for i, from := range order {
		dims[a.Axes[from]] = t.dims[i]
	}
	return []exported{{e.reshape(t, dims), out}}
}

// cutAxis takes count elements of an axis from a start, one in step.
func (e modelMoves) cutAxis(t tensorRef, axis int, start, count ir.Dim, step int) tensorRef {
	if start.Is(0) && count == t.dims[axis] && step == 1 {
		return t
	}
	dims := t.dims.Clone()
	dims[axis] = count
	end := e.dimVector(start)
	if n, ok := count.Const(); ok && n > 0 {
		end = e.dimVector(start.Add(ir.N((n-1)*step + 1)))
	} else if !ok {
		end = e.early(func() tensorRef {
			return e.binary("Add", e.dimVector(start), e.binary("Mul", e.dimVector(count), e.ints(step)))
		})
	}
	return e.op("Slice", t.dtype, dims, []tensorRef{t, e.dimVector(start), end, e.ints(axis), e.ints(step)})
}

func exportSlice(e *exporter, n *ir.Node, in []exported) tensorRef {
	a := n.Attrs().(*ops.SliceAttrs)
	t := in[0].tensorRef
	for axis := range t.dims {
		if in[0].dims[axis] == in[0].shape[axis] {
			t = e.cutAxis(t, axis, a.Start[axis], a.Size[axis], a.Stride[axis])
		} else if a.Size[axis].Is(0) {
			t = e.cutAxis(t, axis, ir.N(0), ir.N(0), 1)
		}
	}
	return t
}

// extend adds elements before and after those of an axis.
func (e modelMoves) extend(t tensorRef, axis int, low, high ir.Dim, with tensorRef) tensorRef {
	if low.Is(0) && high.Is(0) {
		return t
	}
	dims := t.dims.Clone()
	dims[axis] = dims[axis].Add(low).Add(high)
	// All axes are listed: ONNX Runtime 1.32 moves a Transpose past a Pad of some axes wrongly.
	list := ir.Dims(make([]int, 2*len(dims))...)
	list[axis], list[len(dims)+axis] = low, high
	pads := e.shape(list)
	if t.dtype == ir.Bool { // which some versions do not pad
		return e.cast(e.op("Pad", ir.I32, dims, []tensorRef{e.cast(t, ir.I32), pads, e.cast(with, ir.I32)}), ir.Bool)
	}
	return e.op("Pad", t.dtype, dims, []tensorRef{t, pads, with})
}

// padAxis is extend, but for negative sizes, which take elements away.
func (e modelMoves) padAxis(t tensorRef, axis int, low, high ir.Dim, with tensorRef) tensorRef {
	if less, ok := ir.N(0).Sub(low).Const(); ok && less > 0 {
		t, low = e.cutAxis(t, axis, ir.N(less), t.dims[axis].Sub(ir.N(less)), 1), ir.N(0)
	}
	if less, ok := ir.N(0).Sub(high).Const(); ok && less > 0 {
		// What is cut at the end may be padding of the beginning.
		t = e.extend(t, axis, low, ir.N(0), with)
		return e.cutAxis(t, axis, ir.N(0), t.dims[axis].Sub(ir.N(less)), 1)
	}
	return e.extend(t, axis, low, high, with)
}

// spread inserts count values after each element of an axis but the last.
func (e modelMoves) spread(t tensorRef, axis, count int, with tensorRef) tensorRef {
	size := t.dims[axis]
	if count == 0 || size.Is(0) || size.Is(1) {
		return t
	}
	split := slices.Insert(t.dims.Clone(), axis+1, ir.N(1))
	t = e.extend(e.reshape(t, split), axis+1, ir.N(0), ir.N(count), with)
	dims := slices.Delete(t.dims.Clone(), axis+1, axis+2)
	dims[axis] = size.Mul(ir.N(count + 1))
	t = e.reshape(t, dims)
	return e.cutAxis(t, axis, ir.N(0), dims[axis].Sub(ir.N(count)), 1)
}

func exportPad(e *exporter, n *ir.Node, in []exported) tensorRef {
	a := n.Attrs().(*ops.PadAttrs)
	t := e.whole(in[0])
	for axis := range n.Types()[0].Shape {
		t = e.spread(t, axis, a.Interior[axis], in[1].tensorRef)
		t = e.padAxis(t, axis, a.Low[axis], a.High[axis], in[1].tensorRef)
	}
	return t
}

// join concatenates tensors along an axis.
func (e modelMoves) join(parts []tensorRef, axis int) tensorRef {
	dims := parts[0].dims.Clone()
	for _, p := range parts[1:] {
		dims[axis] = dims[axis].Add(p.dims[axis])
	}
	return e.op("Concat", parts[0].dtype, dims, parts, attrInt("axis", axis))
}

func exportConcatenate(e *exporter, n *ir.Node, in []exported) tensorRef {
	parts := make([]tensorRef, len(in))
	for i, v := range in {
		parts[i] = e.whole(v)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return e.join(parts, n.Attrs().(*ops.AxisAttrs).Axis)
}

// reversed turns an axis round.
func (e modelMoves) reversed(t tensorRef, axis int) tensorRef {
	return e.op("Slice", t.dtype, t.dims, []tensorRef{t, e.ints(-1), e.ints(-1 << 31), e.ints(axis), e.ints(-1)})
}

func exportReverse(e *exporter, n *ir.Node, in []exported) tensorRef {
	t := in[0].tensorRef
	for _, axis := range n.Attrs().(*ops.AxesAttrs).Axes {
		if len(t.dims) > 0 && in[0].dims[axis] == in[0].shape[axis] {
			t = e.reversed(t, axis)
		}
	}
	return t
}

// exportWindows reads the elements of all windows and then brings the axes within windows to the end.
func exportWindows(e *exporter, n *ir.Node, in []exported) tensorRef {
	a, t := n.Attrs().(*ops.WindowsAttrs), e.whole(in[0])
	order := all(len(t.dims))
	var inner []int
	for i, axis := range a.Axes {
		t = e.windows(t, order[axis], n.Types()[0].Shape[axis], a.Sizes[i], a.Strides[i], a.Dilations[i])
		inner = append(inner, order[axis]+1)
		for k := range order {
			if k > axis {
				order[k]++
			}
		}
		for k := range inner[:i] {
			if inner[k] > order[axis] {
				inner[k]++
			}
		}
	}
	return e.transpose(t, slices.Concat(order, inner))
}

// windows makes an axis the windows along it, in count places, and one of the elements of a window after it.
func (e modelMoves) windows(t tensorRef, axis int, count ir.Dim, size, stride, dilation int) tensorRef {
	first := e.binary("Mul", e.reshape(e.counting(count), ir.Shape{count, ir.N(1)}), e.number(ir.I64, float64(stride)))
	offset := e.binary("Mul", e.reshape(e.counting(ir.N(size)), ir.Dims(1, size)), e.number(ir.I64, float64(dilation)))
	places := e.binary("Add", first, offset)
	dims := slices.Concat(t.dims[:axis], places.dims, t.dims[axis+1:])
	return e.op("Gather", t.dtype, dims, []tensorRef{t, places}, attrInt("axis", axis))
}
