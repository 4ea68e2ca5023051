package plan

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel"
)

// Limits bound what a plan may use of a device. They are a subset of WebGPU's,
// and other targets state theirs in the same terms.
type Limits struct {
	StorageBuffers int    // storage arrays of one kernel
	BindingBytes   int    // one storage binding
	BufferBytes    int    // one buffer
	SharedBytes    int    // workgroup memory
	Invocations    int    // threads of a workgroup
	Workgroup      [3]int // threads of a workgroup along x, y, z
	Groups         int    // workgroups along any one of x, y, z
}

// DefaultLimits returns what every WebGPU device can do.
func DefaultLimits() Limits {
	return Limits{
		StorageBuffers: 8,
		BindingBytes:   128 << 20,
		BufferBytes:    256 << 20,
		SharedBytes:    16 << 10,
		Invocations:    256,
		Workgroup:      [3]int{256, 256, 64},
		Groups:         65535,
	}
}

// within reports whether a device with the limits dev meets l.
func (l Limits) within(dev Limits) bool {
	return l.StorageBuffers <= dev.StorageBuffers &&
		l.BindingBytes <= dev.BindingBytes &&
		l.BufferBytes <= dev.BufferBytes &&
		l.SharedBytes <= dev.SharedBytes &&
		l.Invocations <= dev.Invocations &&
		l.Workgroup[0] <= dev.Workgroup[0] &&
		l.Workgroup[1] <= dev.Workgroup[1] &&
		l.Workgroup[2] <= dev.Workgroup[2] &&
		l.Groups <= dev.Groups
}

// Requires is what a device must have to run a plan.
type Requires struct {
	// Features are WebGPU's names, such as "shader-f16" and "subgroups".
	Features []string
	Limits   Limits
	// Subgroup is the range of subgroup sizes that the kernels are right for;
	// zero where none has subgroup statements.
	Subgroup [2]int
}

// Met reports whether a device with these features, limits and range of
// subgroup sizes can run the plan. The range may be zero where it is unknown:
// then no plan with a range of its own fits.
func (r Requires) Met(features []string, limits Limits, subgroup [2]int) bool {
	for _, f := range r.Features {
		if !slices.Contains(features, f) {
			return false
		}
	}
	fits := r.Subgroup == [2]int{} || (subgroup[0] >= max(r.Subgroup[0], 1) && subgroup[1] <= r.Subgroup[1])
	return fits && r.Limits.within(limits)
}

// Target is what the compiler is told of a device: the dialect its kernels
// are printed in, and its capabilities.
type Target struct {
	Name      string // "webgpu", "cuda", "metal"
	Dialect   dtype.Dialect
	Limits    Limits
	F16       bool   // kernels in WGSL may compute in f16
	Subgroups bool   // kernels may have subgroup statements
	Subgroup  [2]int // the range of subgroup sizes, where Subgroups is set
	Branch    int    // how much work it takes for only the branch taken to run: see [kernel.Options]
	Unfused   bool   // each node is a kernel of its own: see [kernel.Options]
	// ScoreBytes is the most that the scores of an attention take before they are
	// computed in blocks and not kept, 0 for [kernel.ScoreBytes].
	ScoreBytes int
}

// Support returns what kernels of the target can do with elements of a type: what
// the table of its dialect says ([dtype.DType.On]), but that f16 is only stored
// in WGSL on a device without the feature.
func (t Target) Support(d dtype.DType) dtype.Support {
	s := d.On(t.Dialect)
	if t.Dialect == dtype.WGSL && d == dtype.F16 && !t.F16 {
		return min(s, dtype.Storage)
	}
	return s
}

// types is what kernels of the target can do with element types. WGSL has no
// memory of less than a word.
func (t Target) types() kernel.Types {
	out := kernel.Types{Support: t.Support, StoreBytes: 1}
	if t.Dialect == dtype.WGSL {
		out.StoreBytes = 4
	}
	return out
}

// device is what schedules are told of the target.
func (t Target) device() kernel.Device {
	l := t.Limits
	return kernel.Device{Threads: l.Invocations, SharedBytes: l.SharedBytes, Groups: l.Groups, ArrayBytes: l.BindingBytes}
}

// claims reports whether a composite is scheduled as it is.
func (t Target) claims(n *ir.Node) bool {
	most := t.ScoreBytes
	if most == 0 {
		most = kernel.ScoreBytes
	}
	return kernel.AttendsInBlocks(n, t.device(), most)
}

// worthGate is how many elements two branches must compute for a gate to pay: at
// some 10¹¹ elements a second it takes as long as the gate's launch, about 10 µs,
// and the indirect dispatches behind it, which are checked on the device.
const worthGate = 1 << 20

// WebGPU returns the target that every WebGPU device meets.
func WebGPU() Target {
	return Target{Name: "webgpu", Dialect: dtype.WGSL, Limits: DefaultLimits(), Branch: worthGate}
}

// Printer writes kernels of the loop IR in one dialect. Print is a pure
// function: the same kernel gives the same text.
type Printer interface {
	Dialect() dtype.Dialect
	// Print returns the source text of a kernel. The error names what the
	// dialect lacks.
	Print(k *kernel.Kernel) (string, error)
}
