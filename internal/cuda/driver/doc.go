// Package driver calls the CUDA driver, NVRTC and, where it is there, cuBLASLt,
// which it finds at run time: a
// program that imports it builds without a toolkit or NVIDIA's headers and
// starts without a driver. It has what the backend needs, on Linux and with
// cgo; elsewhere the package is this search alone.
//
// # Where libraries are looked for
//
// The driver, libcuda.so.1, is looked for in the folders of $RLX_CUDA_PATH (a
// list separated by colons), where the system's loader looks, and in the usual
// places of Linux and WSL. It must be of CUDA 12.0 or later.
//
// NVRTC is looked for in the order of these folders, and cuBLASLt of the same major version
// after it:
//
//   - those of $RLX_CUDA_PATH;
//   - of a toolkit: lib64, lib and targets/*/lib under $CUDA_HOME, $CUDA_PATH
//     and $CUDA_ROOT;
//   - of pip's wheels (nvidia-cuda-nvrtc, nvidia-cublas): site-packages/nvidia/*/lib of
//     $VIRTUAL_ENV, of $CONDA_PREFIX and of the python3 on the PATH, and the
//     libraries of $CONDA_PREFIX itself;
//   - /usr/local/cuda/lib64, /usr/local/cuda-*/lib64, /opt/cuda/lib64 and the
//     system's folders of libraries;
//   - wheels installed for the system or the user;
//   - where the system's loader looks.
//
// Only libraries of one major version of CUDA are used together. Those of the driver's come
// first, in any of the folders, then those of an older one from 12 on, which newer drivers
// run as well.
//
// # Which compiler is taken
//
// The first NVRTC in that order which compiles for the GPU (nvrtcGetSupportedArchs): for
// compute capability 7.0 those of CUDA 12, for 10.0 and 12.0 those from 12.8 on. Where there
// is none, the one whose PTX is nearest to the GPU, if it is not newer than the driver, which
// then compiles for the GPU. Where there is none of that either, [Library.Open] says which
// version to install.
package driver
