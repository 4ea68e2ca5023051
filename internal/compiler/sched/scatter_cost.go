package sched

import (
	"math"
	"math/bits"

	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// additionTime is how many nanoseconds pass between two additions to one element by an
// instruction: 16,384 rows added to one took 168 µs (H200, CUDA).
const additionTime = 10.0

// eulerGamma is by how much the sum of 1/1 to 1/n exceeds the logarithm of n.
const eulerGamma = 0.5772156649

// heaviest is how many updates the row of most is expected to have. Indices are known
// only when a graph runs; those that rows are often gathered by are words, of which the
// k-th most frequent one comes 1/k as often as the first (Zipf's law).
func (s *scatterEmitter) heaviest() float64 {
	return min(1, 1/(math.Log(float64(s.Rows))+eulerGamma)) * float64(s.Positions)
}

// moved is what is read of updates, and read and written of the rows that they change.
func (s *scatterEmitter) moved() hardware.Work {
	positions, rows, size := float64(s.Positions), float64(min(s.Positions, s.Rows)), s.Out.DType.Size()
	return hardware.Work{
		Bytes:    (positions + 2*rows) * float64(s.Window*size),
		Sectors:  3 * positions * float64(ceilDiv(s.Window, sectorElements)*hardware.SectorBytes),
		Threads:  s.Positions * s.Window,
		UnderWay: size,
	}
}

// atomicCost estimates the nanoseconds of atomic additions: of all that is moved, or of
// those to the row of most updates, which wait for each other. Of exchanges that are tried
// at the same time one succeeds, and the others know of it as late as a load would: by that
// words are exchanged up to some 1,000 of them, where 48 µs were measured for it and 42 for
// sorting (H200, WebGPU; 21 and 35 for 512, 123 and 56 for 2,048).
func (s *scatterEmitter) atomicCost() float64 {
	d, each := s.caps.Profile(), additionTime
	if s.caps.AtomicFloats == loop.ExchangedFloats {
		each = d.Latency
	}
	return max(s.moved().Time(d), d.Launch+each*s.heaviest())
}

// sortedCost estimates the nanoseconds of the launches of [scatterEmitter.sorted]. For
// each position of a chunk a thread waits for its place and then for the update.
func (s *scatterEmitter) sortedCost() float64 {
	d, chunk := s.caps.Profile(), min(chunkOf(s.Positions), s.Positions)
	chunks := ceilDiv(s.Positions, chunk)
	waves := d.Waves(ceilDiv(chunks*s.Window, mapThreads), mapThreads)
	combine := d.Launch + max(s.moved().Bytes/d.Bandwidth(), 2*d.Latency*waves*float64(chunk))
	cost := sortWays{s.byRow()}.candidates()[0].Cost + combine
	if chunks > 1 {
		cost += d.Launch + d.Latency*float64(bits.Len(uint(s.Positions))) // to find where runs end
	}
	return cost
}
