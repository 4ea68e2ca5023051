package cpu

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// sortStep argsorts the keys of each row, stably.
type sortStep struct {
	keys, order  *buffer
	rows, length int
}

func (s *sortStep) run(r *runner) { r.job.run(s, s.rows) }

func (s *sortStep) do(_, row int) {
	places := view[int32](s.order)[row*s.length : (row+1)*s.length]
	for i := range places {
		places[i] = int32(i)
	}
	if s.keys.dtype == ir.U64 {
		argsort(places, view[uint64](s.keys)[row*s.length:])
	} else {
		argsort(places, view[uint32](s.keys)[row*s.length:])
	}
}

func argsort[T cmp.Ordered](places []int32, keys []T) {
	slices.SortStableFunc(places, func(a, b int32) int { return cmp.Compare(keys[a], keys[b]) })
}
