package sched

// withMma is false in the browser, where no target has multiply-adds of warp
// groups or a library of products: their schedules stay out of the module.
const withMma = false
