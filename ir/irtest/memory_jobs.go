package irtest

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// lineLength is the row length of the larger jobs, in elements.
const lineLength = 4096

// linesWithin returns the number of such f32 rows in a tensor of the given bytes, at most
// 16,384.
func linesWithin(limit int) int { return min(16384, limit/4/lineLength) }

// gradient is the gradient of an embedding table: updates of the rows of some tokens.
type gradient struct {
	name                string
	rows, width, tokens int
	// squared is how often a uniform number is squared to choose a token's row: with 0
	// rows are equally frequent, with 2 the first of 50,257 has one token in 15, like the
	// most frequent words.
	squared int
}

// updateCases are gradients of tables, whose updates are added in one order, or in any.
func updateCases(limit int) []memoryCase {
	const width = 768
	words := min(50257, limit/4/width)
	var cases []memoryCase
	for _, g := range []gradient{
		{"embedding-gradient", words, width, 4096, 0},
		{"words-gradient", words, width, 8192, 2},
		{"few-rows-gradient", 65, 384, 16384, 0},
	} {
		cases = append(cases, g.job(g.name, false), g.job(g.name+"-unordered", true))
	}
	return cases
}

// job counts as traffic the table, which is written, and for each token its update and its
// row, each row once.
func (g gradient) job(name string, unordered bool) memoryCase {
	bytes := 4 * g.width * (g.rows + g.tokens + 2*min(g.rows, g.tokens))
	return memoryCase{
		MemoryJob{Name: name, Bytes: float64(bytes)},
		func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
			at := x("at", g.tokens, 1)
			for range g.squared {
				at = ops.Square(b, at)
			}
			at = ops.Mul(b, at, ops.Const(b, ir.F32, float64(g.rows)))
			return ops.ScatterAdd(b, ops.Zeros(b, ir.F32, ir.Dims(g.rows, g.width)...), ops.Convert(b, at, ir.I32),
				x("u", g.tokens, g.width), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}, Unordered: unordered}})
		},
	}
}

// orderCases are sorts and scans.
func orderCases(limit int) []memoryCase {
	lines, keys := linesWithin(limit), min(1<<24, limit/4)
	return []memoryCase{
		{
			MemoryJob{Name: "sort", Keys: float64(keys)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.Sort(b, ops.SortAttrs{}, x("x", keys))[0]
			},
		},
		{
			MemoryJob{Name: "sort-rows", Keys: 1 << 22},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.Sort(b, ops.SortAttrs{Axis: 1}, x("x", 4096, 1024))[0]
			},
		},
		{
			MemoryJob{Name: "cumsum-rows", Bytes: 8 * 4096 * float64(lines)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.CumSum(b, x("x", lines, 4096), ops.CumSumAttrs{Axis: 1})
			},
		},
		{
			MemoryJob{Name: "cumsum-columns", Bytes: 8 * 4096 * float64(lines)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.CumSum(b, x("x", 4096, lines), ops.CumSumAttrs{})
			},
		},
		{
			MemoryJob{Name: "cumsum-one-row", Bytes: 8 * float64(keys)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.CumSum(b, x("x", keys), ops.CumSumAttrs{})
			},
		},
		{
			MemoryJob{Name: "recurrence-rows", Bytes: 12 * 4096 * float64(lines)},
			func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
				return ops.LinearRecurrence(b, x("x", lines, 4096), x("y", lines, 4096), ops.CumSumAttrs{Axis: 1})
			},
		},
	}
}

// topCases choose the largest elements of many rows, of vocabularies, and of one long row.
func topCases(limit int) []memoryCase {
	var out []memoryCase
	for _, c := range []struct {
		name             string
		rows, columns, k int
	}{{"top-32-of-rows", 2048, 2048, 32}, {"top-256-of-vocabularies", 8, 128256, 256}, {"top-50-of-a-row", 1, min(1<<20, limit/4), 50}} {
		job := MemoryJob{Name: c.name, Keys: float64(c.rows * c.columns)}
		out = append(out, memoryCase{job, func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
			best, _ := ops.TopK(b, x("x", c.rows, c.columns), ops.TopKAttrs{K: c.k, Axis: 1})
			return best
		}})
	}
	return out
}

// streamCases read each element once and write one for it: maps of functions that take
// some arithmetic, layout changes, and sums.
func streamCases(limit int) []memoryCase {
	lines := linesWithin(limit)
	both := 8 * lineLength * float64(lines)
	matrix := func(name string, f func(b *ir.Builder, x ir.Value) ir.Value) memoryCase {
		return memoryCase{MemoryJob{Name: name, Bytes: both}, func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
			return f(b, x("x", lines, lineLength))
		}}
	}
	cases := []memoryCase{
		matrix("negate", ops.Neg), matrix("gelu", ops.Gelu), matrix("erf", ops.Erf), matrix("tanh", ops.Tanh), matrix("exp", ops.Exp),
		matrix("softmax", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) }),
		matrix("dropout", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Dropout(b, x, ops.Key(b, 7), 0.1) }),
		matrix("transpose", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) }),
		matrix("add-transposed", func(b *ir.Builder, x ir.Value) ir.Value {
			y := ops.Reshape(b, x, ir.Dims(lineLength, lines)...)
			return ops.Add(b, x, ops.Transpose(b, y, 1, 0))
		}),
		matrix("heads-forward", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Transpose(b, ops.Reshape(b, x, ir.Dims(lines/256, 256, 64, 64)...), 0, 2, 1, 3)
		}),
		matrix("channels-last", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Transpose(b, ops.Reshape(b, x, ir.Dims(lines/64, 64, lineLength)...), 0, 2, 1)
		}),
	}
	sums := matrix("sum-columns", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 0) })
	sums.job.Bytes /= 2
	return append(append(cases, sums), randomCases(lines)...)
}

// randomCases draw numbers, for a key that is given, since nothing else would be read.
func randomCases(lines int) []memoryCase {
	drawing := func(name string, f func(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value) memoryCase {
		job := MemoryJob{Name: name, Bytes: 4 * lineLength * float64(lines)}
		return memoryCase{job, func(b *ir.Builder, x func(name string, dims ...int) ir.Value) ir.Value {
			return f(b, ops.Bitcast(b, x("key", 2), ir.U32), ir.Dims(lines, lineLength)...)
		}}
	}
	normal := func(g ops.Generator) func(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
		return func(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
			return g.Normal(b, key, ir.F32, shape...)
		}
	}
	return []memoryCase{
		drawing("random-bits", ops.RandomBits), drawing("random-bits-both", ops.ThreefryBoth.Bits), drawing("random-bits-both-13", ops.ThreefryBoth13.Bits),
		drawing("normal", normal(ops.Threefry)), drawing("normal-both", normal(ops.ThreefryBoth)), drawing("normal-both-13", normal(ops.ThreefryBoth13)),
	}
}
