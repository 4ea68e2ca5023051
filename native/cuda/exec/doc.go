// Package exec runs plans whose kernels are CUDA C++ on an NVIDIA GPU, one
// launch after the other. It is what the kernels of package cudacpp are proven
// with on a device.
package exec
