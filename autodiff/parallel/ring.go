package parallel

import (
	"math"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// RingAttention returns attention over a sequence that is divided among the devices along an axis of the
// mesh: device i has rows i·m to (i+1)·m−1 of queries, keys and values (Liu, Zaharia and Abbeel, Ring
// Attention with Blockwise Transformers, 2023). q is [..., heads, m, d], k [..., kv heads, m, d] and v
// [..., kv heads, m, e], of one float type: the result is [..., heads, m, e]. It is that of
// [ops.Attention] over the whole sequence, up to rounding.
//
// Keys and values travel once around the ring. Each device merges its result for a block by the
// log-sum-exp of the scores. The backward pass sends keys, values and their cotangents around once
// more, so memory is that of a device's rows. A step sends the bytes of k and v 2·(devices − 1)
// times, and those of their cotangents devices times. With a.Causal a device also computes the
// blocks after its own rows, and ignores them. A scale of 0 means 1/√d. It has a reverse derivative
// of first order only. Errors are recorded in b: of kind [ir.ErrAttr] for a window, an invalid
// mesh or one of more than 4,096 devices, and those of attention.
func RingAttention(b *ir.Builder, q, k, v ir.Value, mesh ops.MeshAttrs, a ops.AttentionAttrs) ir.Value {
	if !checkRing(b, q, k, v, mesh, &a) {
		return ir.Value{}
	}
	r := ring{mesh, a}
	return autodiff.CustomVJP(b, []ir.Value{q, k, v}, r.forward, r.backward)[0]
}

// checkRing records an error in b for what a ring does not compute, and resolves the scale.
func checkRing(b *ir.Builder, q, k, v ir.Value, mesh ops.MeshAttrs, a *ops.AttentionAttrs) bool {
	for _, x := range []ir.Value{q, k, v} {
		if !b.Require("ring_attention", "operand q, k or v", x.Valid()) {
			return false
		}
	}
	size, known := q.Dim(-1).Const()
	switch {
	case mesh.MeshAxis == "" || mesh.Devices < 1:
		b.Failf("ring_attention", []ir.Value{q, k, v}, ir.Attrf("%d devices along %q; there must be 1 or more, and the axis must have a name", mesh.Devices, mesh.MeshAxis))
		return false
	case mesh.Devices > maxRing:
		b.Failf("ring_attention", []ir.Value{q, k, v}, ir.Attrf("%d devices along %q; a graph has the blocks of %d at most", mesh.Devices, mesh.MeshAxis, maxRing))
		return false
	case a.Window != 0:
		b.Failf("ring_attention", []ir.Value{q, k, v}, ir.Attrf("window is %d; a ring has none, it must be 0", a.Window))
		return false
	case a.Causal && q.Rank() > 1 && k.Rank() > 1 && q.Dim(-2) != k.Dim(-2):
		b.Failf("ring_attention", []ir.Value{q, k, v}, ir.Shapef("a device has %s queries and %s keys; with causal the numbers must be equal", q.Dim(-2), k.Dim(-2)))
		return false
	case a.Scale == 0 && known:
		a.Scale = 1 / math.Sqrt(float64(max(size, 1)))
	}
	return true
}

// maxRing bounds the devices of a ring, since the graph has nodes for the block of each.
const maxRing = 4096

// ring is attention around a ring of devices.
type ring struct {
	mesh ops.MeshAttrs
	a    ops.AttentionAttrs
}

// next sends a value to the next device.
func (r ring) next(b *ir.Builder, x ir.Value) ir.Value {
	if r.mesh.Devices == 1 {
		return x
	}
	sources, targets := make([]int, r.mesh.Devices), make([]int, r.mesh.Devices)
	for i := range sources {
		sources[i], targets[i] = i, (i+1)%r.mesh.Devices
	}
	return ops.CollectivePermute(b, x, r.mesh, sources, targets)
}

// block returns the attention options for the block that a device holds after some steps, and
// whether the device attends to it; an invalid Value means always.
func (r ring) block(b *ir.Builder, steps int) (ops.AttentionAttrs, ir.Value) {
	a := r.a
	if steps == 0 || !a.Causal {
		return a, ir.Value{}
	}
	a.Causal = false // an earlier block is attended to as a whole, a later one not at all
	return a, ops.Ge(b, ops.AxisIndex(b, r.mesh), ops.Const(b, ir.I32, float64(steps)))
}

// forward returns the result, and as residuals the operands, the result and the log-sum-exp of the scores.
func (r ring) forward(b *ir.Builder, in []ir.Value) (results, kept []ir.Value) {
	q, k, v := in[0], in[1], in[2]
	var out, lse ir.Value
	for step := range r.mesh.Devices {
		if step > 0 {
			k, v = r.next(b, k), r.next(b, v)
		}
		a, seen := r.block(b, step)
		y, l := ops.AttentionForward(b, q, k, v, ir.Value{}, a)
		if b.Err() != nil {
			return []ir.Value{{}}, nil
		}
		y = ops.Convert(b, y, l.DType())
		if step == 0 {
			out, lse = y, l
			continue
		}
		if seen.Valid() {
			l = ops.Select(b, ops.BroadcastTo(b, seen, l.Shape()), l, ops.ConstLike(b, l, math.Inf(-1)))
		}
		out, lse = merge(b, out, lse, y, l)
	}
	out = ops.Convert(b, out, q.DType())
	return []ir.Value{out}, []ir.Value{in[0], in[1], in[2], out, lse}
}

// merge returns the attention to two blocks of keys, and the log-sum-exp of all scores, of those to each.
func merge(b *ir.Builder, out, lse, y, l ir.Value) (ir.Value, ir.Value) {
	both := ops.LogAddExp(b, lse, l)
	weight := func(l ir.Value) ir.Value {
		w := ops.ExpandDims(b, ops.Exp(b, ops.Sub(b, l, both)), -1)
		return ops.BroadcastTo(b, w, y.Shape())
	}
	return ops.Add(b, ops.Mul(b, out, weight(lse)), ops.Mul(b, y, weight(l))), both
}

// attentionOf returns the operands of an attention and what its derivative reads, from what the forward pass kept and
// the cotangent of the result.
func attentionOf(b *ir.Builder, kept []ir.Value, dout ir.Value) (ops.AttentionOperands, ops.AttentionResiduals) {
	out, lse := kept[3], kept[4]
	wide := func(x ir.Value) ir.Value { return ops.Convert(b, x, lse.DType()) }
	delta := ops.ReduceSum(b, ops.Mul(b, wide(dout), wide(out)), -1)
	return ops.AttentionOperands{Q: kept[0], K: kept[1], V: kept[2]}, ops.AttentionResiduals{LSE: lse, Delta: delta, DOut: dout}
}

// backward returns the cotangents of the operands. Those of keys and values travel with them, and
// one step further, back to their device.
func (r ring) backward(b *ir.Builder, kept, ct []ir.Value) []ir.Value {
	in, residuals := attentionOf(b, kept, ct[0])
	wide := func(x ir.Value) ir.Value { return ops.Convert(b, x, residuals.LSE.DType()) }
	var sum [3]ir.Value
	for step := range r.mesh.Devices {
		if step > 0 {
			in.K, in.V = r.next(b, in.K), r.next(b, in.V)
			sum[1], sum[2] = r.next(b, sum[1]), r.next(b, sum[2])
		}
		a, seen := r.block(b, step)
		for i, d := range ops.AttentionBackward(b, in, residuals, a) {
			if b.Err() != nil {
				return make([]ir.Value, 3)
			}
			d = wide(d)
			if seen.Valid() {
				d = ops.Select(b, ops.BroadcastTo(b, seen, d.Shape()), d, ops.ZerosLike(b, d))
			}
			if step > 0 {
				d = ops.Add(b, sum[i], d)
			}
			sum[i] = d
		}
	}
	return r.home(b, sum[:], kept)
}

// home sends the cotangents of keys and values, which are one step behind, to their device, and converts
// those of all operands to the element types of the operands.
func (r ring) home(b *ir.Builder, sum, operands []ir.Value) []ir.Value {
	sum[1], sum[2] = r.next(b, sum[1]), r.next(b, sum[2])
	for i, ct := range sum {
		sum[i] = ops.Convert(b, ct, operands[i].DType())
	}
	return sum
}
