package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// BenchmarkWidths reports the minimum nanoseconds per element of maps that load, store or
// compute with elements of other widths than f32.
func BenchmarkWidths(b *testing.B) {
	const n = 1 << 19
	input := func(b *ir.Builder, d ir.DType) ir.Value { return b.Input("x", d, ir.N(n)) }
	twice := func(d ir.DType) func(b *ir.Builder) ir.Value {
		return func(b *ir.Builder) ir.Value {
			x := input(b, d)
			return ops.Add(b, x, ops.Mul(b, x, x))
		}
	}
	convert := func(from, to ir.DType) func(b *ir.Builder) ir.Value {
		return func(b *ir.Builder) ir.Value { return ops.Convert(b, input(b, from), to) }
	}
	for _, job := range []struct {
		name  string
		build func(b *ir.Builder) ir.Value
	}{
		{"a mask chooses", func(b *ir.Builder) ir.Value {
			y := b.Input("y", ir.F32, ir.N(n))
			return ops.Select(b, input(b, ir.Bool), y, ops.Neg(b, y))
		}},
		{"a mask is made", func(b *ir.Builder) ir.Value {
			x := input(b, ir.F32)
			return ops.Gt(b, x, ops.ConstLike(b, x, 0.5))
		}},
		{"u8 to f32", convert(ir.U8, ir.F32)},
		{"i8 to f32", convert(ir.I8, ir.F32)},
		{"f32 to u8", convert(ir.F32, ir.U8)},
		{"f32 to f64", convert(ir.F32, ir.F64)},
		{"f64 to f32", convert(ir.F64, ir.F32)},
		{"i32 to i64", convert(ir.I32, ir.I64)},
		{"i64 to f32", convert(ir.I64, ir.F32)},
		{"x+x*x in i8", twice(ir.I8)},
		{"x+x*x in i16", twice(ir.I16)},
		{"x+x*x in i32", twice(ir.I32)},
		{"x+x*x in i64", twice(ir.I64)},
		{"x+x*x in f16", twice(ir.F16)},
		{"x+x*x in bf16", twice(ir.BF16)},
	} {
		b.Run(job.name, func(b *testing.B) {
			best := bestOf(b, bindAny(b, compileGraphs(b, ir.Entry{Name: "run", Graph: build(b, func(b *ir.Builder) {
				b.Output("y", job.build(b))
			})})))
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(best[0]/n, "ns/element")
		})
	}
}
