package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpGather, gatherSamples)
}

func gatherSamples() []ir.Sample {
	sample := func(name string, x []int, indices *ir.Array, a ops.GatherAttrs) ir.Sample {
		if a.Outside == "" {
			a.Outside = ops.OutsideFill
		}
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{drawn(ir.F32, x...), indices}}
	}
	rows := ops.IndexedAxes{Axes: []int{0}}
	clip := ops.IndexedAxes{Axes: []int{1}, Outside: ops.OutsideClip}
	outside := ir.Ints(ir.I32, []int64{-1, 0, 5, 2, 4}, 5, 1)
	return []ir.Sample{
		sample("rows", []int{5, 3}, ir.Ints(ir.I32, []int64{4, 0, 4, 2}, 2, 2, 1), ops.GatherAttrs{IndexedAxes: rows}),
		sample("fill outside", []int{5, 3}, outside, ops.GatherAttrs{IndexedAxes: rows, Fill: -7}),
		sample("clip outside", []int{2, 5, 3}, outside, ops.GatherAttrs{IndexedAxes: clip}),
		sample("points", []int{3, 4}, ir.Ints(ir.U8, []int64{2, 3, 0, 1}, 2, 2), ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}}}),
		sample("along an axis", []int{3, 4}, ir.Ints(ir.I32, []int64{3, 0, 1, 2, 2, 9}, 3, 2, 1),
			ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{1}, OperandBatch: []int{0}, IndexBatch: []int{0}}}),
		sample("one tuple", []int{7, 2}, ir.Ints(ir.I32, []int64{6}, 1), ops.GatherAttrs{IndexedAxes: rows}),
		sample("empty tuples", []int{2, 2}, ir.NewArray(ir.I32, 3, 0), ops.GatherAttrs{}),
		sample("no positions", []int{5, 3}, ir.NewArray(ir.I32, 0, 1), ops.GatherAttrs{IndexedAxes: rows}),
		sample("empty operand", []int{0, 3}, ir.Ints(ir.I32, []int64{0, 1}, 2, 1), ops.GatherAttrs{IndexedAxes: rows, Fill: 2}),
		sample("scalar window", []int{70}, ir.Ints(ir.U32, []int64{69, 1 << 31}, 2, 1), ops.GatherAttrs{IndexedAxes: rows}),
	}
}

// spread returns n indices below bound in scattered order.
func spread(n, bound int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i*7+3) % int64(bound)
	}
	return out
}

func init() {
	for op, mode := range map[ir.Op]ir.ScatterMode{
		ops.OpScatter: ir.ScatterSet, ops.OpScatterAdd: ir.ScatterAdd, ops.OpScatterMul: ir.ScatterMul, ops.OpScatterMin: ir.ScatterMin, ops.OpScatterMax: ir.ScatterMax,
	} {
		add(op, func() []ir.Sample { return scatterSamples(mode) })
	}
}

func scatterSamples(mode ir.ScatterMode) []ir.Sample {
	sample := func(name string, x []int, indices *ir.Array, u []int, a ops.IndexedAxes) ir.Sample {
		if a.Outside == "" {
			a.Outside = ops.OutsideDrop
		}
		operand, updates := distinct(-1, 1, x...), distinct(-1.3, 1.1, u...)
		if mode == ir.ScatterMul { // products of many stay near 1
			updates = draw(8, ir.F32, 0.8, 1.25, u...)
		}
		return ir.Sample{Name: name, Attrs: &ops.ScatterAttrs{IndexedAxes: a}, In: []*ir.Array{operand, indices, updates}}
	}
	typed := func(s ir.Sample, d ir.DType, x, u *ir.Array) ir.Sample {
		s.Name, s.In = s.Name+" of "+d.String(), []*ir.Array{x, s.In[1], u}
		return s
	}
	rows := ops.IndexedAxes{Axes: []int{0}}
	unique := ops.IndexedAxes{Axes: []int{0}, Unique: true}
	unordered := ops.IndexedAxes{Axes: []int{0}, Unordered: true}
	repeated := ir.Ints(ir.I32, []int64{4, 0, 4, 2, 4}, 5, 1)
	outside := ir.Ints(ir.I32, []int64{-1, 0, 5, 2, 4}, 5, 1)
	many := ir.Ints(ir.I32, spread(70, 2), 70, 1)
	sorted := ir.NewArray(ir.I32, 150, 1) // rows 1 to 3 of many positions, and some outside
	for i := range sorted.I {
		sorted.I[i] = int64(i/36 - 1 + i/148)
	}
	out := []ir.Sample{
		sample("repeated rows", []int{5, 3}, repeated, []int{5, 3}, rows),
		sample("drop outside", []int{5, 3}, outside, []int{5, 3}, rows),
		sample("unique", []int{5, 3}, outside, []int{5, 3}, unique),
		sample("clip outside", []int{2, 5, 3}, outside, []int{5, 2, 3}, ops.IndexedAxes{Axes: []int{1}, Outside: ops.OutsideClip}),
		sample("points", []int{3, 4}, ir.Ints(ir.I32, []int64{2, 3, 2, 3}, 2, 2), []int{2}, ops.IndexedAxes{Axes: []int{0, 1}}),
		sample("along an axis", []int{3, 4}, ir.Ints(ir.I32, []int64{3, 0, 1, 1, 2, 9}, 3, 2, 1), []int{3, 2},
			ops.IndexedAxes{Axes: []int{1}, OperandBatch: []int{0}, IndexBatch: []int{0}}),
		sample("more updates than rows", []int{2, 33}, many, []int{70, 33}, rows),
		sample("in any order", []int{90, 5}, ir.Ints(ir.I32, spread(70, 91), 70, 1), []int{70, 5}, unordered),
		sample("many along the last axis", []int{3, 7}, ir.Ints(ir.I32, spread(131, 8), 131, 1), []int{131, 3}, ops.IndexedAxes{Axes: []int{1}}),
		sample("sorted", []int{4, 3}, sorted, []int{150, 3}, ops.IndexedAxes{Axes: []int{0}, Sorted: true}),
		sample("no updates", []int{5, 3}, ir.NewArray(ir.I32, 0, 1), []int{0, 3}, rows),
		sample("empty operand", []int{0, 3}, ir.Ints(ir.I32, []int64{0, 1}, 2, 1), []int{2, 3}, rows),
	}
	class := isNumber
	if mode == ir.ScatterMin || mode == ir.ScatterMax {
		class = isReal
	}
	for _, d := range typesIn(class)[1:] {
		out = append(out, typed(out[0], d, draw(3, d, -3, 3, 5, 3), draw(4, d, -3, 3, 5, 3)))
	}
	for _, d := range []ir.DType{ir.I32, ir.U32} {
		out = append(out, typed(out[6], d, draw(5, d, -9, 9, 2, 33), draw(6, d, -3, 3, 70, 33)))
	}
	if mode == ir.ScatterSet {
		yes := ir.Ints(ir.Bool, []int64{0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1}, 5, 3)
		no := ir.Ints(ir.Bool, []int64{1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0}, 5, 3)
		out = append(out, typed(out[0], ir.Bool, yes, no))
	}
	return out
}
