package tally

import (
	"math"

	"github.com/rlx-go/rlx/ir/hardware"
)

// Ops are instructions of warps, by the unit that executes them.
type Ops struct {
	Issued  float64 // on any unit
	Int     float64 // on integers
	F64     float64
	Special float64 // approximations of functions
}

// Counts are the accesses and operations of all workgroups of a kernel.
type Counts struct {
	Ops
	// Lines are the cycles of the memory unit of a processor: a warp's access takes one for each line of
	// 128 bytes that it touches, in shared memory one for each word of the busiest bank.
	Lines float64
	// Sectors are those that accesses to storage touch, and Missed those of them that the workgroup does not find near: it has
	// not read them before, or stores them.
	Sectors, Missed float64
	// Copied are the sectors of copies by TMA.
	Copied float64
	// Least are the sectors that the bytes of all accesses take at least.
	Least float64
	// Products are the multiplications and additions of matrix units, in tiles of at least 256, of at least 128 and of
	// fewer columns; those of TF32 count twice.
	Products [3]float64
	Barriers float64
}

// Plus returns the sum of operations and some times others.
func (o Ops) Plus(v Ops, times float64) Ops {
	return Ops{o.Issued + times*v.Issued, o.Int + times*v.Int, o.F64 + times*v.F64, o.Special + times*v.Special}
}

// plus returns the sum of c and some times v.
func (c Counts) plus(v Counts, times float64) Counts {
	c.Ops = c.Ops.Plus(v.Ops, times)
	c.Lines += times * v.Lines
	c.Sectors += times * v.Sectors
	c.Missed += times * v.Missed
	c.Copied += times * v.Copied
	c.Least += times * v.Least
	for i := range c.Products {
		c.Products[i] += times * v.Products[i]
	}
	c.Barriers += times * v.Barriers
	return c
}

// The units of a processor of NVIDIA's since Volta (CUDA C++ Programming Guide, table of the throughput of arithmetic
// instructions): for each instruction of f32, how many as long one of another unit takes, and how many the memory unit
// for a line.
const (
	intTimes     = 2
	f64Times     = 2
	specialTimes = 8
	lineTimes    = 2.5
)

// copyRate is by how much TMA copies faster from the cache than warps load.
const copyRate = 2

// Time returns the nanoseconds that a processor needs for the operations: the busiest unit determines it.
func (o Ops) Time(p hardware.Profile) float64 {
	return max(o.Issued, intTimes*o.Int, f64Times*o.F64, specialTimes*o.Special) * instruction(p)
}

// reached is the part of the time of a multiply-add in tiles of products, which the rate of a profile is measured with,
// that the multiply-add itself takes. With it the median of the counted times is that of the times measured on an H200.
const reached = 0.75

// instruction returns the nanoseconds between two instructions of a processor, which do two operations for each lane.
func instruction(p hardware.Profile) float64 { return reached * 2 * warp / p.Flops }

// Time returns the nanoseconds that the counted work takes on as many processors as the workgroups occupy, without
// the launch and without waiting for memory.
func (c Counts) Time(p hardware.Profile, groups int) float64 {
	busy := float64(max(1, min(groups, p.Processors)))
	busy = float64(groups) / math.Ceil(float64(groups)/busy) // of the last workgroups, some processors have none
	products := 0.0
	for i, n := range c.Products {
		products += n / p.Rates().WarpGroups[i]
	}
	cached := (c.Missed + c.Copied/copyRate) * hardware.SectorBytes
	return max(c.Ops.Time(p)/busy, c.Lines*lineTimes*instruction(p)/busy, products/busy, cached/p.CacheBandwidth())
}
