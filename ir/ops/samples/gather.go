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
