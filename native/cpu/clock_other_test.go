//go:build !linux

package cpu_test

import "time"

// clock returns the time by which jobs are measured.
func clock() time.Duration { return time.Since(started) }

var started = time.Now()

// peerClock tells peers which clock to take.
func peerClock() string { return "RLX_BENCH_CLOCK=day" }
