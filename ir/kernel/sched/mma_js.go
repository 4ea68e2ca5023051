package sched

// withMma is false in the browser, where no target has multiply-adds of warp
// groups: their schedule stays out of the module.
const withMma = false
