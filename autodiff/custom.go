package autodiff

import (
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// CustomVJP adds a function with its own reverse derivative and returns its results. forward
// computes the results from the operands, and the residuals that backward needs. backward gets the
// residuals and a cotangent for each result of a floating or complex element type, in order. It
// returns a cotangent for each operand of such a type, in order, and must be linear in the
// cotangents. Both functions must use no values except their arguments.
//
// Forward mode and higher orders work too: they differentiate backward, and forward for its
// residuals.
func CustomVJP(b *ir.Builder, operands []ir.Value,
	forward func(b *ir.Builder, in []ir.Value) (results, kept []ir.Value),
	backward func(b *ir.Builder, kept, ct []ir.Value) []ir.Value,
) []ir.Value {
	if !b.Require(ops.OpCustomVJP, "function forward or backward", forward != nil && backward != nil) {
		return make([]ir.Value, 1)
	}
	var results, kept []ir.Type
	f := b.Subgraph("forward", func(b *ir.Builder) {
		r, k := forward(b, declare(b, "in", ir.TypesOf(operands)))
		results, kept = ir.TypesOf(r), ir.TypesOf(k)
		declareOutputs(b, append(append([]ir.Value(nil), r...), k...))
	})
	g := b.Subgraph("backward", func(b *ir.Builder) {
		k := declare(b, "kept", kept)
		declareOutputs(b, backward(b, k, declare(b, "cotangent", withTangents(results))))
	})
	if b.Err() != nil {
		return make([]ir.Value, len(results))
	}
	out := ops.CustomVJP(b, f, g, len(results), operands...)
	return out[:min(len(results), len(out))]
}

// CustomJVP adds a function with its own forward derivative and returns its results. f computes the
// results from the operands. jvp gets the operands and a tangent for each operand of a floating or
// complex element type, in order. It returns a tangent for each result of such a type, in order,
// and must be linear in the tangents. Both functions must use no values except their arguments.
// Reverse mode transposes jvp, and higher orders differentiate it.
func CustomJVP(b *ir.Builder, operands []ir.Value,
	f func(b *ir.Builder, in []ir.Value) []ir.Value,
	jvp func(b *ir.Builder, in, t []ir.Value) []ir.Value,
) []ir.Value {
	if !b.Require(ops.OpCustomJVP, "function or derivative", f != nil && jvp != nil) {
		return make([]ir.Value, 1)
	}
	types := ir.TypesOf(operands)
	primal := b.Subgraph("function", func(b *ir.Builder) { declareOutputs(b, f(b, declare(b, "in", types))) })
	tangent := b.Subgraph("tangent", func(b *ir.Builder) {
		in := declare(b, "in", types)
		declareOutputs(b, jvp(b, in, declare(b, "tangent", withTangents(types))))
	})
	if b.Err() != nil {
		return make([]ir.Value, 1)
	}
	return ops.CustomJVP(b, primal, tangent, operands...)
}

// StopGradient returns x; every derivative treats the result as a constant.
func StopGradient(b *ir.Builder, x ir.Value) ir.Value { return ops.StopGradient(b, x) }

// withTangents returns the types whose values have tangents.
func withTangents(types []ir.Type) []ir.Type {
	var out []ir.Type
	for _, t := range types {
		if derive.Differentiable(t.DType) {
			out = append(out, t)
		}
	}
	return out
}

// declare declares inputs of the given types, named prefix and position.
func declare(b *ir.Builder, prefix string, types []ir.Type) []ir.Value {
	in := make([]ir.Value, len(types))
	for i, t := range types {
		in[i] = b.Port(ir.InputPort, position(prefix, i), t)
	}
	return in
}

func declareOutputs(b *ir.Builder, values []ir.Value) {
	for i, v := range values {
		b.Output(position("out", i), v)
	}
}
