package loop

import "math"

// Rates are what the costs of schedules are told by: estimates for a class of devices,
// by multiprocessor, not measured on the one at hand, so that a plan does not depend on
// where it is made. The zero value stands for those of an H200.
type Rates struct {
	Bytes  float64 // of memory that it moves in a nanosecond
	Flops  float64 // of f32 that it does in a nanosecond, without multiply-adds of warp groups
	Launch float64 // nanoseconds that a launch takes at least
}

// h200 is an H200's 132nd part: 3 TB/s, and products of f32 of 4096 by kernels of this
// compiler. A launch in a CUDA graph takes 1.5 µs, and waits as long for the one before.
var h200 = Rates{Bytes: 23, Flops: 270, Launch: 3000}

// largeDevice is how many multiprocessors a device is taken to have that is not known.
const largeDevice = 128

// residentThreads is how many threads a multiprocessor has at once, at most: 2,048 on
// NVIDIA's since Volta (CUDA C++ Programming Guide, compute capabilities), of which
// kernels with some registers get three quarters.
const residentThreads = 1536

// Profile returns the target's rates, an H200's where it states none.
func (c Caps) Profile() Rates {
	if c.Rates == (Rates{}) {
		return h200
	}
	return c.Rates
}

// Processors is how many multiprocessors costs count with.
func (c Caps) Processors() int {
	if c.Multiprocessors == 0 {
		return largeDevice
	}
	return c.Multiprocessors
}

// Bandwidth is how many bytes of memory the device moves in a nanosecond.
func (c Caps) Bandwidth() float64 { return c.Profile().Bytes * float64(c.Processors()) }

// Threads is how many threads the device has at once.
func (c Caps) Threads() int { return c.Processors() * residentThreads }

// Waves is how many times the device is full of workgroups of so many threads, the last
// time counted as a whole: it takes no less.
func (c Caps) Waves(groups, threads int) float64 {
	atOnce := c.Processors() * max(1, residentThreads/max(threads, 1))
	return math.Ceil(float64(groups) / float64(atOnce))
}
