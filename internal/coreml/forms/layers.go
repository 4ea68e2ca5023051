package forms

import (
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/ir/scalar/plain"
)

// Composites with an operation in MIL, which Core ML's compiler can place on the Neural Engine.
func init() {
	for op, args := range map[ir.Op]struct {
		kind string
		args mil.Args
	}{
		ops.OpRelu: {"relu", nil}, ops.OpGelu: {"gelu", mil.Args{"mode": "EXACT"}},
		ops.OpGeluTanh: {"gelu", mil.Args{"mode": "TANH_APPROXIMATION"}},
	} {
		add(op, single(func(e *Emitter, _ *ir.Node, in []Value) Value {
			with := mil.Args{"x": in[0].Ref}
			maps.Copy(with, args.args)
			return Value{e.Op(args.kind, with), in[0].Dims}
		}))
	}
	add(ops.OpCopySign, single(copySign))
	add(ops.OpSoftmax, single(softmax))
	add(ops.OpLayerNorm, single(layerNorm))
	add(ops.OpMaxPool, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		return pool(e, n, in[0], n.Attrs().(*ops.PoolAttrs), "max_pool", nil)
	}))
	add(ops.OpAvgPool, single(func(e *Emitter, n *ir.Node, in []Value) Value {
		a := n.Attrs().(*ops.AvgPoolAttrs)
		return pool(e, n, in[0], &a.PoolAttrs, "avg_pool", mil.Args{"exclude_padding_from_average": !a.CountIncludePad})
	}))
	onlyWhere[ops.OpMaxPool] = func(_ *Emitter, n *ir.Node) bool { return isPlainPool(n.Attrs().(*ops.PoolAttrs)) }
	onlyWhere[ops.OpAvgPool] = func(_ *Emitter, n *ir.Node) bool { return isPlainPool(&n.Attrs().(*ops.AvgPoolAttrs).PoolAttrs) }
	onlyWhere[ops.OpLayerNorm] = func(_ *Emitter, n *ir.Node) bool { return n.Input(0).Rank() <= maxRank }
	add(ops.OpAttention, single(attention))
	onlyWhere[ops.OpAttention] = isPlainAttention
}

// copySign is computed without bit operations. It ignores the sign of a NaN.
func copySign(e *Emitter, n *ir.Node, in []Value) Value {
	x, y := scalar.Arg(0, n.Input(0).DType()), scalar.Arg(1, n.Input(1).DType())
	size := scalar.Abs(x)
	return e.scalars(scalar.Select(plain.Negative(y), scalar.Neg(size), size), []mil.Ref{in[0].Ref, in[1].Ref}, whole(n.Types()[0]))
}

// softmax returns 0 where all elements along the axis are -Inf, as the op does; MIL's returns NaN.
func softmax(e *Emitter, n *ir.Node, in []Value) Value {
	dims := whole(n.Input(0).Type())
	x, at := e.along(e.Whole(in[0]), dims, n.Attrs().(*ops.AxisAttrs).Axis)
	y := e.Op("softmax", mil.Args{"x": x, "axis": at})
	largest := e.Op("reduce_max", mil.Args{"x": x, "axes": []int{at}, "keep_dims": true})
	masked := e.op2("equal", largest, e.number(x.Type.DType, math.Inf(-1)))
	return e.value(e.choose(masked, e.number(x.Type.DType, 0), y), dims)
}

// layerNorm passes constant scale and bias to the operation, since MIL requires constants there,
// and applies others after it. A broadcast constant is the result of a tile, so it is not a
// constant.
func layerNorm(e *Emitter, n *ir.Node, in []Value) Value {
	a, x := n.Attrs().(*ops.NormAttrs), e.Whole(in[0])
	axes := make([]int, a.Axes)
	for i := range axes {
		axes[i] = i - a.Axes
	}
	args := mil.Args{"x": x, "axes": axes, "epsilon": a.Epsilon}
	var rest []Value
	for i, name := range []string{"gamma", "beta"} {
		if i+1 < len(in) && in[i+1].constant() && len(rest) == 0 {
			args[name] = in[i+1].Ref
		} else if i+1 < len(in) {
			rest = append(rest, in[i+1])
		}
	}
	y := e.Op("layer_norm", args)
	if len(rest) == 2 {
		y = e.op2("mul", y, rest[0].Ref)
	}
	if len(rest) > 0 {
		kind := "add"
		if len(in) == 2 {
			kind = "mul"
		}
		y = e.op2(kind, y, rest[len(rest)-1].Ref)
	}
	return Value{y, in[0].Dims}
}

// isPlainPool reports whether MIL has the pool: one to three axes without dilation.
func isPlainPool(a *ops.PoolAttrs) bool {
	return len(a.Sizes) <= 3 && !slices.ContainsFunc(a.Dilations, func(d int) bool { return d != 1 })
}

// pool moves the last axis, the channels, before the spatial axes and back.
func pool(e *Emitter, n *ir.Node, in Value, a *ops.PoolAttrs, kind string, more mil.Args) Value {
	dims := whole(n.Input(0).Type())
	rank := len(dims)
	toFront := append([]int{0, rank - 1}, permute.Others(rank, []int{0, rank - 1})...)
	x, moved := e.transpose(e.Whole(in), dims, toFront)
	pad := make([]int, 0, 2*len(a.Sizes))
	for i := range a.Sizes {
		pad = append(pad, a.PadLo[i], a.PadHi[i])
	}
	args := mil.Args{
		"x": e.reshape(x, moved), "kernel_sizes": a.Sizes, "strides": a.Strides, "pad_type": "custom", "pad": pad, "ceil_mode": false,
	}
	maps.Copy(args, more)
	y := e.Op(kind, args)
	toBack := append([]int{0}, permute.Others(rank, []int{0, 1})...)
	r, out := e.transpose(y, y.Type.Dims, append(toBack, 1))
	return e.value(r, out)
}

// isPlainAttention reports whether MIL has the attention: as many heads of keys as of queries, no
// softcap, no window, and either no mask or a causal one with a visible key for each query.
func isPlainAttention(e *Emitter, n *ir.Node) bool {
	a := n.Attrs().(*ops.AttentionAttrs)
	q, k := n.Input(0).Shape(), n.Input(1).Shape()
	r := len(q)
	if e.Opset() < mil.CoreML8 || len(n.Inputs()) > 3 || a.Softcap != 0 || a.Window != 0 || r < 3 || r > maxRank {
		return false
	}
	queries, _ := q[r-2].Const()
	keys, _ := k[r-2].Const()
	return q[:r-2].Equal(k[:r-2]) && (!a.Causal || queries <= keys)
}

// attention scales the queries by the ratio of the op's scale to MIL's, 1/√d.
func attention(e *Emitter, n *ir.Node, in []Value) Value {
	a, q, k := n.Attrs().(*ops.AttentionAttrs), e.Whole(in[0]), e.Whole(in[1])
	dims := whole(n.Input(0).Type())
	queries, depth := dims[len(dims)-2], dims[len(dims)-1]
	if scale := a.Scale * math.Sqrt(float64(depth)); math.Abs(scale-1) > 1e-9 {
		q = e.op2("mul", q, e.number(q.Type.DType, scale))
	}
	args := mil.Args{"query": q, "key": k, "value": e.Whole(in[2])}
	if a.Causal {
		keys := k.Type.Dims[len(dims)-2]
		mask := make([]bool, queries*keys)
		for i := range mask {
			mask[i] = i%keys <= i/keys+keys-queries
		}
		args["attn_mask"] = e.Const(mil.Bools(mask, queries, keys))
	}
	return e.value(e.Op("scaled_dot_product_attention", args), whole(n.Types()[0]))
}
