package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	for _, op := range []ir.Op{ops.OpAllReduce, ops.OpAllGather, ops.OpReduceScatter, ops.OpAllToAll, ops.OpCollectivePermute, ops.OpCollectiveBroadcast} {
		add(op, func() []ir.Sample { return collectiveSamples(op) })
	}
	add(ops.OpAxisIndex, func() []ir.Sample {
		return []ir.Sample{{Name: "one device", Attrs: &ops.MeshAttrs{MeshAxis: "data", Devices: 1}}}
	})
}

var oneDevice = ops.MeshAttrs{MeshAxis: "data", Devices: 1}

// collectiveSamples are of one device.
func collectiveSamples(op ir.Op) []ir.Sample {
	var out []ir.Sample
	for _, a := range map[ir.Op][]ir.Attrs{
		ops.OpAllReduce: {
			&ops.AllReduceAttrs{MeshAttrs: oneDevice, Reduction: ops.AllReduceSum}, &ops.AllReduceAttrs{MeshAttrs: oneDevice, Reduction: ops.AllReduceMean}, &ops.AllReduceAttrs{MeshAttrs: oneDevice, Reduction: ops.AllReduceMax}, &ops.AllReduceAttrs{MeshAttrs: oneDevice, Reduction: ops.AllReduceMin},
		},
		ops.OpAllGather:           {&ops.AlongAttrs{MeshAttrs: oneDevice, Axis: 1}},
		ops.OpReduceScatter:       {&ops.AlongAttrs{MeshAttrs: oneDevice, Axis: 1}},
		ops.OpAllToAll:            {&ops.AllToAllAttrs{MeshAttrs: oneDevice, SplitAxis: 1, ConcatAxis: 0}},
		ops.OpCollectivePermute:   {&ops.PermuteAttrs{MeshAttrs: oneDevice, Sources: []int{0}, Targets: []int{0}}, &ops.PermuteAttrs{MeshAttrs: oneDevice}},
		ops.OpCollectiveBroadcast: {&ops.RootAttrs{MeshAttrs: oneDevice}},
	}[op] {
		for _, dims := range [][]int{{1, 1}, {2, 0}, {67, 3}} {
			x := draw(1, ir.F32, -2, 2, dims...)
			out = append(out, ir.Sample{Name: x.Type().String() + ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{x}})
		}
	}
	return out
}
