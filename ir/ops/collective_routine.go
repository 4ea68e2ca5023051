package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// RoutineOf returns a collective of constant shape that [IsContiguous] accepts as a routine.
func RoutineOf(n *ir.Node) routine.Collective {
	mesh, _ := MeshOf(n)
	x := n.Input(0).Type()
	size, _ := x.Shape.Size().Const()
	c := routine.Collective{DType: x.DType, Count: size, Unit: loop.DeviceSize(x.DType), Axis: mesh.MeshAxis, Devices: mesh.Devices}
	switch a := n.Attrs().(type) {
	case *AllReduceAttrs:
		switch a.Reduction {
		case AllReduceMax:
			c.Reduction = routine.Max
		case AllReduceMin:
			c.Reduction = routine.Min
		}
	case *AlongAttrs:
		c.Op = routine.AllGather
		if n.Op() == OpReduceScatter {
			c.Op = routine.ReduceScatter
		}
	case *AllToAllAttrs:
		c.Op = routine.AllToAll
	case *PermuteAttrs:
		c.Op = routine.Permute
		var pairs [][2]int
		for i, from := range a.Sources {
			pairs = append(pairs, [2]int{from, a.Targets[i]})
		}
		c.Pairs = routine.PairsOf(pairs)
	case *RootAttrs:
		c.Op, c.Root = routine.Broadcast, a.Root
	}
	return c
}
