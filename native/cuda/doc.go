// Package cuda is the backend "cuda": modules run on NVIDIA GPUs. Importing the
// package registers it:
//
//	import _ "github.com/rlx-go/rlx/native/cuda"
//
//	session, err := rlx.Open("cuda") // or "cuda:1", the second GPU
//
// The package takes a module, compiles it to a plan with CUDA C++ kernels
// (internal/compiler/plan, internal/codegen/cudacpp) and runs the plan through
// internal/executor/async. Start reading at backend.go, then program.go, entry.go
// and recorder.go.
//
// A program needs cgo but no CUDA toolkit to build, and starts without a GPU. The driver
// and NVRTC, of CUDA 12 or 13, are loaded when the device is first used (see package
// driver); NVRTC must compile for the GPU, or make PTX that the driver compiles. If
// something is missing, or the program was built without cgo or not for Linux, Probe says
// so. GPUs must have compute capability 7.0 or later.
//
// Kernels are compiled in parallel and cached on disk, as are plans of large modules: see
// package cubin. A program has one arena of device memory. Each entry is captured as one
// CUDA graph, so a run is a copy of its inputs, one launch, and a copy of its outputs, all
// asynchronous. Up to three runs of an entry are in flight, each with page-locked host
// memory for its inputs and outputs.
//
// Matrix products and attention of f16, bf16 and, if TF32 is set, f32 use tensor cores:
// by wgmma on compute capability 9.0, by mma from 8.0 on and with NVRTC older than 12.6,
// which takes minutes to compile wgmma.
//
// Matrix products that cuBLASLt was measured to compute faster use it if it is installed:
// f32 in full precision, TF32 if set, f16 and bf16 with f32 accumulation. It gets a
// workspace of 32 MiB. Everything else is computed by kernels, as are products for which
// cuBLASLt has no algorithm.
//
// Large matrices are factored by cuSOLVER, if it is installed, from the sizes on from which it was measured to be faster than
// kernels: Cholesky, LU, the reflections of QR and eigenvalues. Entries with eigenvalues, for which it waits for the
// device, are launched without a graph.
//
// Branches and loops of unknown trip count are conditional nodes of the graph with a driver
// for CUDA 12.4 or later. With NVRTC older than 12.3 the driver compiles the kernel that
// sets the conditions; if that fails, the host launches kernels one by one and branches.
//
// If the environment variable RLX_CUDA_DEBUG is not empty, kernels are launched and
// synchronised one by one, so that an error names its kernel.
//
// After an illegal access or a failure of the hardware, the device is lost
// ([native.ErrLost]) to the whole process; only another process can open it
// again.
package cuda

// Name is the name of the backend.
const Name = "cuda"
