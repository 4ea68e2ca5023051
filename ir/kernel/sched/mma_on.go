//go:build !js

package sched

// withMma is false where [scheduleByDevice] has no use.
const withMma = true
