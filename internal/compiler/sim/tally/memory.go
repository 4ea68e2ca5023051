package tally

import (
	"slices"

	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// The memory system of NVIDIA's GPUs since Volta (CUDA C++ Programming Guide, "Device Memory Accesses" and "Shared Memory").
const (
	warp       = loop.Warp
	lineBytes  = 128
	lineOf     = lineBytes / hardware.SectorBytes // sectors of a line
	bankBytes  = 4
	banks      = 32
	arrayShift = 48 // of the number of an array in the name of a sector
)

// keptBytes is the size of an array that stays in the cache of a processor from one workgroup to the next.
const keptBytes = 16 << 10

// access counts what a statement or a load does for the active lanes: each accesses some bytes from an index of elements
// of some size.
func (m *machine) access(site any, array int, at *column, each, bytes int, active uint32, store bool) {
	a := &m.k.Arrays[array]
	if active == 0 || m.weight == 0 || a.Space == loop.Private {
		return
	}
	m.counts.Issued += m.weight
	var room [warp]int64
	first := room[:0]
	for lane := range warp {
		index := at.at(lane)
		if active>>lane&1 == 0 || index < 0 || a.Len > 0 && index*int64(each) >= int64(a.Bytes()) {
			continue
		}
		first = append(first, index*int64(each))
	}
	if len(first) == 0 {
		return
	}
	if a.Space == loop.Shared {
		m.counts.Lines += m.weight * conflicts(first, bytes)
		return
	}
	m.storage(site, array, first, bytes, store)
}

// storage counts the sectors and lines of an access of a warp.
func (m *machine) storage(site any, array int, first []int64, bytes int, store bool) {
	sectors := m.sectors[:0]
	for _, x := range first {
		for s := x / hardware.SectorBytes; s <= (x+int64(bytes)-1)/hardware.SectorBytes; s++ {
			if n := len(sectors); n == 0 || sectors[n-1] != s {
				sectors = append(sectors, s)
			}
		}
	}
	slices.Sort(sectors)
	sectors = slices.Compact(sectors)
	m.sectors = sectors
	slices.Sort(first) // lanes that read the same element need its bytes once
	same := slices.Compact(slices.Clone(first))
	lines, last, fresh := 0, int64(-1), 0
	for _, s := range sectors {
		if s/lineOf != last {
			lines, last = lines+1, s/lineOf
		}
		key := int64(array)<<arrayShift | s
		if _, near := m.near[key]; !near {
			fresh++
			m.near[key] = struct{}{}
		}
	}
	n := float64(len(sectors))
	missed := float64(fresh)
	switch moved, before := m.moved(site, first); {
	case store:
		missed = n
	case m.k.Arrays[array].Access == loop.Read && m.k.Arrays[array].Len > 0 && m.k.Arrays[array].Bytes() <= keptBytes:
		missed = 0 // workgroups before have read it
	case before && moved < 1:
		missed = n * moved
	}
	m.counts.Lines += m.weight * float64(lines)
	m.counts.Sectors += m.weight * n
	m.counts.Missed += m.weight * missed
	m.counts.Least += m.weight * min(n, max(1, float64(len(same)*bytes)/hardware.SectorBytes))
}

// moved returns by which part of a sector the lanes' accesses have moved since the last access of the site by the warp;
// before is false for the first one.
func (m *machine) moved(site any, first []int64) (part float64, before bool) {
	last, before := m.last[site]
	if before = before && len(last) == len(first); before {
		for i, x := range first {
			part += min(1, float64(max(x-last[i], last[i]-x))/hardware.SectorBytes)
		}
		part /= float64(len(first))
	}
	m.last[site] = slices.Clone(first)
	return part, before
}

// conflicts returns the cycles of a warp's access to shared memory. A half warp accesses vectors of 8 bytes at a time, a
// quarter warp those of 16.
func conflicts(first []int64, bytes int) (cycles float64) {
	together := warp * bankBytes / max(bytes, bankBytes)
	for len(first) > 0 {
		n := min(together, len(first))
		cycles += busiest(first[:n], bytes)
		first = first[n:]
	}
	return cycles
}

func busiest(first []int64, bytes int) float64 {
	var room [2 * warp]int64
	words := room[:0]
	for _, x := range first {
		for w := x / bankBytes; w <= (x+int64(bytes)-1)/bankBytes; w++ {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	most, in := 1, [banks]int{}
	for _, w := range slices.Compact(words) {
		in[w%banks]++
		most = max(most, in[w%banks])
	}
	return float64(most)
}
