package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// LAMB is [AdamW] with a layerwise step size, after You et al., Large Batch Optimization for Deep
// Learning (2020), as in optax.lamb: with u = m̂/(√v̂ + Eps) + WeightDecay·p,
//
//	p ← p − lr·u·|p|/|u|
//
// where the quotient is 1 if either Euclidean norm is 0. A zero field means its default, which is
// 1e-6 for Eps and 0 for WeightDecay.
type LAMB struct{ Adam }

// Begin checks the hyperparameters and returns the rule.
func (o LAMB) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.Eps = orDefault(o.Eps, 1e-6)
	a := o.Adam.withDefaults(b)
	first, second := biasCorrection(b, a.Beta1, count), biasCorrection(b, a.Beta2, count)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		d := p.DType()
		m, v := movingAverage(b, slots[0], g, a.Beta1), movingAverage(b, slots[1], ops.Mul(b, g, g), a.Beta2)
		spread := addConst(b, ops.Sqrt(b, ops.Div(b, v, ops.Convert(b, second, d))), a.Eps)
		u := l2Decay(b, p, ops.Div(b, ops.Div(b, m, ops.Convert(b, first, d)), spread), a.WeightDecay)
		trust := trustRatio(b, p, u, 1)
		return descend(b, p, ops.Mul(b, u, trust), rate), []ir.Value{m, v}
	}
}

// Lion is the optimizer of Chen et al., Symbolic Discovery of Optimization Algorithms (2023), as in
// optax.lion:
//
//	p ← p − lr·(sign(Beta1·m + (1−Beta1)·g) + WeightDecay·p)
//	m ← Beta2·m + (1−Beta2)·g
//
// A zero field means its default.
type Lion struct {
	Beta1       float64 // in (0, 1); 0.9 by default
	Beta2       float64 // in (0, 1); 0.99 by default
	WeightDecay float64 // not negative; 0 for none
}

// Slots returns "m".
func (Lion) Slots() []string { return []string{"m"} }

// Begin checks the hyperparameters and returns the rule.
func (o Lion) Begin(b *ir.Builder, rate, _ ir.Value) Rule {
	o.Beta1, o.Beta2 = orDefault(o.Beta1, 0.9), orDefault(o.Beta2, 0.99)
	check(b, "lion", hyper{"Beta1", o.Beta1, unit}, hyper{"Beta2", o.Beta2, unit}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		u := ops.Sign(b, movingAverage(b, slots[0], g, o.Beta1))
		return descend(b, p, l2Decay(b, p, u, o.WeightDecay), rate), []ir.Value{movingAverage(b, slots[0], g, o.Beta2)}
	}
}

// Adafactor is the optimizer of Shazeer and Stern, Adafactor: Adaptive Learning Rates with
// Sublinear Memory Cost (2018), as in torch.optim.Adafactor. For a parameter of rank 2 or more it
// keeps mean squares of the rows and columns of the gradient instead of each element. The step is
// relative to the size of the parameter; the learning rate limits the relative rate 1/√t. A zero
// field means its default.
type Adafactor struct {
	Decay       float64 // exponent of t in the weight of new squares, negative; -0.8 by default
	MinRMS      float64 // lower bound of the root mean square of a parameter; 1e-3 by default
	Clip        float64 // upper bound of the root mean square of a step; 1 by default
	WeightDecay float64 // not negative; 0 for none
}

// SlotsFor returns "rows" and "columns" for a parameter of rank 2 or more, and "v" otherwise.
func (Adafactor) SlotsFor(param ir.Type) []Slot {
	rank := len(param.Shape)
	if rank < 2 {
		return []Slot{{"v", param.Shape}}
	}
	rows, columns := param.Shape.Clone(), param.Shape.Clone()
	rows[rank-1], columns[rank-2] = ir.N(1), ir.N(1)
	return []Slot{{"rows", rows}, {"columns", columns}}
}

// Slots returns all names of SlotsFor.
func (Adafactor) Slots() []string { return []string{"rows", "columns", "v"} }

// Begin checks the hyperparameters and returns the rule.
func (o Adafactor) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.Decay, o.MinRMS, o.Clip = orDefault(o.Decay, -0.8), orDefault(o.MinRMS, 1e-3), orDefault(o.Clip, 1)
	check(b, "adafactor", hyper{"Decay", o.Decay, negative}, hyper{"MinRMS", o.MinRMS, positive}, hyper{"Clip", o.Clip, positive}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	share := ops.Exp(b, scale(b, ops.Log(b, count), o.Decay))
	relative := ops.Min(b, rate, ops.Rsqrt(b, count))
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		d := p.DType()
		tiny := ops.Const(b, d, d.Epsilon())
		size := ops.Max(b, rootMeanSquare(b, p), ops.Const(b, d, o.MinRMS))
		alpha := ops.Mul(b, size, ops.Convert(b, relative, d))
		square := ops.Mul(b, g, g)
		toward := func(old, x ir.Value) ir.Value {
			return ops.Add(b, old, ops.Mul(b, ops.Convert(b, share, d), ops.Sub(b, x, old)))
		}
		var out []ir.Value
		estimate := square
		if p.Rank() < 2 {
			estimate = toward(slots[0], square)
			out = []ir.Value{estimate}
		} else {
			rows := toward(slots[0], ops.KeepDims(b, ops.Mean, square, -1))
			columns := toward(slots[1], ops.KeepDims(b, ops.Mean, square, -2))
			whole := ops.Max(b, ops.KeepDims(b, ops.Mean, rows, -2), tiny)
			estimate = ops.Div(b, ops.Mul(b, rows, columns), whole)
			out = []ir.Value{rows, columns}
		}
		u := ops.Mul(b, g, ops.Rsqrt(b, ops.Max(b, estimate, ops.Mul(b, tiny, tiny))))
		over := ops.Max(b, scale(b, rootMeanSquare(b, u), 1/o.Clip), ops.Const(b, d, 1))
		return ops.Sub(b, decoupledDecay(b, p, rate, o.WeightDecay), ops.Mul(b, u, ops.Div(b, alpha, over))), out
	}
}

func rootMeanSquare(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Sqrt(b, ops.Mean(b, ops.Mul(b, x, x)))
}

// Muon is the optimizer of Jordan et al., Muon: An optimizer for hidden layers in neural networks
// (2024), as in torch.optim.Muon. It orthogonalises the momentum of a matrix: five Newton–Schulz
// iterations x ← a·x + (b·xxᵀ + c·(xxᵀ)²)·x with a = 3.4445, b = −4.775, c = 2.0315 bring its
// singular values near 1. Parameters that are not of rank 2 are updated by [AdamW] with the fields
// of Rest. The iteration runs in the type of the update; PyTorch uses bf16. A zero field means its
// default.
type Muon struct {
	Momentum    float64 // of Nesterov's step, in (0, 1); 0.95 by default
	WeightDecay float64 // not negative; 0.1 by default
	Rest        AdamW
}

// SlotsFor returns "m" for a matrix, and the slots of [AdamW] otherwise.
func (Muon) SlotsFor(param ir.Type) []Slot {
	slots := []Slot{{"m", param.Shape}, {"v", param.Shape}}
	if len(param.Shape) == 2 {
		return slots[:1]
	}
	return slots
}

// Slots returns all names of SlotsFor.
func (Muon) Slots() []string { return []string{"m", "v"} }

// Begin checks the hyperparameters and returns the rule.
func (o Muon) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.Momentum, o.WeightDecay = orDefault(o.Momentum, 0.95), orDefault(o.WeightDecay, 0.1)
	check(b, "muon", hyper{"Momentum", o.Momentum, unit}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	rest := o.Rest.Begin(b, rate, count)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		if p.Rank() != 2 {
			return rest(b, p, g, slots)
		}
		m := movingAverage(b, slots[0], g, o.Momentum)
		u := newtonSchulz(b, movingAverage(b, g, m, 1-o.Momentum))
		if rows, columns := p.Dim(0), p.Dim(1); rows != columns {
			tall := ops.Div(b, ops.DimSize(b, p.DType(), rows), ops.DimSize(b, p.DType(), columns))
			u = ops.Mul(b, u, ops.Sqrt(b, ops.Max(b, tall, ops.OnesLike(b, tall))))
		}
		return descend(b, decoupledDecay(b, p, rate, o.WeightDecay), u, rate), []ir.Value{m}
	}
}

// newtonSchulz orthogonalises a matrix. It multiplies along the longer side, so that the products
// are small.
func newtonSchulz(b *ir.Builder, x ir.Value) ir.Value {
	rows, known := x.Dim(0).Const()
	columns, also := x.Dim(1).Const()
	tall := known && also && rows > columns
	if tall {
		x = ops.Transpose(b, x, 1, 0)
	}
	x = ops.Div(b, x, ops.Max(b, ops.Norm(b, x, 2), ops.Const(b, x.DType(), 1e-7)))
	for range 5 {
		square := ops.MatMul(b, x, ops.Transpose(b, x, 1, 0))
		by := ops.Add(b, scale(b, square, -4.775), scale(b, ops.MatMul(b, square, square), 2.0315))
		x = ops.Add(b, scale(b, x, 3.4445), ops.MatMul(b, by, x))
	}
	if tall {
		x = ops.Transpose(b, x, 1, 0)
	}
	return x
}

// ScheduleFree is [AdamW] without a schedule, after Defazio et al., The Road Less Scheduled (2024).
// Gradients are computed at the parameters y, which lie between the iterates z and their mean x.
// Evaluate models at x, the slot "x" of each parameter. For a constant rate, c = 1/t and
//
//	u ← g/(√(v/(1−Beta2ᵗ)) + Eps) + WeightDecay·y
//	z ← z − lr·u
//	x ← (1−c)·x + c·z
//	y ← (1−Beta1)·z + Beta1·x
//
// A zero field means its default, which is 0 for WeightDecay.
type ScheduleFree struct{ Adam }

// SlotsFor returns "z", "v" and "x" of the parameter's shape, and "w" of rank 0, the sum of the
// squared rates.
func (ScheduleFree) SlotsFor(param ir.Type) []Slot {
	return []Slot{{"z", param.Shape}, {"v", param.Shape}, {"x", param.Shape}, {"w", nil}}
}

// Slots returns all names of SlotsFor.
func (ScheduleFree) Slots() []string { return []string{"z", "v", "x", "w"} }

// Begin checks the hyperparameters and returns the rule.
func (o ScheduleFree) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	a := o.Adam.withDefaults(b)
	second := biasCorrection(b, a.Beta2, count)
	first := ops.Eq(b, count, ops.OnesLike(b, count))
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		d := p.DType()
		rate := ops.Convert(b, rate, d)
		z, x := ops.Select(b, first, p, slots[0]), ops.Select(b, first, p, slots[2])
		v := movingAverage(b, slots[1], ops.Mul(b, g, g), a.Beta2)
		u := ops.Div(b, g, addConst(b, ops.Sqrt(b, ops.Div(b, v, ops.Convert(b, second, d))), a.Eps))
		z = descend(b, z, l2Decay(b, p, u, a.WeightDecay), rate)
		square := ops.Mul(b, rate, rate)
		sum := ops.Add(b, slots[3], square)
		c := ops.Div(b, square, ops.Max(b, sum, ops.Const(b, d, math.SmallestNonzeroFloat32)))
		x = ops.Add(b, x, ops.Mul(b, c, ops.Sub(b, z, x)))
		return movingAverage(b, x, z, a.Beta1), []ir.Value{z, v, x, sum}
	}
}
