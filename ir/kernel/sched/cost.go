package sched

import (
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
)

// What memory is made of: sectors of 32 bytes, which a device reads and writes as a
// whole, so many elements of 4 bytes each.
const (
	sectorBytes    = 32
	sectorElements = sectorBytes / 4
)

// Estimates that costs are made of, in the terms of an H200.
const (
	// cacheRate is how much faster than memory the cache between it and the
	// multiprocessors is: 5.5 TB/s to 4 on an H100 and an H200.
	cacheRate = 1.35
	// latency is how many nanoseconds a load takes.
	latency = 600
	// pointOps is what a thread does for an element besides computing it: to find where
	// it lies, to load and to store it.
	pointOps = 10
	// issued is how many of the operations that a multiprocessor could do count where
	// only half of them are pairs of a product and a sum.
	issued = 0.5
	// meetTime is a store to workgroup memory, a barrier and a load, in nanoseconds.
	meetTime = 60
)

// traffic is what a kernel does that memory may bound.
type traffic struct {
	bytes    float64 // read and written at least
	sectors  float64 // bytes of the sectors that accesses touch, each access for itself
	ops      float64 // operations, on all elements
	threads  int     // that there are
	underWay int     // bytes that a thread reads without waiting in between
}

// cost estimates the nanoseconds that it takes: the most of what memory, the cache and
// arithmetic take, and of waiting where too little is under way at a time (Little's law).
func (t traffic) cost(caps loop.Caps) float64 {
	rates := caps.Profile()
	atOnce := float64(min(max(t.threads, 1), caps.Threads()) * max(t.underWay, 1))
	return rates.Launch + max(
		t.bytes/caps.Bandwidth(),
		t.sectors/(cacheRate*caps.Bandwidth()),
		t.ops/(issued*rates.Flops*float64(caps.Processors())),
		latency*max(1, t.bytes/atOnce),
	)
}

// bytesOf is what tensors take in memory.
func bytesOf(tensors []*group.Tensor) float64 {
	n := 0.0
	for _, t := range tensors {
		n += float64(t.Bytes())
	}
	return n
}
