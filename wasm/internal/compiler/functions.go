package compiler

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// functions are those of package ops that make several ops, under the names the
// host knows them by: values and numbers in, one value out.
var functions map[string]function

type function struct {
	values, numbers int
	call            func(b *ir.Builder, x []ir.Value, n []float64) ir.Value
}

func init() {
	functions = map[string]function{
		"matmul": {2, 0, func(b *ir.Builder, x []ir.Value, _ []float64) ir.Value { return ops.MatMul(b, x[0], x[1]) }},
		"cross_entropy_mean": {2, 0, func(b *ir.Builder, x []ir.Value, _ []float64) ir.Value {
			return ops.CrossEntropyMean(b, x[0], x[1])
		}},
		"take": {2, 2, func(b *ir.Builder, x []ir.Value, n []float64) ir.Value {
			return ops.Take(b, x[0], x[1], int(n[0]), outside(n[1]))
		}},
		"take_unordered": {2, 2, func(b *ir.Builder, x []ir.Value, n []float64) ir.Value {
			return ops.TakeUnordered(b, x[0], x[1], int(n[0]), outside(n[1]))
		}},
		"take_along_axis": {2, 2, func(b *ir.Builder, x []ir.Value, n []float64) ir.Value {
			return ops.TakeAlongAxis(b, x[0], x[1], int(n[0]), outside(n[1]))
		}},
		"expand_dims": {1, 1, func(b *ir.Builder, x []ir.Value, n []float64) ir.Value {
			return ops.ExpandDims(b, x[0], int(n[0]))
		}},
		"random_key": {0, 1, func(b *ir.Builder, _ []ir.Value, n []float64) ir.Value { return ops.Key(b, uint64(n[0])) }},
		"fold_in":    {2, 0, func(b *ir.Builder, x []ir.Value, _ []float64) ir.Value { return ops.FoldIn(b, x[0], x[1]) }},
		"pop_count":  {1, 0, func(b *ir.Builder, x []ir.Value, _ []float64) ir.Value { return ops.PopCount(b, x[0]) }},
		"clz":        {1, 0, func(b *ir.Builder, x []ir.Value, _ []float64) ir.Value { return ops.CLZ(b, x[0]) }},
	}
}

// outside returns the mode for indices out of range, by its index in the host's list.
func outside(place float64) string {
	list := []string{ops.OutsideFill, ops.OutsideClip, ops.OutsideWrap}
	if i := int(place); i >= 0 && i < len(list) {
		return list[i]
	}
	return "unknown"
}

// callFunction (builder, name, values, numbers) → value.
func callFunction(b *builder, _ *wire.Service, r *wire.Request, w *wire.Response) error {
	name := r.Text()
	in := b.valueList(r)
	var numbers []float64
	for range r.U32() {
		if numbers = append(numbers, r.F64()); r.Err() != nil {
			return r.Err()
		}
	}
	f, ok := functions[name]
	if !ok {
		return ir.Errorf(ir.ErrName, "unknown function %q", name)
	}
	if len(in) != f.values || len(numbers) != f.numbers {
		return ir.Shapef("%s is given %d values and %d numbers; it needs %d and %d", name, len(in), len(numbers), f.values, f.numbers)
	}
	return b.keep(w, f.call(b.b, in, numbers))
}
