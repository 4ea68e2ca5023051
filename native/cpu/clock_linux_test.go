package cpu_test

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// processClock is the clock of the processor time of a process, by its name in
// linux/time.h.
const processClock = 2

// clock returns the time of the process by which jobs are measured: on one core the
// processor time, which other processes disturb less, else that of the day.
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

// peerClock tells peers which clock to take.
func peerClock() string {
	if runtime.GOMAXPROCS(0) > 1 {
		return "RLX_BENCH_CLOCK=day"
	}
	return "RLX_BENCH_CLOCK=process"
}
