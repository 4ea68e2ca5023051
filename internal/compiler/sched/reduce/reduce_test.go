package reduce_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/reduce"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestRowsAreVectorized reduces rows that fit registers and rows that exceed them, by vectors where their elements
// are contiguous, in place too; others are unrolled with a remainder loop. Workgroups of one
// warp make short rows long, for the simulator.
func TestRowsAreVectorized(t *testing.T) {
	target := schedtest.Hopper()
	target.Invocations = loop.Warp
	for _, c := range []struct {
		name    string
		columns int
		d       ir.DType
		turned  bool
		vectors bool
	}{
		{"whole vectors", 1096, ir.BF16, false, true},
		{"whole vectors of f32", 1096, ir.F32, false, true},
		{"a part of a vector", 1097, ir.BF16, false, false},
		{"columns", 1096, ir.F32, true, false},
		{"a few vectors for each thread", 640, ir.BF16, false, true},
		{"in registers", 512, ir.BF16, false, true},
		{"in registers, of f32", 384, ir.F32, false, true},
		{"in registers, not for all threads", 508, ir.BF16, false, false},
		{"in registers, columns", 512, ir.F32, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				dims := ir.Dims(4, c.columns)
				x := ops.Convert(b, b.Input("x", c.d, dims...), ir.F32)
				if c.turned {
					x = ops.Transpose(b, b.Input("turned", ir.F32, ir.Dims(c.columns, 4)...), 1, 0)
				}
				label := ops.BroadcastInDim(b, b.Input("labels", ir.I32, ir.N(4)), dims, []int{0})
				picked := ops.Select(b, ops.Eq(b, label, ops.Iota(b, ir.I32, 1, dims...)), x, ops.ZerosLike(b, x))
				b.Output("picked", ops.ReduceSum(b, picked, 1))
				b.Output("soft", ops.Convert(b, ops.Softmax(b, x, 1), c.d))
			})
			if vectors := countVectors(schedtest.Kernels(t, g, target)) > 0; vectors != c.vectors {
				t.Errorf("vectors: %t", vectors)
			}
			schedtest.RunOn(t, g, target, 0)
		})
	}
}

// TestNormsOfVectorsKeepTheirRows differentiates the norm of rows in registers that are picked by an index, with a residual
// stream in another type: both are loaded as vectors, the index once for a row.
func TestNormsOfVectorsKeepTheirRows(t *testing.T) {
	const rows, columns = 5, 512
	target := schedtest.Hopper()
	target.Invocations = loop.Warp
	g := schedtest.Build(t, func(b *ir.Builder) {
		table, ids := b.Param("table", ir.F32, ir.Dims(7, columns)...), b.Input("ids", ir.I32, ir.N(rows))
		x := ops.Add(b, ops.Take(b, table, ids, 0, ops.OutsideClip), ops.Convert(b, b.Input("x", ir.BF16, ir.Dims(rows, columns)...), ir.F32))
		y := ops.RMSNorm(b, x, b.Param("scale", ir.F32, ir.N(columns)), 1e-5)
		b.Output("y", ops.Convert(b, y, ir.BF16))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, ops.Tanh(b, y)), 0, 1))
	})
	schedtest.RunOn(t, g, target, 0)
	d, err := autodiff.Grad(g, "loss")
	if err != nil {
		t.Fatal(err)
	}
	schedtest.RunOn(t, d, target, 0)
}

// TestRowsThatExceedTheCacheHaveWideWorkgroups has rows that several stages read and that would
// overflow the cache with workgroups of the usual size.
func TestRowsThatExceedTheCacheHaveWideWorkgroups(t *testing.T) {
	target := schedtest.Hopper()
	target.Invocations, target.Workgroup[0] = 1024, 1024
	for _, c := range []struct {
		name          string
		rows, columns int
		of            func(b *ir.Builder, x ir.Value) ir.Value
		threads       int
	}{
		{"short rows", 16384, 4096, softmaxOfRows, 256},
		{"long rows", 8192, 24000, softmaxOfRows, 512},
		{"longer rows", 4096, 50304, softmaxOfRows, 1024},
		{"few long rows", 16, 50304, softmaxOfRows, 256},
		{"long rows that are read once", 8192, 50304, sumOfRows, 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				b.Output("y", c.of(b, ops.Convert(b, b.Input("x", ir.BF16, ir.Dims(c.rows, c.columns)...), ir.F32)))
			})
			if k := schedtest.Kernels(t, g, target)[0]; k.Threads() != c.threads {
				t.Errorf("%s has %d threads, not %d", k.Name, k.Threads(), c.threads)
			}
		})
	}
	g := schedtest.Build(t, func(b *ir.Builder) { b.Output("y", softmaxOfRows(b, b.Input("x", ir.F32, ir.Dims(2, 33000)...))) })
	schedtest.RunOn(t, g, schedtest.Forced(t, g, target, func(*plan.Choice) (emit.Schedule, bool) {
		return emit.Schedule{Family: emit.Rows, Lanes: 1024, Rows: 1, Split: 1}, true
	}), 0)
}

func softmaxOfRows(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) }

func sumOfRows(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 1) }

// TestColumnUnrolling unrolls columns of narrow types more, and splits columns into whole
// iterations where possible.
func TestColumnUnrolling(t *testing.T) {
	for _, c := range []struct {
		name     string
		rows     int
		d        ir.DType
		together int
	}{
		{"whole turns of 16 bits", 1408, ir.BF16, 16},
		{"whole turns of 32 bits", 1472, ir.F32, 8},
		{"no whole turns", 1403, ir.BF16, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				x := ops.Convert(b, b.Input("x", c.d, ir.Dims(c.rows, 72)...), ir.F32)
				b.Output("y", ops.ReduceSum(b, x, 0))
			})
			together := 1
			loop.Walk(schedtest.Kernels(t, g, schedtest.Hopper())[0].Body, func(s loop.Stmt) {
				if f, is := s.(*loop.For); is && f.Unroll {
					n, _ := f.End.IntConst()
					together = int(n)
				}
			})
			if together != c.together {
				t.Errorf("a thread reads %d elements together, not %d", together, c.together)
			}
			schedtest.RunOn(t, g, schedtest.Hopper(), 0)
		})
	}
}

// shortReductions are short reductions whose rows are contiguous, with the channels given.
var shortReductions = []struct {
	name  string
	build func(b *ir.Builder, batch, side, channels int) ir.Value
}{
	{"gradient of a max pool", func(b *ir.Builder, batch, side, channels int) ir.Value {
		x := b.Input("x", ir.BF16, ir.Dims(batch, side, side, channels)...)
		pool := func(b *ir.Builder, in []ir.Value) []ir.Value {
			attrs := ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}}
			return []ir.Value{ops.ReduceSum(b, ops.Sin(b, ops.MaxPool(b, ops.Convert(b, in[0], ir.F32), attrs)))}
		}
		return autodiff.GradOf(b, pool, []ir.Value{x})[0]
	}},
	{"depthwise convolution", func(b *ir.Builder, batch, side, channels int) ir.Value {
		x := b.Input("x", ir.BF16, ir.Dims(batch, side, side, channels)...)
		w := ops.Convert(b, b.Input("w", ir.F32, ir.Dims(5, 5, 1, channels)...), ir.BF16)
		return ops.Conv2D(b, x, w, ir.Value{}, ops.Conv2DAttrs{PadLo: []int{2, 2}, PadHi: []int{2, 2}, Groups: channels})
	}},
	{"max pool with the number of its maxima", func(b *ir.Builder, batch, side, channels int) ir.Value {
		windows := ops.Windows(b, b.Input("x", ir.F32, ir.Dims(batch, side, side, channels)...), ops.WindowsAttrs{Axes: []int{1, 2}, Sizes: []int{3, 3}})
		most := ops.KeepDims(b, ops.ReduceMax, windows, 4, 5)
		return ops.ReduceSum(b, ops.Convert(b, ops.Eq(b, windows, ops.BroadcastTo(b, most, windows.Shape())), ir.F32), 4, 5)
	}},
	{"windows with a weight for each position", func(b *ir.Builder, batch, side, channels int) ir.Value {
		x := b.Input("x", ir.F32, ir.Dims(batch, side, side, channels)...)
		x = ops.Mul(b, x, b.Input("weight", ir.F32, ir.Dims(side, side, 1)...))
		return ops.AvgPool(b, x, ops.AvgPoolAttrs{PoolAttrs: ops.PoolAttrs{Sizes: []int{3, 3}, PadLo: []int{1, 1}, PadHi: []int{1, 1}}})
	}},
	{"mean over positions", func(b *ir.Builder, batch, side, channels int) ir.Value {
		return ops.Relu(b, ops.Mean(b, b.Input("x", ir.F32, ir.Dims(4*batch*side, side, channels)...), 1))
	}},
}

// TestAdjacentRowsShareAThread reduces short rows a vector of them per thread, where there are
// enough; the values are those of the reference.
func TestAdjacentRowsShareAThread(t *testing.T) {
	target := schedtest.Hopper()
	for _, c := range shortReductions {
		for _, size := range []struct {
			batch, side, channels int
			vectors               bool
		}{{64, 32, 64, true}, {1, 16, 64, false}, {64, 32, 66, false}} {
			g := schedtest.Build(t, func(b *ir.Builder) { b.Output("y", c.build(b, size.batch, size.side, size.channels)) })
			if found := countVectors(schedtest.Kernels(t, g, target)) > 0; found != size.vectors {
				t.Errorf("%s of %v: vectors: %t", c.name, size, found)
			}
		}
		t.Run(c.name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) { b.Output("y", c.build(b, 2, 7, 12)) })
			shared := 0
			forced := schedtest.Forced(t, g, target, func(o *plan.Choice) (emit.Schedule, bool) {
				for _, r := range o.Candidates {
					if r.Schedule == reduce.VectorPerThread {
						shared++
						return r.Schedule, true
					}
				}
				return emit.Schedule{}, false
			})
			if shared == 0 {
				t.Error("no reduction can share a thread")
			}
			schedtest.RunOn(t, g, forced, 0)
		})
	}
}

// TestTilesOfWindows reduces windows by tiles: convolutions of one and a few channels a group and both gradients, with strides and
// dilations, sums that are split into parts of which the last is short, and what follows in the same kernel.
func TestTilesOfWindows(t *testing.T) {
	targets := []plan.Target{schedtest.Hopper(), plan.WebGPU()}
	for _, c := range []struct {
		name              string
		n, side, ch, each int // each channels a group
		window, stride    int
		dilation          int
		expected          [2]int // by target
	}{
		{"3 by 3", 3, 8, 8, 1, 3, 1, 1, [2]int{3, 3}},
		{"3 by 3, 5 channels", 3, 8, 5, 1, 3, 1, 1, [2]int{0, 3}},
		{"5 by 5, stride 2", 2, 16, 4, 1, 5, 2, 1, [2]int{2, 2}},
		{"7 by 7", 5, 7, 8, 1, 7, 1, 1, [2]int{3, 3}},
		{"3 by 3, dilation 2", 1, 12, 4, 1, 3, 1, 2, [2]int{3, 3}},
		{"4 channels a group", 8, 12, 16, 4, 3, 1, 1, [2]int{3, 1}},
		{"8 channels a group", 2, 6, 16, 8, 3, 1, 1, [2]int{2, 1}},
		{"4 channels a group, stride 2", 2, 8, 8, 4, 3, 2, 1, [2]int{2, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				x := b.Param("x", ir.F32, ir.Dims(c.n, c.side, c.side, c.ch)...)
				w := b.Param("w", ir.F32, ir.Dims(c.window, c.window, c.each, c.ch)...)
				pad := c.window / 2 * c.dilation
				y := ops.Conv2D(b, x, w, ir.Value{}, ops.Conv2DAttrs{
					Strides: []int{c.stride, c.stride}, Dilations: []int{c.dilation, c.dilation}, PadLo: []int{pad, pad}, PadHi: []int{pad, pad}, Groups: c.ch / c.each,
				})
				b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, y)))
			})
			g, err := autodiff.Grad(g, "loss")
			if err != nil {
				t.Fatal(err)
			}
			for i, target := range targets {
				tiles := 0
				forced := schedtest.Forced(t, g, target, func(o *plan.Choice) (emit.Schedule, bool) {
					for _, r := range o.Candidates {
						if r.Family == emit.Columns && r.M > 0 {
							tiles++
							return r.Schedule, true
						}
					}
					return emit.Schedule{}, false
				})
				if tiles < c.expected[i] {
					t.Errorf("%s: %d reductions by tiles, want %d", target.Name, tiles, c.expected[i])
				}
				schedtest.RunOn(t, g, forced, 0)
			}
		})
	}
}

// TestTilesOfPlanes reduces windows along the last axis: depthwise convolutions of planes, whose rows are adjacent in memory along
// the planes' last axis, in tiles of positions of the axis before, and short ones along one axis with a row for each thread.
func TestTilesOfPlanes(t *testing.T) {
	for _, c := range []struct {
		name  string
		x, w  []int
		a     ops.ConvAttrs
		tiles bool
	}{
		{"3 by 3", []int{2, 8, 8, 10}, []int{8, 1, 3, 3}, ops.ConvAttrs{PadLo: []int{1, 1}, PadHi: []int{1, 1}}, true},
		{"5 by 5, stride 1 by 2", []int{2, 4, 12, 9}, []int{4, 1, 5, 5}, ops.ConvAttrs{Strides: []int{1, 2}, PadLo: []int{2, 2}, PadHi: []int{2, 2}}, false},
		{"4 along one axis", []int{2, 16, 31}, []int{16, 1, 4}, ops.ConvAttrs{PadLo: []int{3}, PadHi: []int{0}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.a.FeatureGroups = ir.N(c.w[0])
			g := schedtest.Build(t, func(b *ir.Builder) {
				b.Output("y", ops.ConvGeneral(b, b.Input("x", ir.BF16, ir.Dims(c.x...)...), b.Param("w", ir.BF16, ir.Dims(c.w...)...), c.a))
			})
			tiles, columns := false, false
			forced := schedtest.Forced(t, g, schedtest.Hopper(), func(o *plan.Choice) (emit.Schedule, bool) {
				columns = columns || o.Candidates[0].Family == emit.Columns && o.Candidates[0].Lanes == 1
				for _, r := range o.Candidates {
					if r.Family == emit.Columns && r.M > 0 {
						tiles = true
						return r.Schedule, true
					}
				}
				return emit.Schedule{}, false
			})
			if tiles != c.tiles || !columns && c.a.Strides == nil {
				t.Errorf("tiles: %t; a row for each thread: %t", tiles, columns)
			}
			schedtest.RunOn(t, g, forced, 0)
		})
	}
}

// TestTilesOfFewChannelsLoadVectors reduces windows of a few channels a group by WebGPU in tiles of four adjacent rows, which share
// what they load; halves are loaded one by one. A channel alone shares nothing with its neighbours, whose tiles have one row.
func TestTilesOfFewChannelsLoadVectors(t *testing.T) {
	for _, c := range []struct {
		name         string
		d            ir.DType
		ch, channels int // channels a group
		width        int
		vectors      bool
	}{
		{"f32", ir.F32, 12, 4, 4, true},
		{"f16", ir.F16, 12, 4, 4, false},
		{"bf16", ir.BF16, 12, 4, 4, false},
		{"3 channels a group", ir.F32, 9, 3, 0, false},
		{"1 channel a group", ir.F32, 12, 1, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				x, w := b.Input("x", c.d, ir.Dims(2, 9, 7, c.ch)...), b.Param("w", c.d, ir.Dims(2, 2, c.channels, c.ch)...)
				b.Output("y", ops.Conv2D(b, x, w, ir.Value{}, ops.Conv2DAttrs{PadLo: []int{1, 1}, PadHi: []int{0, 1}, Groups: c.ch / c.channels}))
			})
			width := 0
			forced := schedtest.Forced(t, g, plan.WebGPU(), func(o *plan.Choice) (emit.Schedule, bool) {
				for _, r := range o.Candidates {
					if r.Family == emit.Columns && r.M > 0 {
						width = r.Each
						return r.Schedule, true
					}
				}
				return emit.Schedule{}, false
			})
			if width != c.width {
				t.Errorf("tiles of %d adjacent rows, want %d (0: no tiles)", width, c.width)
			}
			if vectors := countVectors(schedtest.Kernels(t, g, forced)) > 0; vectors != c.vectors {
				t.Errorf("vectors: %t", vectors)
			}
			schedtest.RunOn(t, g, forced, 0)
		})
	}
}

// TestColumnSumsInOneLaunch sums columns of some hundred rows by WebGPU whole, with more threads for each of fewer columns, where
// a second launch would take longer; those of many rows are split.
func TestColumnSumsInOneLaunch(t *testing.T) {
	for _, c := range []struct{ rows, columns, launches int }{{1024, 64, 1}, {1000, 37, 1}, {8000, 64, 2}} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			b.Output("y", ops.ReduceSum(b, b.Input("x", ir.F32, ir.Dims(c.rows, c.columns)...), 0))
		})
		if names := schedtest.Run(t, g); len(names) != c.launches {
			t.Errorf("%d × %d: kernels %v, want %d", c.rows, c.columns, names, c.launches)
		}
	}
}

// TestPointsOfARowShareItsChecks checks the index of a row of a table once, not for each of its points in registers.
func TestPointsOfARowShareItsChecks(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := ops.Embedding(b, b.Param("table", ir.F32, ir.Dims(50, 256)...), b.Input("i", ir.I32, ir.N(4096)))
		b.Output("y", ops.LayerNorm(b, x, b.Param("scale", ir.F32, ir.N(256)), b.Param("bias", ir.F32, ir.N(256)), 1e-5))
	})
	checks := 0
	for _, k := range schedtest.Kernels(t, g, schedtest.Hopper()) {
		loop.MapExprs(k.Body, func(x scalar.Expr) scalar.Expr {
			scalar.Walk(x, func(n scalar.Expr) {
				if n.Op == scalar.OpCheck {
					checks++
				}
			})
			return x
		})
	}
	if checks != 1 {
		t.Errorf("%d checks", checks)
	}
}

// countVectors counts the vector loads of short reductions.
func countVectors(kernels []*loop.Kernel) (n int) {
	for _, k := range kernels {
		if !strings.HasPrefix(k.Name, "reduce") {
			continue
		}
		loop.Walk(k.Body, func(s loop.Stmt) {
			if _, is := s.(*loop.LoadVec); is {
				n++
			}
		})
	}
	return n
}

// TestSplitsBindTheirTensors: the second kernel of split rows stores three results and reads three tensors and the partial
// results of three reductions, more than WebGPU binds, so that tuning must not try them.
func TestSplitsBindTheirTensors(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(256, 1024)...)
		for i, sum := range []ir.Value{ops.ReduceSum(b, x, 1), ops.ReduceSum(b, ops.Mul(b, x, x), 1), ops.ReduceMax(b, x, 1)} {
			b.Output(string(rune('p'+i)), ops.Mul(b, sum, b.Input(string(rune('a'+i)), ir.F32, ir.N(256))))
		}
	})
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	choices, err := plan.Choices(m, plan.WebGPU())
	if err != nil || len(choices) != 1 {
		t.Fatalf("%d choices, %v", len(choices), err)
	}
	for _, c := range choices[0].Candidates {
		if c.Split > 1 {
			t.Error(c.Schedule)
		}
	}
}

// TestStatisticsOfPartsAreSplit sums over the pixels of channels that come from several arrays: their rows are as contiguous as
// those of one, and are split over workgroups.
func TestStatisticsOfPartsAreSplit(t *testing.T) {
	const pixels = 1 << 15
	for _, c := range []struct {
		name  string
		value func(b *ir.Builder, in func(name string, channels int) ir.Value) ir.Value
	}{
		{"a concatenation", func(b *ir.Builder, in func(string, int) ir.Value) ir.Value {
			return ops.Concatenate(b, 1, in("x", 96), in("y", 32), in("z", 32))
		}},
		{"a slice", func(b *ir.Builder, in func(string, int) ir.Value) ir.Value {
			return ops.Slice(b, in("x", 256), ir.Dims(0, 96), ir.Dims(pixels, 160), []int{1, 1})
		}},
	} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			x := c.value(b, func(name string, channels int) ir.Value { return b.Input(name, ir.F32, ir.Dims(pixels, channels)...) })
			centred := ops.Sub(b, x, ops.KeepDims(b, ops.Mean, x, 0))
			b.Output("variance", ops.Mean(b, ops.Square(b, centred), 0))
		})
		parts := 0
		for _, k := range schedtest.Kernels(t, g, schedtest.Hopper()) {
			if strings.HasSuffix(k.Name, "_parts") {
				parts++
			}
		}
		if parts != 1 {
			t.Errorf("%s: %d groups of sums are split, not the one of the mean and the variance", c.name, parts)
		}
	}
}
