package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpDotGeneral, single(dotGeneral))
	add(ops.OpConvGeneral, single(convGeneral))
}

// dotGeneral transposes the factors to [batch, m, k] and [batch, k, n]. It does not move the second
// one where MIL can read it transposed.
func dotGeneral(e *Emitter, n *ir.Node, in []Value) Value {
	a := n.Attrs().(*ops.DotAttrs)
	x, y := whole(n.Input(0).Type()), whole(n.Input(1).Type())
	m, columns := permute.Others(len(x), a.LhsBatch, a.LhsContract), permute.Others(len(y), a.RhsBatch, a.RhsContract)
	batch, k := product(permute.Pick(x, a.LhsBatch)), product(permute.Pick(x, a.LhsContract))

	lhs, _ := e.transpose(e.Whole(in[0]), x, slices.Concat(a.LhsBatch, m, a.LhsContract))
	lhs = e.reshape(lhs, []int{batch, product(permute.Pick(x, m)), k})
	perm := slices.Concat(a.RhsBatch, a.RhsContract, columns)
	size := []int{batch, k, product(permute.Pick(y, columns))}
	asIs := slices.Concat(a.RhsBatch, columns, a.RhsContract)
	swap := !slices.IsSorted(perm) && slices.IsSorted(asIs)
	if swap {
		perm, size[1], size[2] = asIs, size[2], size[1]
	}
	rhs, _ := e.transpose(e.Whole(in[1]), y, perm)
	rhs = e.reshape(rhs, size)
	if lhs.Type.DType == mil.Int32 {
		return e.value(e.integerProduct(n, lhs, rhs, swap), whole(n.Types()[0]))
	}
	if batch == 1 { // Core ML handles a linear layer best without a batch axis of 1
		lhs, rhs = e.reshape(lhs, lhs.Type.Dims[1:]), e.reshape(rhs, size[1:])
	}
	r := e.Op("matmul", mil.Args{"x": lhs, "y": rhs, "transpose_x": false, "transpose_y": swap})
	return e.value(r, whole(n.Types()[0]))
}

// maxProducts bounds the elements of an integer product before the sum: 64 MB of int32.
const maxProducts = 1 << 24

// integerProduct multiplies [batch, m, k] and [batch, k, n], or with swap [batch, n, k],
// elementwise and sums: Core ML fails to load some int32 matmuls and linears (error -14,
// apple/coremltools #2575), and floats do not represent all int32.
func (e *Emitter) integerProduct(n *ir.Node, lhs, rhs mil.Ref, swap bool) mil.Ref {
	batch, m, k := lhs.Type.Dims[0], lhs.Type.Dims[1], lhs.Type.Dims[2]
	columns, axis := rhs.Type.Dims[2], 2
	left, right := []int{batch, m, k, 1}, []int{batch, 1, k, columns}
	if swap {
		columns, axis = rhs.Type.Dims[1], 3
		left, right = []int{batch, m, 1, k}, []int{batch, 1, columns, k}
	}
	if count := float64(batch) * float64(m) * float64(k) * float64(columns); count > maxProducts {
		e.Fail(ir.Errorf(ir.ErrUnsupported, "Core ML has no matrix product of integers; one of %.0f elements is too large to decompose, the limit is %d; this one is of %s", count, maxProducts, n.Types()[0].DType))
		return lhs
	}
	products := e.op2("mul", e.reshape(lhs, left), e.reshape(rhs, right))
	return e.Op("reduce_sum", mil.Args{"x": products, "axes": []int{axis}, "keep_dims": false})
}

// convGeneral transposes images to [batch, features, space] and weights to [out, in, space], MIL's
// layout. It dilates images and non-constant weights by inserting zeros; batch groups become
// feature groups.
func convGeneral(e *Emitter, n *ir.Node, in []Value) Value {
	a := n.Attrs().(*ops.ConvAttrs)
	if n.Types()[0].DType != ir.F32 && n.Types()[0].DType != ir.F16 {
		e.Fail(ir.Errorf(ir.ErrUnsupported, "MIL has no convolution of %s", n.Types()[0].DType))
	}
	if spatial := len(a.Strides); spatial > 3 {
		e.Fail(ir.Errorf(ir.ErrUnsupported, "the convolution has %d spatial axes; MIL has convolutions of one to three", spatial))
	}
	if e.Err() != nil {
		return Value{}
	}
	x, xd := e.transpose(e.Whole(in[0]), whole(n.Input(0).Type()), a.Lhs)
	w, wd := e.transpose(e.Whole(in[1]), whole(n.Input(1).Type()), a.Rhs)
	zero := e.number(x.Type.DType, 0)
	dilations := slices.Clone(a.RhsDilation)
	pad := make([]int, 2*len(a.Strides))
	for i := range a.Strides {
		x, xd = e.spread(x, xd, i+2, a.LhsDilation[i]-1, zero)
		x, xd = e.padAxis(x, xd, i+2, min(a.PadLo[i], 0), min(a.PadHi[i], 0), zero)
		pad[2*i], pad[2*i+1] = max(a.PadLo[i], 0), max(a.PadHi[i], 0)
		if w.Value == nil {
			w, wd = e.spread(w, wd, i+2, dilations[i]-1, zero)
			dilations[i] = 1
		}
	}
	groups, _ := a.FeatureGroups.Const()
	batches, _ := a.BatchGroups.Const()
	if batches > 1 { // [g·b, c, ...] → [b, g·c, ...]
		apart := append([]int{batches, xd[0] / batches, xd[1]}, xd[2:]...)
		order := append([]int{1, 0, 2}, permute.Others(len(apart), []int{0, 1, 2})...)
		x, _ = e.transpose(x, apart, order)
		xd = append([]int{xd[0] / batches, batches * xd[1]}, xd[2:]...)
		groups = batches
	}
	out := append([]int{xd[0], wd[0]}, spatialOf(n, a)...)
	if len(a.Strides) == 0 { // MIL has no convolution without spatial axes
		one := func(r mil.Ref, dims []int) mil.Ref { return e.reshape(r, append(slices.Clone(dims), 1)) }
		x, w = one(x, xd), one(w, wd)
		return e.convolved(n, a, out, mil.Args{"x": x, "weight": w, "strides": []int{1}, "pad": []int{0, 0}, "dilations": []int{1}, "groups": groups})
	}
	return e.convolved(n, a, out, mil.Args{
		"x": e.reshape(x, xd), "weight": e.reshape(w, wd), "strides": a.Strides, "pad": pad, "dilations": dilations, "groups": groups,
	})
}

// spatialOf returns the spatial sizes of the result.
func spatialOf(n *ir.Node, a *ops.ConvAttrs) []int {
	return permute.Pick(whole(n.Types()[0]), a.Out[2:])
}

// convolved emits MIL's convolution, whose result has the sizes out, and transposes it to the layout
// of the node's result. It adds the type of padding to the arguments.
func (e *Emitter) convolved(n *ir.Node, a *ops.ConvAttrs, out []int, args mil.Args) Value {
	args["pad_type"] = "custom"
	r := e.Op("conv", args)
	r, _ = e.transpose(e.reshape(r, fold(out)), out, permute.Inverse(a.Out)) // axis a.Out[i] of the result is axis i of r
	return e.value(r, whole(n.Types()[0]))
}
