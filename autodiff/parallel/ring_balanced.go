package parallel

import (
	"math"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// BalancedRingAttention is [RingAttention] with a.Causal for a sequence that is divided so that all devices have the
// same work: of 2·devices equal chunks of the rows, device i has chunk i and then chunk 2·devices − 1 − i (Dubey et
// al., The Llama 3 Herd of Models, 2024, section 3.3.2; also called zigzag order). Of a block of another device, a
// device computes half of the products that RingAttention does. The number of a device's rows is even. The errors are those of RingAttention, and of kind
// [ir.ErrAttr] without a.Causal and [ir.ErrShape] for an odd number of rows.
func BalancedRingAttention(b *ir.Builder, q, k, v ir.Value, mesh ops.MeshAttrs, a ops.AttentionAttrs) ir.Value {
	if !checkRing(b, q, k, v, mesh, &a) {
		return ir.Value{}
	}
	rows, known := q.Dim(-2).Const()
	switch {
	case !a.Causal:
		b.Failf("ring_attention", []ir.Value{q, k, v}, ir.Attrf("causal is false; the balanced order needs it, RingAttention does not"))
		return ir.Value{}
	case !known || rows%2 != 0:
		b.Failf("ring_attention", []ir.Value{q, k, v}, ir.Shapef("a device has %s rows; the number must be constant and even", q.Dim(-2)))
		return ir.Value{}
	}
	r := balancedRing{ring{mesh, a}, rows / 2}
	return autodiff.CustomVJP(b, []ir.Value{q, k, v}, r.forward, r.backward)[0]
}

// balancedRing is attention around a ring of devices that have two chunks of some rows each, an early one and a late one.
type balancedRing struct {
	ring
	chunk int
}

// halves returns the chunks of a value along an axis.
func (r balancedRing) halves(b *ir.Builder, x ir.Value, axis int) (early, late ir.Value) {
	return ops.SliceAxis(b, x, axis, ir.N(0), ir.N(r.chunk)), ops.SliceAxis(b, x, axis, ir.N(r.chunk), ir.N(r.chunk))
}

// The axes of rows, from the end: of queries, keys and values, and of arrays with one number per row.
const (
	ofRows    = -2
	ofNumbers = -1
)

// choice selects the attention that a device computes for a block of some steps before: that of its late chunk to
// the block's early chunk, and a second one. If the block is of a device before this one, the second is that of the
// early chunk to the early one, else that of the late chunk to the late one.
type choice struct{ before ir.Value }

func (r balancedRing) choice(b *ir.Builder, steps int) choice {
	return choice{ops.Ge(b, ops.AxisIndex(b, r.mesh), ops.Const(b, ir.I32, float64(steps)))}
}

// of returns x if the block is of a device before this one, else y.
func (c choice) of(b *ir.Builder, x, y ir.Value) ir.Value {
	return ops.Select(b, ops.BroadcastTo(b, c.before, x.Shape()), x, y)
}

func (r balancedRing) forward(b *ir.Builder, in []ir.Value) (results, kept []ir.Value) {
	q, k, v := in[0], in[1], in[2]
	y, l := ops.AttentionForward(b, q, k, v, ir.Value{}, r.a)
	if b.Err() != nil {
		return []ir.Value{{}}, nil
	}
	y = ops.Convert(b, y, l.DType())
	var out, lse [2]ir.Value
	out[0], out[1] = r.halves(b, y, ofRows)
	lse[0], lse[1] = r.halves(b, l, ofNumbers)
	q0, q1 := r.halves(b, q, ofRows)
	a := r.a
	a.Causal = false
	for step := 1; step < r.mesh.Devices; step++ {
		k, v = r.next(b, k), r.next(b, v)
		k0, k1 := r.halves(b, k, ofRows)
		v0, v1 := r.halves(b, v, ofRows)
		c := r.choice(b, step)
		y, l := ops.AttentionForward(b, q1, k0, v0, ir.Value{}, a)
		out[1], lse[1] = merge(b, out[1], lse[1], ops.Convert(b, y, l.DType()), l)
		y, l = ops.AttentionForward(b, c.of(b, q0, q1), c.of(b, k0, k1), c.of(b, v0, v1), ir.Value{}, a)
		y = ops.Convert(b, y, l.DType())
		none := ops.ConstLike(b, l, math.Inf(-1))
		out[0], lse[0] = merge(b, out[0], lse[0], y, c.of(b, l, none))
		out[1], lse[1] = merge(b, out[1], lse[1], y, c.of(b, none, l))
	}
	y = ops.Convert(b, ops.Concatenate(b, ofRows, out[:]...), q.DType())
	return []ir.Value{y}, []ir.Value{in[0], in[1], in[2], y, ops.Concatenate(b, ofNumbers, lse[:]...)}
}

func (r balancedRing) backward(b *ir.Builder, kept, ct []ir.Value) []ir.Value {
	in, residuals := attentionOf(b, kept, ct[0])
	wide := func(x ir.Value) ir.Value { return ops.Convert(b, x, residuals.LSE.DType()) }
	sum := ops.AttentionBackward(b, in, residuals, r.a)
	if b.Err() != nil {
		return make([]ir.Value, 3)
	}
	for i := range sum {
		sum[i] = wide(sum[i])
	}
	a := r.a
	a.Causal = false
	q0, q1 := r.halves(b, in.Q, ofRows)
	lse0, lse1 := r.halves(b, residuals.LSE, ofNumbers)
	delta0, delta1 := r.halves(b, residuals.Delta, ofNumbers)
	dout0, dout1 := r.halves(b, residuals.DOut, ofRows)
	for step := 1; step < r.mesh.Devices; step++ {
		in.K, in.V = r.next(b, in.K), r.next(b, in.V)
		sum[1], sum[2] = r.next(b, sum[1]), r.next(b, sum[2])
		k0, k1 := r.halves(b, in.K, ofRows)
		v0, v1 := r.halves(b, in.V, ofRows)
		c := r.choice(b, step)
		always := ops.AttentionBackward(b, ops.AttentionOperands{Q: q1, K: k0, V: v0}, ops.AttentionResiduals{LSE: lse1, Delta: delta1, DOut: dout1}, a)
		operands := ops.AttentionOperands{Q: c.of(b, q0, q1), K: c.of(b, k0, k1), V: c.of(b, v0, v1)}
		other := ops.AttentionBackward(b, operands, ops.AttentionResiduals{LSE: c.of(b, lse0, lse1), Delta: c.of(b, delta0, delta1), DOut: c.of(b, dout0, dout1)}, a)
		for i := range sum {
			d, e := wide(always[i]), wide(other[i])
			none := ops.ZerosLike(b, e)
			early, late := c.of(b, e, none), c.of(b, none, e)
			if i == 0 { // of queries
				late = ops.Add(b, late, d)
			} else {
				early = ops.Add(b, early, d)
			}
			sum[i] = ops.Add(b, sum[i], ops.Concatenate(b, ofRows, early, late))
		}
	}
	return r.home(b, sum, kept)
}
