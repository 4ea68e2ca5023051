package generate

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native"
)

// pagesFor returns the number of pages that hold some positions.
func (l *scheduler) pagesFor(positions int) int {
	page := l.e.options.Page
	return (min(positions, l.e.options.Context) + page - 1) / page
}

// fits reports whether a slot can get pages for some positions without taking those of another request.
func (l *scheduler) fits(s *slot, positions int) bool {
	n := len(l.free) + len(s.pages)
	for _, other := range l.slots {
		if other.r == nil && other != s {
			n += len(other.pages)
		}
	}
	return l.pagesFor(positions) <= n
}

// grow gives a slot pages for some positions: free ones, those of the free slot that was used longest ago, or
// those of the request that was admitted last. It reports false if that is the slot's own.
func (l *scheduler) grow(s *slot, positions int) bool {
	for want := l.pagesFor(positions); len(s.pages) < want; {
		if n := len(l.free); n > 0 {
			s.pages, l.free = append(s.pages, l.free[n-1]), l.free[:n-1]
		} else if v := l.victim(s); v.r == nil {
			l.release(v)
		} else if l.restart(v); v == s {
			return false
		}
	}
	return true
}

// growAll gives each slot a page for its next position, those of early requests first, and returns the slots
// that still have a request.
func (l *scheduler) growAll(ready []*slot) (grown []*slot) {
	slices.SortFunc(ready, func(a, b *slot) int { return cmp.Compare(a.r.order, b.r.order) })
	for _, s := range ready {
		if s.r != nil && l.grow(s, s.past+1) {
			grown = append(grown, s)
		}
	}
	return grown
}

// victim returns the slot that loses its pages for s.
func (l *scheduler) victim(s *slot) *slot {
	worst := s
	for _, v := range l.slots {
		switch {
		case len(v.pages) == 0 || v == s:
		case v.r == nil && (worst.r != nil || v.used.Before(worst.used)):
			worst = v
		case v.r != nil && worst.r != nil && v.r.order > worst.r.order:
			worst = v
		}
	}
	return worst
}

// release takes the pages of a slot.
func (l *scheduler) release(s *slot) {
	l.free = append(l.free, s.pages...)
	s.pages, s.cached = nil, nil
}

// restart takes the slot and the pages of a request, which waits before all others and is then processed
// anew. Runs in flight may still read the pages: later ones write to them afterwards.
func (l *scheduler) restart(s *slot) {
	r := s.r
	r.stats.Restarts++
	r.issued, r.fill = len(r.result), slices.Concat(r.prompt, r.result)
	s.free()
	l.release(s)
	l.waiting = slices.Insert(l.waiting, 0, r)
}

// table returns the pages of slots for runs of some rows, i32[rows, pages of a slot]: -1 where there is none.
func (l *scheduler) table(rows int, slots ...*slot) native.Tensor {
	n := l.e.options.slotPages()
	table := slices.Repeat([]int32{-1}, rows*n)
	for i, s := range slots {
		copy(table[i*n:][:n], s.pages)
	}
	return rlx.Int32s(table, rows, n)
}
