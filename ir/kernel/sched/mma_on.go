//go:build !js

package sched

// withMma is false where [scheduleMma] has no use.
const withMma = true
