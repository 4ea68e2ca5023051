// Package cuda is the backend "cuda": modules run on NVIDIA GPUs. Importing the
// package registers it:
//
//	import _ "github.com/rlx-go/rlx/native/cuda"
//
//	session, err := rlx.Open("cuda") // or "cuda:1", the second GPU
//
// A program needs cgo and nothing of NVIDIA's to be built, and runs with or
// without a GPU: the driver and NVRTC, of CUDA 12 or 13, are found when the
// device is first asked for, as package driver tells: an NVRTC that knows the GPU, or one
// whose PTX the driver compiles for it. Without them, and in a
// program built without cgo or not for Linux, the device is there and says what
// is missing. GPUs are of compute capability 7.0 or later.
//
// Kernels are compiled to machine code in parallel and kept on disk, and so are plans that
// took long to make, for the program that made them: see package cubin. A program has one block of device memory; an entry is captured as one
// CUDA graph, so that a run is a copy of its inputs, one launch, and a copy of
// its outputs, none of which is waited for until the outputs are. Up to three
// runs of an entry are under way at a time, each with page-locked memory of the
// host for its inputs and outputs.
//
// Products and attention of f16, bf16 and, where TF32 is asked for, f32 go by tensor cores:
// by multiply-adds of warp groups on compute capability 9.0, by those of warps from 8.0 on
// and where NVRTC is older than 12.6, which takes minutes to compile the others.
//
// Products of matrices that cuBLASLt was measured to be faster at are left to it,
// where it is installed: those of f32 in full precision, those of tf32 where that is
// asked for, those of f16 and bf16 with sums in f32. It gets 32 MiB of the program's
// memory to work in. All else, and all where it is missing, is computed by kernels, and so
// is a product that it turns out to have no algorithm for.
//
// Branches and loops of unknown length are nodes of the graph with a driver for CUDA 12.4 or
// later. Where NVRTC is older than 12.3 the driver compiles what sets their conditions; where
// it does not, kernels are launched one by one and the host decides which.
//
// Where the environment variable RLX_CUDA_DEBUG is not empty, kernels are
// launched one by one and waited for, so that an error names its kernel.
//
// After an illegal access or a failure of the hardware, the device is lost
// ([native.ErrLost]) to the whole process; only another process can open it
// again.
package cuda

// Name is the name of the backend.
const Name = "cuda"
