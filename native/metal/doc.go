// Package metal is the backend "metal": modules run on Apple's GPUs, from the M1 on.
// Importing the package registers it:
//
//	import _ "github.com/rlx-go/rlx/native/metal"
//
//	session, err := rlx.Open("metal")
//
// A program needs macOS 11, cgo and the command line tools to build. On other systems and
// without cgo, Probe says what is missing. Start reading at backend.go, then program.go,
// commands.go and run.go.
//
// This backend has never run on Apple hardware. The tests run the same Objective-C and the
// same kernels on Linux, on a software device (package software) that passes the suite of
// all backends. The Objective-C compiles and links for macOS against declarations written
// from Apple's documentation (package apple); clang checks the address spaces of the
// kernels (package clang). Whether Apple's compiler accepts the kernels and how fast
// they are is unknown; `make test-apple` on a Mac reports it.
//
// Parameters, states and intermediate values lie in one heap of memory that the GPU and the
// host share. From macOS 15 on all heaps are in a residency set of the queue; before, the
// system tracks the bindings of each command buffer. A run is one command buffer, encoded
// by one call from a prepared list, and asynchronous. Up to three runs of an entry are in
// flight, each with inputs and outputs of its own: kernels read the inputs in place.
//
// macOS kills command buffers that block the display for some seconds. So a run that
// exceeds half a second on the slowest of these GPUs (the M1 with 7 cores), by an estimate
// from the operations and bytes of its kernels, is split into command buffers of at most
// that time; a kernel that exceeds it alone runs in pieces of its grid, of at least one
// workgroup. The host checks for errors after every eight command buffers and before the
// first that writes a state, when the run is waited for. No other run of the program begins
// meanwhile.
//
// Branches use indirect dispatches: the side not taken has an empty grid. A loop of unknown
// trip count is committed in batches of 8 to 64 iterations, after which the host checks
// whether it goes on; superfluous iterations have empty grids. No other run of the program
// begins meanwhile. The host checks when the run is waited for, so a loop without a waiter
// makes no progress.
//
// Large matrix products use simdgroup_matrix, of float, half and, if the compiler has it
// (macOS 14), bfloat, with float accumulation. So does attention whose scores would take
// much memory, in float. Other bf16 operations compute in float and round after each
// operation.
//
// Compiled pipelines are cached in the user's cache folder or in the folder named by the
// environment variable RLX_METAL_CACHE; if that is not writable, they are compiled each
// time.
//
// If RLX_METAL_DEBUG is not empty, each kernel is a synchronous command buffer of its own,
// so that an error names its kernel.
//
// After an error that the GPU was removed, the process has lost it ([native.ErrLost]). Any
// other failure of a command buffer is of kind [native.ErrDevice] or [native.ErrMemory] and
// fails its run and later runs that depend on it; Steps of the [native.Error] counts them.
// If it failed before it wrote a parameter or a state, nothing else has changed. Otherwise
// those that the entry writes may be torn (partly written): reading or using them is an
// error of kind [native.ErrDevice] until they are set. After a failure other than out of
// memory the program continues with shorter command buffers.
package metal

// Name is the name of the backend.
const Name = "metal"
