package plan

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// featureRelaxed is the name of relaxed SIMD among the features that a plan
// requires; engines do not name it.
const featureRelaxed = "relaxed-simd"

// shareOps is [loop.Caps.ShareOps] in a page, some tens of microseconds: that is
// what waking a thread takes.
const shareOps = 1 << 17

// WebAssembly returns the target of engines with vectors of 128 bits, that is all
// since 2023: one thread, all of a group in one kernel. relaxed says that the
// engine has relaxed SIMD too.
func WebAssembly(relaxed bool) Target {
	const most = 1 << 30 // of the 4 GiB that a memory has
	t := Target{Name: "wasm", Branch: 1, Caps: loop.Caps{Dialect: dtype.WASM, ShareOps: shareOps, Limits: loop.Limits{
		StorageBuffers: 32, BindingBytes: most, BufferBytes: most, SharedBytes: 2 << 20,
		Invocations: 1, Workgroup: [3]int{1, 1, 1}, Groups: most,
	}}}
	if relaxed {
		t.Features = []string{featureRelaxed}
	}
	return t
}

// Linker is a [Printer] whose kernels are parts of one module.
type Linker interface {
	Printer
	// Link makes the module of kernels from what Print returned for each, and
	// names the kernels as the module does.
	Link(sources []string) (module []byte, names []string)
}
