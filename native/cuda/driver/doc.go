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
// NVRTC, and after it cuBLASLt of the same major version, is taken from the first of these folders that has it:
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
// Only libraries of one major version of CUDA are used together: that of the
// driver if it is there in any of the folders, otherwise an older one from 12
// on, which newer drivers run as well.
package driver
