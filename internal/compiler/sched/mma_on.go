//go:build !js

package sched

// withMma reports whether some target has multiply-adds of warp groups.
const withMma = true
