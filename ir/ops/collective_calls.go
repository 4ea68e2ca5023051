package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// collectiveCalls returns the library call of a collective of several devices on contiguous arrays.
// The others, and those of one device, have bodies.
func collectiveCalls(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	mesh, _ := MeshOf(n)
	if !caps.Collectives || mesh.Devices < 2 {
		return nil
	}
	if n.Op() == OpAxisIndex {
		return calls(routine.DeviceIndex{Axis: mesh.MeshAxis, Devices: mesh.Devices}, ir.Memory{Space: ir.ResultMemory})
	}
	if !IsContiguous(n) {
		return nil
	}
	c := RoutineOf(n)
	if c.Check() != nil {
		return nil
	}
	return calls(c, ir.Memory{Space: ir.OperandMemory}, ir.Memory{Space: ir.ResultMemory})
}

func calls(r routine.Routine, arrays ...ir.Memory) *ir.Algorithm {
	return &ir.Algorithm{Launches: []ir.KernelLaunch{{Routine: r, Arrays: arrays}}}
}

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
