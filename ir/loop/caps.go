package loop

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/routine"
)

// Caps describes the capabilities of a target. Schedules and plans consult it, and [Caps.Check]
// refuses kernels that the target cannot run.
type Caps struct {
	// Dialect is the language that kernels are printed in. It determines the element types
	// they store and compute with, see [dtype.DType.On].
	Dialect dtype.Dialect
	Limits
	F16       bool   // kernels may compute in f16, an optional feature in WGSL
	Subgroups bool   // kernels may have subgroup statements
	Subgroup  [2]int // the range of subgroup sizes, if Subgroups is set
	Shuffles  bool   // kernels may have [Shuffle] statements, among [Caps.Lanes] threads
	// Mma means that the target has [MmaShape]s of f16 and bf16, TF32 that products of f32 may
	// be computed with 10 bits of fraction. MmaByWarps says that each warp of a group
	// computes its part of a multiply-add by itself, slower and synchronously. TileAlign is the
	// shared memory of kernels with atoms, or with more pipeline stages than SharedBytes
	// holds. Multiprocessors is the number of workgroups of that size that run at once, 0
	// if unknown: then the device's number of processors counts.
	Mma, MmaByWarps, TF32     bool
	MmaBytes, Multiprocessors int
	// TensorMaps means that the target has [CopyTMA], [Mbarrier] and [Roles]. The producer warp
	// does not count towards the threads that Limits allow.
	TensorMaps bool
	// Device is the input of the cost model; the zero value means [hardware.Unknown].
	Device hardware.Profile
	// Drafts means that large kernels compile slowly, and that plans hold drafts to run
	// meanwhile.
	Drafts bool
	// Long is the number of elements from which positions in an array are I64:
	// [LongElements], or less in tests, which lack the memory for such arrays. At 0 all
	// positions are I32 and longer arrays are refused.
	Long int
	// Fragments means that the target has subgroup matrix multiply-adds, [FragmentMulAdd],
	// of F32, with HalfFragments of F16 and with BFloat of BF16. Subgroup is then a
	// single size.
	Fragments, HalfFragments, BFloat bool
	// AtomicFloats describes how the target adds to [Atomic] elements of F32.
	AtomicFloats AtomicFloats
	// ShareOps is the number of operations that justifies another thread on targets with
	// one thread per workgroup: larger kernels are divided into several workgroups. At 0
	// none is.
	ShareOps int
	// Products lists which matrix products a library computes instead of kernels, in a
	// workspace of ProductBytes. Refused are those for which the library has no algorithm,
	// and factorisations that need more workspace; kernels compute them.
	Products     Products
	ProductBytes int
	Refused      *routine.Refusals
	// Factors means that a library factors matrices: the target runs [routine.Factor].
	Factors bool
	// Collectives means that the target moves data between devices: it runs
	// [routine.Collective] and [routine.DeviceIndex].
	Collectives bool
}

// Runs reports whether the target has a library for the kind of a routine.
func (c Caps) Runs(r routine.Routine) bool {
	switch r.(type) {
	case routine.Collective, routine.DeviceIndex:
		return c.Collectives
	case routine.Factor:
		return c.Factors && !c.Refused.Has(r)
	}
	return c.Products != NoProducts
}

// AtomicFloats describes how a target adds an F32 atomically.
type AtomicFloats uint8

// The implementations.
const (
	// NoAtomicFloats: [AtomicOp] works only on integers.
	NoAtomicFloats AtomicFloats = iota
	// ExchangedFloats: by a compare-and-exchange loop.
	ExchangedFloats
	// NativeFloats: by an instruction.
	NativeFloats
)

// Products lists which matrix products a library computes.
type Products uint8

// The choices.
const (
	// NoProducts: the target has no such library.
	NoProducts Products = iota
	// FasterProducts: those for which it is expected to be faster than a kernel.
	FasterProducts
	// AllProducts: all that it supports, for tests and comparisons.
	AllProducts
)

// Profile returns the profile of the target's device. Multiprocessors, if set, replaces its
// number of processors.
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

// Support returns what kernels of the target can do with elements of a type, by the table of
// its dialect ([dtype.DType.On]). WGSL without the f16 feature only stores f16.
func (c Caps) Support(d dtype.DType) dtype.Support {
	if s := d.On(c.Dialect); d != dtype.F16 || c.Dialect != dtype.WGSL || c.F16 {
		return s
	}
	return dtype.Storage
}

// Lanes returns the number of threads a [Shuffle] exchanges values among, 0 if the target has
// none.
func (c Caps) Lanes() int {
	switch {
	case !c.Shuffles:
		return 0
	case c.Subgroups:
		return c.Subgroup[0]
	}
	return Warp
}

// stored reports whether a type is storage-only on the target.
func (c Caps) stored(d dtype.DType) bool { return c.Support(d) == dtype.Storage }

// storeBytes returns the smallest unit that threads can store independently. WGSL's memory
// consists of words.
func (c Caps) storeBytes() int {
	if c.Dialect == dtype.WGSL {
		return 4
	}
	return 1
}

// StoreUnit returns the number of contiguous elements of a type that a thread must store so
// that no other thread stores to the same memory unit.
func (c Caps) StoreUnit(d dtype.DType) int {
	if !c.stored(d) {
		return 1
	}
	return max(c.storeBytes()/d.Size(), 1)
}

// DefaultCaps returns the capabilities that every WebGPU device has.
func DefaultCaps() Caps {
	return Caps{Dialect: dtype.WGSL, Limits: DefaultLimits(), AtomicFloats: ExchangedFloats}
}

// Limits bound the resources of a kernel. They are a subset of WebGPU's; other targets state
// theirs in the same terms.
type Limits struct {
	StorageBuffers int    // storage arrays of one kernel
	BindingBytes   int    // one storage array
	BufferBytes    int    // one buffer, which holds storage arrays
	SharedBytes    int    // all shared arrays of a kernel together
	Invocations    int    // threads of a workgroup
	Workgroup      [3]int // threads of a workgroup along x, y, z
	Groups         int    // workgroups along any one of x, y, z
}

// DefaultLimits returns the limits that every WebGPU device supports.
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

// Tensors returns the number of tensors a kernel can bind besides the status words.
func (l Limits) Tensors() int { return l.StorageBuffers - 1 }

// privateBytes bounds the private arrays of a kernel: WGSL's guarantee for a function.
const privateBytes = 8 << 10

// Within reports whether a device with the limits dev supports l.
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

// Check returns a *CheckError that names the first limit that k exceeds. Sizes are those in
// device memory, see [DeviceSize].
func (l Limits) Check(k *Kernel) error {
	c := checker{k: k}
	storage, shared, private := 0, k.mbarrierBytes(), 0
	for _, a := range k.Arrays {
		bytes := a.Bytes()
		switch a.Space {
		case Storage:
			storage++
			if bytes > l.BindingBytes {
				return c.fail("array %s has %d bytes; the limit is %d", a.Name, bytes, l.BindingBytes)
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
			return c.fail("%d %s; the limit is %d", n.have, n.what, n.max)
		}
	}
	return nil
}

// Check is [Limits.Check] plus the optional features: statements such as [Mma] need a target
// that has them, whose kernels may use more shared memory.
func (c Caps) Check(k *Kernel) error {
	l := c.Limits
	if k.HasMma() {
		if !c.Mma {
			return (&checker{k: k}).fail("the target has no warp group multiply-adds")
		}
	}
	if k.HasRoles() {
		if !c.TensorMaps {
			return (&checker{k: k}).fail("the target has no warp specialisation")
		}
		l.Invocations += Warp
		l.Workgroup[0] += Warp
	}
	if c.AtomicFloats == NoAtomicFloats && k.hasAtomicFloats() {
		return (&checker{k: k}).fail("the target has no atomic f32 addition")
	}
	l.SharedBytes = max(l.SharedBytes, c.MmaBytes)
	if !c.Fragments && k.HasFragments() {
		return (&checker{k: k}).fail("the target has no subgroup multiply-adds")
	}
	return l.Check(k)
}

// hasAtomicFloats reports whether the kernel adds to an f32 atomically.
func (k *Kernel) hasAtomicFloats() bool {
	return slices.ContainsFunc(k.Arrays, func(a Array) bool { return a.Access == Atomic && a.DType.IsFloat() })
}

// SharedBytes returns the shared memory of the kernel's arrays and mbarriers.
func (k *Kernel) SharedBytes() int {
	n, over := 0, 0
	for _, a := range k.Arrays {
		switch {
		case a.Space == Shared && a.Overlay:
			over = max(over, a.Bytes())
		case a.Space == Shared:
			n += a.Bytes()
		}
	}
	return max(n, over) + k.mbarrierBytes()
}
