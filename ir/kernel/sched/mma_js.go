package sched

// withMma is false in the browser, where no target has multiply-adds of warp groups, a
// library of products or vectors of 16 bits: their schedules stay out of the module.
const withMma = false
