// Package driver calls the CUDA driver and NVRTC, which it finds at run time:
// a program that imports it builds without a toolkit and starts without a
// driver. It covers what running the kernels of package cudacpp takes, on
// Linux.
package driver
