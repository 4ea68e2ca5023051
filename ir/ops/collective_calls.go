//go:build !js

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
