package emit

// WithMma is false in the browser, where no target has multiply-adds of warp groups, a library
// of products or vectors of 16-bit elements: their schedules are not linked into the module. It is a
// constant and not a capability because the linker cannot drop what a capability selects: the
// module would grow by 51 kB, 4 % of its size compressed by brotli. A condition may use it only
// together with one that is false for every target of the browser, so that a plan is the same
// wherever it is made; js/test/same-plans.test.mjs checks that.
const WithMma = false
