package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/hardware"
)

// sectorElements is how many elements of 4 bytes a sector of memory has.
const sectorElements = hardware.SectorBytes / 4

// pointOps is what a thread does for an element besides computing it: to find where it
// lies, to load and to store it.
const pointOps = 10

// bytesOf is what tensors take in memory.
func bytesOf(tensors []*fusion.Tensor) float64 {
	n := 0.0
	for _, t := range tensors {
		n += float64(t.Bytes())
	}
	return n
}
