package ops

// withKernels is false in the module of a page, whose size is bounded: there GPUs run
// the bodies of these ops. Plans made elsewhere have the kernels and run in a page.
const withKernels = false
