package optim

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// SOAP is the optimizer of Vyas et al., SOAP: Improving and Stabilizing Shampoo using Adam (2024).
// It runs [AdamW] on a matrix in the eigenbases of the running means of g·gᵀ and gᵀ·g:
//
//	m ← Beta1·m + (1−Beta1)·g              t ← Qlᵀ·g·Qr
//	v ← Beta2·v + (1−Beta2)·t²
//	p ← p − lr·(Ql·(Qlᵀ·m̂·Qr/(√v̂ + Eps))·Qrᵀ + WeightDecay·p)
//	L ← Beta2·L + (1−Beta2)·g·gᵀ           R ← Beta2·R + (1−Beta2)·gᵀ·g
//
// After every Every steps, Ql and Qr are replaced by the orthonormal factors of the QR
// decompositions of L·Ql and R·Qr, one step of power iteration; they start as identities.
// Parameters that are not of rank 2 are updated by [AdamW] with the same fields. A zero field means
// its default.
type SOAP struct {
	Beta1       float64 // in (0, 1); 0.95 by default
	Beta2       float64 // in (0, 1); 0.95 by default
	Eps         float64 // positive; 1e-8 by default
	Every       int     // in steps, positive; 10 by default
	WeightDecay float64 // not negative; 0.01 by default
}

// SlotsFor returns "m" and "v", and for a matrix also "l", "r", "ql" and "qr".
func (SOAP) SlotsFor(param ir.Type) []Slot {
	slots := []Slot{{"m", param.Shape}, {"v", param.Shape}}
	if len(param.Shape) == 2 {
		m, n := param.Shape[0], param.Shape[1]
		slots = append(slots, Slot{"l", ir.Shape{m, m}}, Slot{"r", ir.Shape{n, n}}, Slot{"ql", ir.Shape{m, m}}, Slot{"qr", ir.Shape{n, n}})
	}
	return slots
}

// Slots returns all names of SlotsFor.
func (SOAP) Slots() []string { return []string{"m", "v", "l", "r", "ql", "qr"} }

// Begin checks the hyperparameters and returns the rule.
func (o SOAP) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.Beta1, o.Beta2, o.Eps, o.WeightDecay = orDefault(o.Beta1, 0.95), orDefault(o.Beta2, 0.95), orDefault(o.Eps, 1e-8), orDefault(o.WeightDecay, 0.01)
	if o.Every == 0 {
		o.Every = 10
	}
	check(b, "soap", hyper{"Every", float64(o.Every), positive})
	rest := AdamW{o.Beta1, o.Beta2, o.Eps, o.WeightDecay}.Begin(b, rate, count)
	first, second := biasCorrection(b, o.Beta1, count), biasCorrection(b, o.Beta2, count)
	begins := ops.Eq(b, count, ops.OnesLike(b, count))
	due := ops.Eq(b, ops.Rem(b, count, ops.ConstLike(b, count, float64(max(o.Every, 1)))), ops.ZerosLike(b, count))
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		if p.Rank() != 2 {
			return rest(b, p, g, slots)
		}
		d := p.DType()
		ql, qr := basis(b, begins, slots[4]), basis(b, begins, slots[5])
		rotated := project(b, ql, g, qr)
		m, v := movingAverage(b, slots[0], g, o.Beta1), movingAverage(b, slots[1], ops.Mul(b, rotated, rotated), o.Beta2)
		spread := addConst(b, ops.Sqrt(b, ops.Div(b, v, ops.Convert(b, second, d))), o.Eps)
		step := ops.Div(b, ops.Div(b, project(b, ql, m, qr), ops.Convert(b, first, d)), spread)
		step = ops.MatMul(b, ops.MatMul(b, ql, step), flipped(b, qr))
		l := movingAverage(b, slots[2], ops.MatMul(b, g, flipped(b, g)), o.Beta2)
		r := movingAverage(b, slots[3], ops.MatMul(b, flipped(b, g), g), o.Beta2)
		bases := ops.Cond(b, due, []ir.Value{l, ql, r, qr}, powerIteration, func(_ *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{in[1], in[3]}
		})
		return descend(b, p, l2Decay(b, p, step, o.WeightDecay), rate), append([]ir.Value{m, v, l, r}, bases...)
	}
}

// powerIteration makes one step of power iteration on both bases.
func powerIteration(b *ir.Builder, in []ir.Value) []ir.Value {
	ql, _ := ops.QR(b, ops.MatMul(b, in[0], in[1]), false)
	qr, _ := ops.QR(b, ops.MatMul(b, in[2], in[3]), false)
	return []ir.Value{ql, qr}
}

// basis returns q, or the identity at the first step.
func basis(b *ir.Builder, begins, q ir.Value) ir.Value {
	n := q.Dim(0)
	unit := ops.Convert(b, ops.Eq(b, ops.Iota(b, ir.I32, 0, n, n), ops.Iota(b, ir.I32, 1, n, n)), q.DType())
	return ops.Select(b, begins, unit, q)
}

// project returns Qlᵀ·x·Qr.
func project(b *ir.Builder, ql, x, qr ir.Value) ir.Value {
	return ops.MatMul(b, ops.MatMul(b, flipped(b, ql), x), qr)
}

func flipped(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) }
