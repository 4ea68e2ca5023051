package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpDotGeneral, dotSamples)
	add(ops.OpKron, func() []ir.Sample {
		return productSamplesOf([][2][]int{{{2, 3}, {4, 2}}, {{3}, {2, 2}}, {{}, {5}}, {{0, 2}, {3, 1}}})
	})
	add(ops.OpOuter, func() []ir.Sample {
		return productSamplesOf([][2][]int{{{5}, {7}}, {{2, 3}, {4}}, {{}, {3}}, {{0}, {3}}})
	})
	add(ops.OpVdot, func() []ir.Sample {
		return productSamplesOf([][2][]int{{{131}, {131}}, {{2, 3}, {6}}, {{}, {}}, {{0}, {0}}})
	})
}

func dotSamples() []ir.Sample {
	sample := func(name string, d ir.DType, x, y []int, a ops.DotAttrs) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(d, x...), drawn(d, y...)}}
	}
	rows := ops.DotAttrs{LhsContract: []int{1}, RhsContract: []int{0}}
	return []ir.Sample{
		sample("matrix", ir.F32, []int{3, 4}, []int{4, 5}, rows),
		sample("beyond a tile", ir.F32, []int{33, 65}, []int{65, 17}, rows),
		sample("both transposed", ir.F32, []int{7, 9}, []int{5, 7}, ops.DotAttrs{LhsContract: []int{0}, RhsContract: []int{1}}),
		sample("batch last", ir.F32, []int{3, 4, 2}, []int{4, 2, 5},
			ops.DotAttrs{LhsContract: []int{1}, RhsContract: []int{0}, LhsBatch: []int{2}, RhsBatch: []int{1}}),
		sample("two contracted axes", ir.F32, []int{2, 3, 4}, []int{4, 5, 2},
			ops.DotAttrs{LhsContract: []int{0, 2}, RhsContract: []int{2, 0}}),
		sample("outer product", ir.F32, []int{3}, []int{4}, ops.DotAttrs{}),
		sample("inner product", ir.F32, []int{70}, []int{70}, ops.DotAttrs{LhsContract: []int{0}, RhsContract: []int{0}}),
		sample("scalars", ir.F32, nil, nil, ops.DotAttrs{}),
		sample("nothing to sum", ir.F32, []int{3, 0}, []int{0, 2}, rows),
		sample("no rows", ir.F32, []int{0, 3}, []int{3, 2}, rows),
		sample("one by one", ir.F32, []int{1, 1}, []int{1, 1}, rows),
		sample("half precision", ir.F16, []int{3, 70}, []int{70, 2}, rows),
		sample("integers", ir.I32, []int{3, 4}, []int{4, 2}, rows),
	}
}

func productSamplesOf(shapes [][2][]int) []ir.Sample {
	var out []ir.Sample
	for _, s := range shapes {
		out = append(out, ir.Sample{Name: shapeName(s[0]) + " " + shapeName(s[1]), In: []*ir.Array{
			draw(1, ir.F32, -1, 1, s[0]...), draw(2, ir.F32, -1, 1, s[1]...),
		}})
	}
	s := shapes[0]
	return append(out, ir.Sample{Name: "c64", In: []*ir.Array{draw(1, ir.C64, -1, 1, s[0]...), draw(2, ir.C64, -1, 1, s[1]...)}})
}
