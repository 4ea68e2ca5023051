// Package plantest has a small plan with hand-written kernels, for the tests of
// executors. It uses every feature of plans and nothing of the compiler, so a failure is
// one of the executor. Its output is a [plan.Plan]; read [Linear] first.
package plantest

import (
	_ "embed"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

//go:embed init.wgsl
var initSource string

//go:embed step.wgsl
var stepSource string

//go:embed record.wgsl
var recordSource string

//go:embed predict.wgsl
var predictSource string

//go:embed predict_draft.wgsl
var predictDraftSource string

//go:embed clear.wgsl
var clearSource string

//go:embed fold.wgsl
var foldSource string

//go:embed pick.wgsl
var pickSource string

// The buffers of the plan.
const (
	constants = iota
	inputs
	states
	temps
	status
)

// The slots of the plan.
const (
	slotX = iota
	slotT
	slotRate
	slotW
	slotHistory
	slotCount
	slotLoss
	slotPrediction
	slotSeed
	slotFolded
	slotKept
	slotLabel
	slotFree
	slotPicked
)

// The kernels of the plan.
const (
	kernelInit = iota
	kernelStep
	kernelRecord
	kernelPredict
	kernelClear
	kernelFold
	kernelPick
)

// Drafted returns the plan of [Linear] with a draft for the kernel of its entry predict:
// four workgroups of one thread.
func Drafted() *plan.Plan {
	p := Linear()
	p.Kernels[kernelPredict].Draft = predictDraftSource
	p.Entries[2].Steps[0].(*plan.Dispatch).DraftGroups = [3]int{4, 1, 1}
	return p
}

// Linear returns a plan that fits t = x·w by gradient descent. Its entries:
//
//	init     w = 0.5, 1, 1.5
//	step     x f32[4,3], t f32[4], rate f32 → loss f32: mean of (x·w-t)²; then w -= rate · its gradient;
//	         history f32[8] at count mod 8 = loss; count u32 += 1
//	predict  x f32[4,3] → prediction f32[4] = x·w
//	fold     seed u32 → folded u32[2]: from [seed, 0], for i < 3, for j < 2: [2·a+i, b+10·i+j]; the state
//	         kept u32[2] becomes a copy
//	pick     label i32[4] in [0,4) by the host's check, free i32[4] in [0,4) by the kernel's → picked f32[4] =
//	         table[label] + table[free] with table 1, 2, 3, 4; count += 1 if all free are in range, else
//	         status code 7, its detail the number of the element and the index
//
// No state changes while the status word is set.
func Linear() *plan.Plan {
	return &plan.Plan{
		Name:     "linear",
		Compiler: "by hand",
		Target:   "webgpu",
		Requires: plan.Requires{Limits: loop.DefaultLimits()},
		Symbols:  []plan.Symbol{{Name: "batch", Value: 4}},
		Buffers: []plan.Buffer{
			constants: {Kind: plan.ConstantBuffer, Bytes: 256},
			inputs:    {Kind: plan.InputBuffer, Bytes: 1024},
			states:    {Kind: plan.StateBuffer, Bytes: 1024},
			temps:     {Kind: plan.TempBuffer, Bytes: 1024},
			status:    {Kind: plan.StatusBuffer, Bytes: 256},
		},
		Slots: []plan.Slot{
			slotX:          tensor("x", plan.Input, dtype.F32, inputs, 0, 4, 3),
			slotT:          tensor("t", plan.Input, dtype.F32, inputs, 256, 4),
			slotRate:       {Name: "rate", Role: plan.Scalar, DType: dtype.F32, Bytes: 4},
			slotW:          tensor("w", plan.Param, dtype.F32, states, 0, 3),
			slotHistory:    tensor("history", plan.State, dtype.F32, states, 256, 8),
			slotCount:      tensor("count", plan.State, dtype.U32, states, 512),
			slotLoss:       tensor("loss", plan.Output, dtype.F32, temps, 0),
			slotPrediction: tensor("prediction", plan.Output, dtype.F32, temps, 256, 4),
			slotSeed:       {Name: "seed", Role: plan.Scalar, DType: dtype.U32, Offset: 4, Bytes: 4},
			slotFolded:     tensor("folded", plan.Output, dtype.U32, temps, 512, 2),
			slotKept:       tensor("kept", plan.State, dtype.U32, states, 768, 2),
			slotLabel:      checked(tensor("label", plan.Input, dtype.I32, inputs, 512, 4), 0, 4),
			slotFree:       tensor("free", plan.Input, dtype.I32, inputs, 768, 4),
			slotPicked:     tensor("picked", plan.Output, dtype.F32, temps, 768, 4),
		},
		Constants: []plan.Constant{{
			// 1, 2, 3, 4 as f32
			Buffer: constants, Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0x80, 0x40},
		}},
		Kernels: []plan.Kernel{
			kernelInit:    threads(4, plan.Kernel{Name: "init", Source: initSource, Storage: []loop.Access{loop.Read, loop.ReadWrite}}),
			kernelStep:    threads(1, plan.Kernel{Name: "step", Source: stepSource, Storage: []loop.Access{loop.Read, loop.Read, loop.ReadWrite, loop.ReadWrite, loop.Atomic}, ScalarBytes: 4}),
			kernelRecord:  threads(1, plan.Kernel{Name: "record", Source: recordSource, Storage: []loop.Access{loop.Read, loop.ReadWrite, loop.ReadWrite, loop.Atomic}}),
			kernelPredict: threads(4, plan.Kernel{Name: "predict", Source: predictSource, Storage: []loop.Access{loop.Read, loop.Read, loop.ReadWrite}}),
			kernelClear:   threads(1, plan.Kernel{Name: "clear", Source: clearSource, Storage: []loop.Access{loop.ReadWrite}, ScalarBytes: 8}),
			kernelFold:    threads(1, plan.Kernel{Name: "fold", Source: foldSource, Storage: []loop.Access{loop.ReadWrite}, Counters: 2}),
			kernelPick:    threads(4, plan.Kernel{Name: "pick", Source: pickSource, Storage: []loop.Access{loop.Read, loop.Read, loop.Read, loop.ReadWrite, loop.ReadWrite, loop.Atomic}, SharedBytes: 4}),
		},
		Entries: entries(),
		Status:  &plan.Status{Buffer: status, Codes: []plan.StatusCode{{Code: 7, Node: "pick(free)", Message: "index outside [0, 4)"}}},
	}
}

// entries returns the entries that [Linear] describes.
func entries() []plan.Entry {
	return []plan.Entry{
		{Name: "init", Steps: []plan.Step{
			dispatch(kernelInit, window(constants, 0, 16), window(states, 0, 12)),
		}},
		{Name: "step", Inputs: []int{slotX, slotT}, Scalars: []int{slotRate}, Outputs: []int{slotLoss}, UniformBytes: 4, Steps: []plan.Step{
			dispatch(kernelStep, window(inputs, 0, 48), window(inputs, 256, 16), window(states, 0, 12), window(temps, 0, 4), window(status, 0, plan.StatusBytes)),
			dispatch(kernelRecord, window(temps, 0, 4), window(states, 256, 32), window(states, 512, 4), window(status, 0, plan.StatusBytes)),
		}},
		{Name: "predict", Inputs: []int{slotX}, Outputs: []int{slotPrediction}, Steps: []plan.Step{
			dispatch(kernelPredict, window(inputs, 0, 48), window(states, 0, 12), window(temps, 256, 16)),
		}},
		{Name: "fold", Scalars: []int{slotSeed}, Outputs: []int{slotFolded}, UniformBytes: 8, Steps: []plan.Step{
			dispatch(kernelClear, window(temps, 512, 8)),
			&plan.Repeat{Count: 3, Steps: []plan.Step{
				&plan.Repeat{Count: 2, Steps: []plan.Step{dispatch(kernelFold, window(temps, 512, 8))}},
			}},
			&plan.Copy{Src: temps, SrcOffset: 512, Dst: states, DstOffset: 768, Bytes: 8},
		}},
		{Name: "pick", Inputs: []int{slotLabel, slotFree}, Outputs: []int{slotPicked}, Steps: []plan.Step{
			dispatch(kernelPick, window(inputs, 512, 16), window(inputs, 768, 16), window(constants, 0, 16), window(temps, 768, 16), window(states, 512, 4), window(status, 0, plan.StatusBytes)),
		}},
	}
}

func tensor(name string, role plan.Role, dt dtype.DType, buffer, offset int, dims ...int) plan.Slot {
	s := plan.Slot{Name: name, Role: role, DType: dt, Dims: dims, Buffer: buffer, Offset: offset}
	s.Bytes, _ = plan.SlotBytes(dt, dims)
	return s
}

func checked(s plan.Slot, lo, hi int) plan.Slot {
	s.Lo, s.Hi, s.Checked = lo, hi, true
	return s
}

func threads(n int, k plan.Kernel) plan.Kernel {
	k.Workgroup = [3]int{n, 1, 1}
	return k
}

func window(buffer, offset, bytes int) plan.Binding {
	return plan.Binding{Buffer: buffer, Offset: offset, Bytes: bytes}
}

func dispatch(k int, bindings ...plan.Binding) *plan.Dispatch {
	return &plan.Dispatch{Kernel: k, Groups: [3]int{1, 1, 1}, Bindings: bindings}
}
