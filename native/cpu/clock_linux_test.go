package cpu_test

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// processClock is CLOCK_PROCESS_CPUTIME_ID of linux/time.h.
const processClock = 2

// clock returns the time for measuring jobs: on one core the processor time of the process,
// which other processes disturb less, else the wall time.
func clock() time.Duration {
	if runtime.GOMAXPROCS(0) > 1 {
		return time.Since(started)
	}
	var t syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, processClock, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		panic(err)
	}
	return time.Duration(t.Nano())
}

var started = time.Now()

// peerClock is the clock that peers use.
func peerClock() string {
	if runtime.GOMAXPROCS(0) > 1 {
		return "RLX_BENCH_CLOCK=day"
	}
	return "RLX_BENCH_CLOCK=process"
}
