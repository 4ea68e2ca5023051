package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Layouts of the results of attention, forward and backward, which have the heads before the positions, where products
// read the heads of a position side by side, as one row. Stored so, a library can compute the
// products, and tensor maps can load their operands.

// attends reports whether v is a result of attention whose layout is free.
func (x placer) attends(v ir.Value) bool {
	g := x.groups.of[v.Node()]
	return g != nil && g.Kind == AttentionKind
}

// orderResults stores the results of attention in the order of the axes in which they are read, and the kernels of
// convolutions with few channels a group so that adjacent channels of the result are adjacent.
func (x placer) orderResults(g *Group) {
	if !withTensorCores || !x.options.TensorCores {
		return
	}
	for _, part := range g.HorizontalParts() {
		for _, m := range part.Members {
			for i, t := range m.Store {
				if t == nil || t.Outer != nil || t.Port != nil {
					continue
				}
				order := kernelOrder(m.Node, x.decided.uses[m.Node.ID()])
				if g.Kind == AttentionKind {
					order = x.readOrder(m.Node.Result(i))
				}
				if order != nil {
					t.Layout = &Layout{Strides: orderedStrides(t.Dims, order)}
				}
			}
		}
	}
}

// kernelOrder returns the axes of the kernel of a convolution in groups, that of the result's channels last, or nil for
// other nodes.
func kernelOrder(n *ir.Node, users []*ir.Node) (order []int) {
	if !isGroupedKernel(n, users) {
		return nil
	}
	a, ok := users[0].Attrs().(*ops.ConvAttrs)
	if !ok {
		return nil
	}
	for axis := range a.Rhs {
		if axis != a.Rhs[0] {
			order = append(order, axis)
		}
	}
	return append(order, a.Rhs[0])
}

// orderedStrides returns the strides of an array whose axes lie in an order, the longest stride first.
func orderedStrides(dims, order []int) []int {
	strides, stride := make([]int, len(dims)), 1
	for _, axis := range slices.Backward(order) {
		strides[axis] = stride
		stride *= dims[axis]
	}
	return strides
}

// readOrder returns the permutation by which users transpose v, if it keeps the last axis and all users
// that transpose v agree. It returns nil otherwise, and where v is read as a whole, row-major.
func (x placer) readOrder(v ir.Value) (order []int) {
	if !x.readByElement(v) {
		return nil
	}
	for _, u := range x.decided.uses[v.Node().ID()] {
		if u.Op() != ops.OpTranspose || u.Input(0) != v {
			continue
		}
		perm := u.Attrs().(*ops.TransposeAttrs).Perm
		if order != nil && !slices.Equal(order, perm) || perm[len(perm)-1] != len(perm)-1 {
			return nil
		}
		order = perm
	}
	return order
}

// readByElement reports whether all that reads a value are groups that address its elements: not control flow,
// routines, or the host.
func (x placer) readByElement(v ir.Value) bool {
	if slices.ContainsFunc(x.Graph.Outputs(), func(o ir.Output) bool { return o.Value == v }) {
		return false
	}
	return !slices.ContainsFunc(x.decided.uses[v.Node().ID()], func(u *ir.Node) bool {
		if !slices.Contains(u.Inputs(), v) {
			return false
		}
		if x.decided.virtual[u.ID()] {
			return !x.readByElement(u.Result(0))
		}
		g := x.groups.of[u]
		return g == nil || !slices.Contains([]Kind{MapKind, ReduceKind, ContractKind, AttentionKind}, g.Kind)
	})
}

// joinResults stores results of attention directly in a concatenation of them, such as the gradients of
// queries, keys and values that one product reads. The group of the concatenation then computes nothing.
func (x placer) joinResults(needed map[ir.Value]bool) {
	if !withTensorCores || !x.options.TensorCores {
		return
	}
	for _, g := range x.groups.list {
		if g.Kind != MapKind || len(g.Members) != 1 || len(g.Copies) > 0 {
			continue
		}
		v := g.Members[0].Node.Result(0)
		if !needed[v] || x.tensors[v] != nil {
			continue
		}
		if windows := x.windowsOf(v); windows != nil && !x.readEachOther(windows) {
			g.inPlace, x.tensors[v] = true, x.newTensor(resultName(v), v.Type())
			for _, w := range windows {
				t := x.alias(resultName(w.value), w.value.Type(), x.tensors[v])
				t.View, t.Layout = true, &Layout{w.strides, w.base}
				x.tensors[w.value] = t
			}
		}
	}
}

// window is where a value lies in another.
type window struct {
	value   ir.Value
	strides []int
	base    int
}

// readEachOther reports whether a group that computes one of some values reads another: its kernel would store
// vectors in the array from which it loads elements.
func (x placer) readEachOther(windows []window) bool {
	return slices.ContainsFunc(windows, func(w window) bool {
		return slices.ContainsFunc(x.groups.of[w.value.Node()].loadedValues(), func(v ir.Value) bool {
			return slices.ContainsFunc(windows, func(o window) bool { return o.value == v })
		})
	})
}

// windowsOf returns where the operands of a concatenation lie in v, which is the concatenation or rounds it, or nil
// unless each is a result of attention with its axes in an order that strides describe.
func (x placer) windowsOf(v ir.Value) (windows []window) {
	joined := v
	for joined.Node().Op() == ops.OpConvert {
		in := joined.Node().Input(0)
		if !x.isVirtual(in) || !holds(in.DType(), v.DType()) {
			return nil
		}
		joined = in
	}
	axis, operands := x.operandsOf(joined)
	row, base := Product(dimsOf(joined)[axis:]), 0
	for _, in := range operands {
		part := Product(dimsOf(in)[axis:])
		w := window{value: in, base: base}
		w.strides = x.stridesIn(&w.value, v.DType(), part, row)
		if w.strides == nil || slices.ContainsFunc(windows, func(o window) bool { return o.value == w.value }) {
			return nil
		}
		windows, base = append(windows, w), base+part
	}
	return windows
}

// operandsOf returns the axis and the operands of a concatenation, or nil if v is none. It may also be a sum of
// values padded with zeros, where no two overlap: the gradient of slices is one. Such a sum makes 0 of −0.
func (x placer) operandsOf(v ir.Value) (axis int, operands []ir.Value) {
	if n := v.Node(); n.Op() == ops.OpConcatenate {
		return n.Attrs().(*ops.AxisAttrs).Axis, n.Inputs()
	}
	dims, at := dimsOf(v), map[int]ir.Value{}
	for i, term := range x.terms(v) {
		along, low, ok := x.padded(term)
		if !ok || i > 0 && along != axis || at[low].Valid() {
			return 0, nil
		}
		axis, at[low] = along, term.Node().Input(0)
	}
	for end := 0; end < dims[axis]; {
		in := at[end]
		if !in.Valid() || dimsOf(in)[axis] == 0 {
			return 0, nil
		}
		operands, end = append(operands, in), end+dimsOf(in)[axis]
	}
	if len(operands) < len(at) {
		return 0, nil
	}
	return axis, operands
}

// terms returns the terms of a sum, down to those that are stored.
func (x placer) terms(sum ir.Value) (out []ir.Value) {
	if sum.Node().Op() != ops.OpAdd {
		return []ir.Value{sum}
	}
	for _, v := range sum.Node().Inputs() {
		if x.isVirtual(v) {
			out = append(out, x.terms(v)...)
		} else {
			out = append(out, v)
		}
	}
	return out
}

// padded returns the axis along which a value is padded with zeros, and the number of those before its operand.
func (x placer) padded(v ir.Value) (axis, low int, ok bool) {
	a, ok := v.Node().Attrs().(*ops.PadAttrs)
	if !ok || !x.isVirtual(v) || !isZero(x.decided.literals[v.Node().Input(1)]) {
		return 0, 0, false
	}
	axis = -1
	for i, d := range dimsOf(v) {
		if d == dimsOf(v.Node().Input(0))[i] {
			continue
		}
		if axis >= 0 {
			return 0, 0, false
		}
		axis = i
	}
	if axis < 0 || a.Interior[axis] != 0 {
		return 0, 0, false
	}
	low, ok = a.Low[axis].Const()
	return axis, low, ok
}

func (x placer) isVirtual(v ir.Value) bool { return x.decided.virtual[v.Node().ID()] }

// stridesIn follows conversions, reshapes and then a transposition from an operand of a concatenation to the
// result v of attention that it shows, and returns the strides of v where each part elements of the operand begin row
// elements after those before, or nil if there are none.
func (x placer) stridesIn(v *ir.Value, d ir.DType, part, row int) []int {
	var order []int
	for ; x.isVirtual(*v); *v = v.Node().Input(0) {
		switch n := v.Node(); {
		case n.Op() == ops.OpConvert && holds(v.DType(), d):
		case order != nil:
			return nil
		case n.Op() == ops.OpTranspose:
			order = n.Attrs().(*ops.TransposeAttrs).Perm
		case !isReshape(n):
			return nil
		}
	}
	if part == 0 || !x.attends(*v) || v.DType() != d || x.tensors[*v] != nil || !x.readByElement(*v) {
		return nil
	}
	dims := dimsOf(*v)
	if order == nil {
		order = permute.Counting(0, len(dims))
	}
	strides := orderedStrides(dims, order)
	for i, stride := range strides {
		switch {
		case stride*dims[i] <= part:
		case stride%part == 0:
			strides[i] = stride / part * row
		default:
			return nil
		}
	}
	return strides
}

// holds reports whether a float type has all values of d.
func holds(wide, d ir.DType) bool {
	return wide == d || wide == ir.F32 && (d == ir.BF16 || d == ir.F16)
}

func isZero(e scalar.Expr) bool { return e.Op == scalar.OpConst && e.Bits == 0 }
