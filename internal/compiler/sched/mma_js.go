package sched

// withMma is false in the browser, where no target has multiply-adds of warp groups, a
// library of products or vectors of 16 bits: their schedules stay out of the module. A
// condition may name it only beside one that is false for every target of the browser, so
// that a plan is the same wherever it is made; js/test/same-plans.test.mjs holds it to that.
const withMma = false
