//go:build !js

package sched

// withMma is false where no target has multiply-adds of warp groups.
const withMma = true
