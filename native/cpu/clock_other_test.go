//go:build !linux

package cpu_test

import "time"

// clock returns the wall time.
func clock() time.Duration { return time.Since(started) }

var started = time.Now()

// peerClock is the clock that peers use.
func peerClock() string { return "RLX_BENCH_CLOCK=day" }
