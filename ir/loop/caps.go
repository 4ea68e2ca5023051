package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/routine"
)

// Caps is what a target can do: the one description of it, by which schedules
// choose, plans bind memory, and what cannot be run is refused.
type Caps struct {
	// Dialect is the language that kernels are printed in. It tells which element
	// types they store and compute with: see [dtype.DType.On].
	Dialect dtype.Dialect
	Limits
	F16       bool   // kernels may compute in f16, which is a feature of its own in WGSL
	Subgroups bool   // kernels may have subgroup statements
	Subgroup  [2]int // the range of subgroup sizes, where Subgroups is set
	Shuffles  bool   // kernels may have [Shuffle] statements, among [Caps.Lanes] threads
	// Mma says that the target has the [Atom]s of f16 and bf16, TF32 that products
	// of f32 may be computed from 10 bits of fraction. MmaByWarps says that the warps
	// of a group compute their parts of an atom by themselves: slower, and done when the
	// statement is. MmaBytes is the shared memory that a kernel with atoms, or one that
	// keeps more steps of its operands there than SharedBytes holds, may have on such a
	// target, and Multiprocessors is how many workgroups of that size run at once, 0 where
	// that is not known: then it is the device's number of processors.
	Mma, MmaByWarps, TF32     bool
	MmaBytes, Multiprocessors int
	// Boxes says that the target has [CopyBox], [Mbarrier] and [Roles]. The warp that copies
	// comes on top of the threads that Limits allow.
	Boxes bool
	// Device is what costs depend on: the zero value stands for [hardware.Unknown].
	Device hardware.Profile
	// Drafts says that devices take long to compile large kernels, and that plans have
	// other ones that stand in for them meanwhile.
	Drafts bool
	// Long is from how many elements on positions in an array are counted in I64:
	// [LongElements], or less in tests, which have no memory for so many. 0 says that
	// kernels count in I32 alone, and longer arrays are refused.
	Long int
	// Fragments says that the target has multiply-adds of subgroups: [FragmentMulAdd], of
	// F32, with HalfFragments of F16 and with BFloat of BF16. Subgroup is then one size.
	Fragments, HalfFragments, BFloat bool
	// AtomicFloats says how the target adds to [Atomic] elements of F32.
	AtomicFloats AtomicFloats
	// ShareOps is how many operations a thread must have for it to be worth waking,
	// on targets whose workgroups have one thread: kernels with more are divided
	// into several workgroups. With 0 none is.
	ShareOps int
	// Products says which products of matrices a library of the target computes,
	// in place of kernels. It gets ProductBytes of memory to work in. Refused are those
	// that it was found to have no algorithm for, which kernels compute.
	Products     Products
	ProductBytes int
	Refused      *routine.Refusals
}

// AtomicFloats says how a target adds an F32 to an element that other threads add to.
type AtomicFloats uint8

// The ways.
const (
	// NoAtomicFloats: it has kernels with [AtomicOp] on integers alone.
	NoAtomicFloats AtomicFloats = iota
	// ExchangedFloats: by an exchange that is tried again where another thread came first.
	ExchangedFloats
	// NativeFloats: by an instruction, which memory carries out.
	NativeFloats
)

// Products says which products of matrices are left to a library.
type Products uint8

// The choices.
const (
	// NoProducts: the target has no such library.
	NoProducts Products = iota
	// FasterProducts: those that it is expected to be faster at than kernels.
	FasterProducts
	// AllProducts: all that it can compute, for tests and comparisons.
	AllProducts
)

// Profile returns the profile of the target's device, with as many processors as the target
// has multiprocessors where it says so.
func (c Caps) Profile() hardware.Profile {
	p := c.Device
	if p == (hardware.Profile{}) {
		p = hardware.Unknown()
	}
	if c.Multiprocessors > 0 {
		p.Processors = c.Multiprocessors
	}
	return p
}

// Support returns what kernels of the target can do with elements of a type: what
// the table of its dialect says ([dtype.DType.On]), but that in WGSL f16 is only
// stored where the device lacks the feature.
func (c Caps) Support(d dtype.DType) dtype.Support {
	if s := d.On(c.Dialect); d != dtype.F16 || c.Dialect != dtype.WGSL || c.F16 {
		return s
	}
	return dtype.Storage
}

// Lanes is how many neighbouring threads a [Shuffle] is among, 0 where the target has none.
func (c Caps) Lanes() int {
	switch {
	case !c.Shuffles:
		return 0
	case c.Subgroups:
		return c.Subgroup[0]
	}
	return Warp
}

// stored reports whether elements of a type are stored and not computed with.
func (c Caps) stored(d dtype.DType) bool { return c.Support(d) == dtype.Storage }

// storeBytes is the smallest piece of memory that a thread can store while another
// one stores the piece beside it. WGSL's memory is made of words.
func (c Caps) storeBytes() int {
	if c.Dialect == dtype.WGSL {
		return 4
	}
	return 1
}

// Together is how many elements of a type, side by side, a thread must store for
// no other thread to store beside it in the same piece of memory.
func (c Caps) Together(d dtype.DType) int {
	if !c.stored(d) {
		return 1
	}
	return max(c.storeBytes()/d.Size(), 1)
}

// DefaultCaps returns what every WebGPU device can do.
func DefaultCaps() Caps {
	return Caps{Dialect: dtype.WGSL, Limits: DefaultLimits(), AtomicFloats: ExchangedFloats}
}

// Limits bound what a kernel may use of a device. They are a subset of WebGPU's,
// and other targets state theirs in the same terms.
type Limits struct {
	StorageBuffers int    // storage arrays of one kernel
	BindingBytes   int    // one storage array
	BufferBytes    int    // one buffer, which storage arrays lie in
	SharedBytes    int    // all shared arrays of a kernel together
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

// Tensors is how many tensors a kernel can bind besides the status words.
func (l Limits) Tensors() int { return l.StorageBuffers - 1 }

// privateBytes is what the private arrays of a kernel take together at most: what
// WGSL promises a function.
const privateBytes = 8 << 10

// Within reports whether a device with the limits dev meets l.
func (l Limits) Within(dev Limits) bool {
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

// Check returns a *CheckError that names the first limit that k exceeds. Sizes
// are those in device memory, see [DeviceSize].
func (l Limits) Check(k *Kernel) error {
	c := checker{k: k}
	storage, shared, private := 0, k.mbarrierBytes(), 0
	for _, a := range k.Arrays {
		bytes := a.Bytes()
		switch a.Space {
		case Storage:
			storage++
			if bytes > l.BindingBytes {
				return c.fail("array %s takes %d bytes, over the limit of %d", a.Name, bytes, l.BindingBytes)
			}
		case Shared:
			shared += bytes
		case Private:
			private += bytes
		}
	}
	for _, n := range []struct {
		what      string
		have, max int
	}{
		{"storage arrays", storage, l.StorageBuffers},
		{"bytes of shared memory", shared, l.SharedBytes},
		{"bytes of private memory", private, privateBytes},
		{"threads in a workgroup", k.Threads(), l.Invocations},
		{"threads along x", k.Workgroup[0], l.Workgroup[0]},
		{"threads along y", k.Workgroup[1], l.Workgroup[1]},
		{"threads along z", k.Workgroup[2], l.Workgroup[2]},
		{"workgroups along an axis", max(k.Groups[0], k.Groups[1], k.Groups[2]), l.Groups},
	} {
		if n.have > n.max {
			return c.fail("%d %s, over the limit of %d", n.have, n.what, n.max)
		}
	}
	return nil
}

// Check is [Limits.Check] for a target: kernels with [Mma] are for those that have
// it, whose kernels may have more shared memory.
func (c Caps) Check(k *Kernel) error {
	l := c.Limits
	if k.HasMma() {
		if !c.Mma {
			return (&checker{k: k}).fail("the target has no multiply-adds of warp groups")
		}
	}
	if k.HasRoles() {
		if !c.Boxes {
			return (&checker{k: k}).fail("the target has no roles of threads")
		}
		l.Invocations += Warp
		l.Workgroup[0] += Warp
	}
	if c.AtomicFloats == NoAtomicFloats && k.hasAtomicFloats() {
		return (&checker{k: k}).fail("the target has no atomic additions of f32")
	}
	l.SharedBytes = max(l.SharedBytes, c.MmaBytes)
	if !c.Fragments && k.HasFragments() {
		return (&checker{k: k}).fail("the target has no multiply-adds of subgroups")
	}
	return l.Check(k)
}

// hasAtomicFloats reports whether threads add to an f32 that others add to.
func (k *Kernel) hasAtomicFloats() bool {
	return slices.ContainsFunc(k.Arrays, func(a Array) bool { return a.Access == Atomic && a.DType.IsFloat() })
}

// SharedBytes is the shared memory that the kernel's arrays take.
func (k *Kernel) SharedBytes() int {
	n := 0
	for _, a := range k.Arrays {
		if a.Space == Shared {
			n += a.Bytes()
		}
	}
	return n + k.mbarrierBytes()
}
