// Package metal is the backend "metal": modules run on Apple's GPUs, from the M1 on.
// Importing the package registers it:
//
//	import _ "github.com/rlx-go/rlx/native/metal"
//
//	session, err := rlx.Open("metal")
//
// A program needs macOS 11, cgo and the command line tools to be built. Elsewhere, and
// without cgo, the device is there and says what is missing.
//
// This backend has never run on Apple hardware. What is known of it comes from Linux: the
// same Objective-C and the same kernels run in the tests on a device in software (package
// software), where they pass the suite that all backends pass; the Objective-C compiles and
// links for macOS against declarations written from Apple's documentation (package apple);
// clang checks the address spaces of the kernels (package msl/check). Whether Apple's
// compiler takes the kernels, and how fast they are, is not known: `make test-apple` on a
// Mac tells, and prints a report.
//
// A program's parameters, states and intermediate values lie in one heap, in memory that
// the GPU and the host share. Since macOS 15 all heaps are in a residency set of the queue;
// before, the system looks for each command buffer what it binds. A run of an entry is one
// command buffer, encoded by one call from a list that was prepared before: nothing is waited
// for until the outputs are. Up to three runs of an entry are under way at a time, each with
// inputs and outputs of its own: kernels read the inputs where the host has written them.
//
// macOS ends command buffers that hold up the display for some seconds. So a run that takes
// more than half a second on the slowest of these GPUs, the M1 of 7 cores, by an estimate from
// the operations and bytes of its kernels, is several command buffers of at most that; a
// kernel that takes longer alone runs by pieces of its grid. One workgroup is not cut. The host
// looks after each eight whether all is well, and before the first that writes a state, where
// the run is waited for; no other run of the program begins meanwhile.
//
// Of a branch only one side runs: dispatches take their grids from memory. A loop of unknown
// length is begun some rounds at a time, 8 at first and up to 64, after which the host looks
// whether it goes on; rounds too many have empty grids. No other run of the program begins
// meanwhile. The host looks where the run is waited for, so a loop that nobody waits for
// stands still.
//
// Wide products go by matrices of SIMD-groups (simdgroup_matrix): of float, of half, and of
// bfloat where the system's compiler has it (macOS 14); sums are of float. So does attention
// whose scores would take much memory, of float. What else is of bf16 is rounded after every
// operation, which is computed in float, and is of the type bfloat where there is one.
//
// Compiled pipelines are kept in a folder of the user's cache, or the one that the
// environment variable RLX_METAL_CACHE names; where that cannot be written to, they are
// compiled each time.
//
// Where RLX_METAL_DEBUG is not empty, each kernel is a command buffer of its own and is
// waited for, so that an error names its kernel.
//
// After an error that says that the GPU is gone it is lost ([native.ErrLost]) to the
// process. Any other failure of a command buffer is of kind [native.ErrDevice], or
// [native.ErrMemory], and loses its run, and those that were begun behind it: [native.Error]
// has how many in Steps. Where it failed before it wrote a parameter or a state nothing else
// has changed. Otherwise those that the entry writes may be written in part: to read or use
// them is an error of kind [native.ErrDevice] until they are set. After a failure that was
// not one of memory the program goes on by shorter command buffers.
package metal

// Name is the name of the backend.
const Name = "metal"
