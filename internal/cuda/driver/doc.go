// Package driver calls the CUDA driver, NVRTC and, if installed, cuBLASLt, cuSOLVER and NCCL. It loads them at
// run time: programs build without a toolkit or NVIDIA's headers and start without a
// driver. The bindings exist on Linux with cgo; elsewhere the package only has the search.
// It is the lowest layer of the backend native/cuda. Start reading at library_linux.go and
// device_linux.go.
//
// # Search for libraries
//
// The driver, libcuda.so.1, is searched in the folders of $RLX_CUDA_PATH (a list separated
// by colons), by the system's loader, and in the usual places of Linux and WSL. It must
// support CUDA 12.0 or later.
//
// NVRTC, and cuBLASLt and cuSOLVER of the same major version of CUDA, are searched in this order:
//
//   - those of $RLX_CUDA_PATH;
//   - of a toolkit: lib64, lib and targets/*/lib under $CUDA_HOME, $CUDA_PATH
//     and $CUDA_ROOT;
//   - of pip's wheels (nvidia-cuda-nvrtc, nvidia-cublas, nvidia-cusolver): site-packages/nvidia/*/lib of
//     $VIRTUAL_ENV, of $CONDA_PREFIX and of the python3 on the PATH, and the
//     libraries of $CONDA_PREFIX itself;
//   - /usr/local/cuda/lib64, /usr/local/cuda-*/lib64, /opt/cuda/lib64 and the
//     system's folders of libraries;
//   - wheels installed for the system or the user;
//   - by the system's loader.
//
// NCCL, libnccl.so.2, or RCCL, librccl.so.1, is the library or in the folder of $RLX_NCCL; without it
// it is searched in the same order, whatever its version of CUDA.
//
// All other libraries have the same major version of CUDA: the driver's if there are such, else
// the newest older one from 12 on.
//
// # Choice of the compiler
//
// The first NVRTC in that order that compiles for the GPU (nvrtcGetSupportedArchs) is used:
// for compute capability 7.0 one of CUDA 12, for 10.0 and 12.0 one from 12.8 on. If there is
// none, it is the one with the nearest older PTX, if it is not newer than the driver, which
// then compiles the PTX. Otherwise the error of [Library.Open] names the version to install.
package driver
