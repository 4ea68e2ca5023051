//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/cuda/fake"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cuda"
)

// Kernels that count in 64 bits, really run on small arrays.
func TestKernelsCountIn64BitsOnAFakeGPU(t *testing.T) {
	fake.Install(t, true)
	b := cuda.Long()
	t.Run("training", func(t *testing.T) { backendtest.Graphs(t, b) })
	t.Run("large maps", func(t *testing.T) { backendtest.LargeMaps(t, b) })
	t.Run("what long arrays are tested by", func(t *testing.T) { longArrays(t, b, matrix{300, 200}) })
}

func TestGPUPassesTheSuiteCountingIn64Bits(t *testing.T) {
	b := cuda.Long()
	backendtest.Require(t, b.Name(), b.Probe())
	backendtest.Run(t, b)
}

// Sizes of the matrix that tests fill. In f32 longMatrix takes 10.4 GiB.
type matrix struct{ rows, columns int }

var longMatrix = matrix{70_000, 40_000}

// numbers is such a matrix: each element is its index in row-major order, modulo 2³².
func numbers(b *ir.Builder, rows, columns int) ir.Value {
	shape := ir.Dims(rows, columns)
	row := ops.Mul(b, ops.Iota(b, ir.U32, 0, shape...), ops.Const(b, ir.U32, float64(columns)))
	return ops.Add(b, row, ops.Iota(b, ir.U32, 1, shape...))
}

// checksum is a sum of all elements modulo 2³² that changes where two of them change places.
func checksum(b *ir.Builder, x ir.Value) ir.Value {
	dims, _ := x.Shape().Ints()
	weight := ops.Add(b, ops.Mul(b, numbers(b, dims[0], dims[1]), ops.Const(b, ir.U32, 2)), ops.Const(b, ir.U32, 1))
	return ops.ReduceSum(b, ops.Mul(b, x, weight))
}

// sumOf is the checksum of a matrix with the given elements.
func sumOf(m matrix, element func(row, column uint32) uint32) []uint32 {
	sum, number := uint32(0), uint32(0)
	for r := range uint32(m.rows) {
		for c := range uint32(m.columns) {
			sum += element(r, c) * (2*number + 1)
			number++
		}
	}
	return []uint32{sum}
}

// longCase is a graph of a long array with what its outputs are: a state "x" is there, the
// matrix of [numbers].
type longCase struct {
	name  string
	build func(b *ir.Builder, x ir.Value)
	want  func() map[string][]uint32
}

func (m matrix) cases() []longCase {
	n := m.rows * m.columns
	return []longCase{
		{"elements", func(b *ir.Builder, x ir.Value) {
			b.Output("sum", checksum(b, x))
			b.Output("last", ops.Slice(b, x, ir.Dims(m.rows-1, m.columns-2), ir.Dims(1, 2), []int{1, 1}))
		}, func() map[string][]uint32 {
			return map[string][]uint32{"sum": sumOf(m, m.numberAt), "last": {uint32(n - 2), uint32(n - 1)}}
		}},
		{"transpose", func(b *ir.Builder, x ir.Value) {
			b.Output("sum", checksum(b, kept(b, "turned", ops.Transpose(b, x, 1, 0))))
		}, func() map[string][]uint32 {
			return map[string][]uint32{"sum": sumOf(matrix{m.columns, m.rows}, func(r, c uint32) uint32 { return m.numberAt(c, r) })}
		}},
		{"sums", func(b *ir.Builder, x ir.Value) {
			b.Output("column", ops.SliceAxis(b, ops.ReduceSum(b, x, 0), 0, ir.N(m.columns-1), ir.N(1)))
			b.Output("row", ops.SliceAxis(b, ops.ReduceSum(b, x, 1), 0, ir.N(m.rows-1), ir.N(1)))
		}, func() map[string][]uint32 {
			sum := []uint32{0}
			for r := range uint32(m.rows) {
				sum[0] += m.numberAt(r, uint32(m.columns-1))
			}
			return map[string][]uint32{"column": sum, "row": m.lastRow()}
		}},
		{"running sum", func(b *ir.Builder, x ir.Value) {
			sums := kept(b, "running", ops.CumSum(b, x, ops.CumSumAttrs{Axis: 1}))
			b.Output("row", ops.Slice(b, sums, ir.Dims(m.rows-1, m.columns-1), ir.Dims(1, 1), []int{1, 1}))
		}, func() map[string][]uint32 { return map[string][]uint32{"row": m.lastRow()} }},
		{"rows that indices name", func(b *ir.Builder, x ir.Value) {
			at := ops.Literal(b, ir.Ints(ir.I32, []int64{int64(m.rows - 1), 0, int64(m.rows / 2)}, 3))
			b.Output("far", ops.SliceAxis(b, ops.Take(b, x, at, 0, ops.OutsideClip), 1, ir.N(m.columns-1), ir.N(1)))
			update := ops.Const(b, ir.U32, 7, ir.Dims(3, m.columns)...)
			set := ops.Scatter(b, x, ops.ExpandDims(b, at, -1), update, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
			b.Output("sum", checksum(b, kept(b, "set", set)))
		}, func() map[string][]uint32 {
			last, middle, end := uint32(m.columns-1), uint32(m.rows/2), uint32(m.rows-1)
			return map[string][]uint32{
				"far": {m.numberAt(end, last), m.numberAt(0, last), m.numberAt(middle, last)},
				"sum": sumOf(m, func(r, c uint32) uint32 {
					if r == 0 || r == middle || r == end {
						return 7
					}
					return m.numberAt(r, c)
				}),
			}
		}},
		{"joined in one axis", func(b *ir.Builder, x ir.Value) {
			flat := ops.Reshape(b, x, ir.N(n))
			both := kept(b, "joined", ops.Concatenate(b, 0, flat, ops.Reverse(b, flat, 0)))
			b.Output("middle", ops.SliceAxis(b, both, 0, ir.N(n-1), ir.N(3)))
			b.Output("ends", ops.Slice(b, both, ir.Dims(n), ir.Dims(2), []int{n - 1}))
		}, func() map[string][]uint32 {
			last := uint32(n - 1)
			return map[string][]uint32{"middle": {last, last, last - 1}, "ends": {last, 0}}
		}},
		{"normalised rows", func(b *ir.Builder, x ir.Value) {
			y := kept(b, "normalised", ops.Softmax(b, small(b, x, ir.F32), 1))
			far := ops.Abs(b, ops.Sub(b, ops.ReduceSum(b, y, 1), ops.Const(b, ir.F32, 1)))
			b.Output("rows", ops.ReduceSum(b, ops.Convert(b, ops.Lt(b, far, ops.Const(b, ir.F32, 1e-3)), ir.U32)))
		}, func() map[string][]uint32 { return map[string][]uint32{"rows": {uint32(m.rows)}} }},
		{"product of a long factor", m.longFactor(ir.F32), m.ofLongFactor},
		{"product of a long factor of bf16", m.longFactor(ir.BF16), m.ofLongFactor},
		{"long product", m.longProduct(ir.F32), m.ofLongProduct},
		{"long product of bf16", m.longProduct(ir.BF16), m.ofLongProduct},
	}
}

// small are the numbers of an array modulo 5.
func small(b *ir.Builder, x ir.Value, d ir.DType) ir.Value {
	return ops.Convert(b, ops.Mod(b, x, ops.Const(b, ir.U32, 5)), d)
}

// picked is how many columns longFactor takes, and how many rows longProduct spreads.
const picked = 64

// longFactor multiplies by a matrix that picks the last columns, the last one first.
func (m matrix) longFactor(d ir.DType) func(b *ir.Builder, x ir.Value) {
	return func(b *ir.Builder, x ir.Value) {
		shape := ir.Dims(m.columns, picked)
		last := ops.Sub(b, ops.Const(b, ir.I32, float64(m.columns-1)), ops.Iota(b, ir.I32, 1, shape...))
		pick := ops.Convert(b, ops.Eq(b, ops.Iota(b, ir.I32, 0, shape...), last), d)
		b.Output("sum", checksum(b, ops.Convert(b, kept(b, "product", ops.MatMul(b, small(b, x, d), pick)), ir.U32)))
	}
}

func (m matrix) ofLongFactor() map[string][]uint32 {
	return map[string][]uint32{"sum": sumOf(matrix{m.rows, picked}, func(r, c uint32) uint32 { return m.numberAt(r, uint32(m.columns)-1-c) % 5 })}
}

// longProduct repeats the columns of a matrix.
func (m matrix) longProduct(d ir.DType) func(b *ir.Builder, x ir.Value) {
	return func(b *ir.Builder, _ ir.Value) {
		shape := ir.Dims(picked, m.columns)
		place := ops.Mod(b, ops.Iota(b, ir.I32, 1, shape...), ops.Const(b, ir.I32, picked))
		spread := ops.Convert(b, ops.Eq(b, ops.Iota(b, ir.I32, 0, shape...), place), d)
		product := kept(b, "product", ops.MatMul(b, small(b, numbers(b, m.rows, picked), d), spread))
		b.Output("sum", checksum(b, ops.Convert(b, product, ir.U32)))
	}
}

func (m matrix) ofLongProduct() map[string][]uint32 {
	return map[string][]uint32{"sum": sumOf(m, func(r, c uint32) uint32 { return (r*picked + c%picked) % 5 })}
}

func (m matrix) numberAt(row, column uint32) uint32 { return row*uint32(m.columns) + column }

func (m matrix) lastRow() []uint32 {
	sum := uint32(0)
	for c := range uint32(m.columns) {
		sum += m.numberAt(uint32(m.rows-1), c)
	}
	return []uint32{sum}
}

// kept is a value in a separate array.
func kept(b *ir.Builder, name string, v ir.Value) ir.Value {
	b.State(name, v.DType(), v.Shape()...)
	b.SetState(name, v)
	return v
}

// roomy returns the backend if the device has so much memory, or skips the test.
func roomy(t testing.TB, gib int64) native.Backend {
	t.Helper()
	b := gpu(t)
	if memory := b.Info().Memory; memory < gib<<30 {
		t.Skipf("%d GiB of memory are needed, and the device has %d bytes", gib, memory)
	}
	return b
}

// Arrays of more than 2³¹ elements hold at all of their places what belongs there.
func TestGPUHoldsArraysOfMoreThan31Bits(t *testing.T) { longArrays(t, roomy(t, 60), longMatrix) }

func longArrays(t *testing.T, b native.Backend, m matrix) {
	for _, c := range m.cases() {
		t.Run(c.name, func(t *testing.T) {
			var entries []ir.Entry
			for name, f := range map[string]func(b *ir.Builder, x ir.Value){
				"fill": func(b *ir.Builder, _ ir.Value) { b.SetState("x", numbers(b, m.rows, m.columns)) },
				"look": func(b *ir.Builder, x ir.Value) {
					b.SetState("x", x)
					c.build(b, x)
				},
			} {
				g, err := ir.Build(name, func(b *ir.Builder) { f(b, b.State("x", ir.U32, ir.Dims(m.rows, m.columns)...)) })
				must(t, err)
				entries = append(entries, ir.Entry{Name: name, Graph: g})
			}
			module, err := ir.NewModule("long", entries...)
			must(t, err)
			p, err := b.Compile(context.Background(), module, native.Options{})
			must(t, err)
			defer func() { must(t, p.Close(context.Background())) }()
			outputs(t, p, "fill")
			out := outputs(t, p, "look")
			for name, want := range c.want() {
				got, err := out[name].Uint32s()
				must(t, err)
				if !slices.Equal(got, want) {
					t.Errorf("%s is %v, not %v", name, got, want)
				}
			}
		})
	}
}

func outputs(t testing.TB, p native.Program, entry string) map[string]native.Tensor {
	t.Helper()
	r, err := p.Run(context.Background(), entry, nil)
	must(t, err)
	out, err := r.Wait(context.Background())
	must(t, err)
	return out
}

// BenchmarkAdd times an addition of arrays of f32, long ones and others, by the bytes that
// it moves.
func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{1 << 30, 1<<31 + 1<<20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, err := ir.Build("add", func(b *ir.Builder) {
				kept(b, "sum", ops.Add(b, b.Param("x", ir.F32, ir.N(n)), b.Param("y", ir.F32, ir.N(n))))
			})
			must(b, err)
			bandwidth(b, g, 3*4*n)
		})
	}
}

// BenchmarkLong times kernels that move or read a long matrix of f32, and one of a quarter of
// its rows, by the bytes that it moves.
func BenchmarkLong(b *testing.B) {
	for _, rows := range []int{longMatrix.rows / 4, longMatrix.rows} {
		for name, f := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{
			"transpose": func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) },
			"bias": func(b *ir.Builder, x ir.Value) ir.Value {
				bias := b.Param("bias", ir.F32, ir.N(longMatrix.columns))
				return ops.Add(b, x, ops.BroadcastInDim(b, bias, x.Shape(), []int{1}))
			},
			"softmax":        func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) },
			"sum_of_rows":    func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 1) },
			"sum_of_columns": func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 0) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) {
				moved := 4 * rows * longMatrix.columns
				g, err := ir.Build("long", func(b *ir.Builder) {
					y := f(b, b.Param("x", ir.F32, ir.Dims(rows, longMatrix.columns)...))
					kept(b, "y", y)
					n, _ := y.Shape().Size().Const()
					moved += 4 * n
				})
				must(b, err)
				bandwidth(b, g, moved)
			})
		}
	}
}

// bandwidth times the entry of a graph, which moves the given number of bytes.
func bandwidth(b *testing.B, g *ir.Graph, bytes int) {
	p := compile(b, roomy(b, 60), g)
	must(b, cuda.Replay(p, "step", 3))
	b.ResetTimer()
	must(b, cuda.Replay(p, "step", b.N))
	b.ReportMetric(float64(bytes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}
