// Package nccl has the collectives of GPUs, by NVIDIA's NCCL or AMD's RCCL: the communicator of a
// group of processes, each with a device of its own. The group itself connects the processes, as
// [collective.Group] says; it carries the id of the communicator, compares plans, and notices a rank
// that is lost, whereupon the communicator is aborted on all ranks.
//
// NCCL is loaded at run time. $RLX_NCCL is the path of libnccl.so.2 or librccl.so.1, or its folder;
// without it the library is searched where package internal/cuda/driver searches NVRTC: in
// $RLX_CUDA_PATH, toolkits, Python's wheels (nvidia/nccl/lib), the folders of the system, and by its
// loader. NCCL 2.18 or later is required.
//
// NCCL's own variables count, such as NCCL_DEBUG, NCCL_ALGO and NCCL_NVLS_ENABLE.
package nccl
