package layers

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// indexed are reads and sums by indices, of tables of several sizes, and selections.
func indexed() (out []Layer) {
	for _, t := range [][3]int{{100000, 64, 200000}, {1000, 512, 8192}, {1000000, 16, 50000}, {30, 256, 100000}, {50000, 3, 400000}} {
		rows, width, reads := t[0], t[1], t[2]
		segments := func(b *ir.Builder, x, i ir.Value, reduction string) ir.Value {
			return ops.SegmentReduce(b, x, i, ops.SegmentAttrs{Segments: ir.N(rows), Reduction: reduction})
		}
		out = append(out,
			Layer{fmt.Sprint("embedding ", t), rows, func(b *ir.Builder) ir.Value {
				return ops.Embedding(b, floats(b, "x", rows, width), ints(b, "i", reads))
			}},
			Layer{fmt.Sprint("maxima of segments ", t), rows, func(b *ir.Builder) ir.Value {
				return segments(b, floats(b, "x", reads, width), ints(b, "i", reads), "max")
			}},
			Layer{fmt.Sprint("messages along edges ", t), rows, func(b *ir.Builder) ir.Value {
				x, from, to := floats(b, "x", rows, width), ints(b, "from", reads), ints(b, "to", reads)
				return segments(b, ops.Relu(b, ops.Sub(b, ops.Embedding(b, x, from), ops.Embedding(b, x, to))), to, "mean")
			}})
	}
	for _, v := range [][2]int{{4096, 50257}, {64, 1000}, {20000, 10}, {512, 250000}} {
		out = append(out,
			Layer{fmt.Sprint("cross-entropy ", v), v[1], func(b *ir.Builder) ir.Value {
				return ops.CrossEntropyMean(b, floats(b, "x", v[0], v[1]), ints(b, "i", v[0]))
			}},
			of(fmt.Sprint("largest 8 of ", v), func(b *ir.Builder) ir.Value {
				y, _ := ops.TopK(b, floats(b, "x", v[0], v[1]), ops.TopKAttrs{K: 8, Axis: 1})
				return y
			}))
	}
	return append(out,
		Layer{"take along an axis", 300, func(b *ir.Builder) ir.Value {
			return ops.TakeAlongAxis(b, floats(b, "x", 64, 300, 256), ints(b, "i", 64, 40, 256), 1, ops.OutsideClip)
		}},
		Layer{"take in the middle", 300, func(b *ir.Builder) ir.Value {
			return ops.Take(b, floats(b, "x", 64, 300, 256), ints(b, "i", 500), 1, ops.OutsideClip)
		}},
		of("median", func(b *ir.Builder) ir.Value { return ops.Median(b, floats(b, "x", 4096, 1000), 1) }),
		of("quantile of long rows", func(b *ir.Builder) ir.Value { return ops.Quantile(b, floats(b, "x", 4, 1000000), 0.9, 1) }),
		of("sort of a long row", func(b *ir.Builder) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 0}, floats(b, "x", 1000000))[0] }))
}

// aggregations read or add rows at indices and sum what was read.
func aggregations() []Layer {
	return []Layer{
		{"bag of embeddings", 50000, func(b *ir.Builder) ir.Value {
			return ops.ReduceSum(b, ops.Embedding(b, floats(b, "x", 50000, 64), ints(b, "i", 8192, 20)), 1)
		}},
		{"one-hot product", 512, func(b *ir.Builder) ir.Value {
			return ops.MatMul(b, ops.OneHot(b, ints(b, "i", 20000), ir.N(512), ir.F32), floats(b, "x", 512, 128))
		}},
		{"pixels at indices", 128, func(b *ir.Builder) ir.Value {
			return ops.Gather(b, floats(b, "x", 128, 128, 64), ints(b, "i", 50000, 2), ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}}})
		}},
		{"pixels added at indices", 128, func(b *ir.Builder) ir.Value {
			return ops.ScatterAdd(b, floats(b, "x", 128, 128, 64), ints(b, "i", 50000, 2), floats(b, "y", 50000, 64), ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}}})
		}},
		{"product with a sparse matrix", 30000, func(b *ir.Builder) ir.Value {
			y := ops.Mul(b, ops.ExpandDims(b, floats(b, "values", 300000), 1), ops.Embedding(b, floats(b, "x", 30000, 32), ints(b, "columns", 300000)))
			return ops.SegmentReduce(b, y, ints(b, "rows", 300000), ops.SegmentAttrs{Segments: ir.N(30000), Reduction: "sum"})
		}},
	}
}
