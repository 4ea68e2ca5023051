//go:build !js

package ops

// withKernels says whether factorisations, triangular solves and Fourier transforms
// bring kernels of their own besides Cholesky's.
const withKernels = true
