package rlx_test

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
)

// epochOf returns the elements of x in each batch of an epoch.
func epochOf(t *testing.T, data func(epoch int) iter.Seq2[rlx.Inputs, error], epoch int) (batches [][]float32) {
	t.Helper()
	for batch, err := range data(epoch) {
		if err != nil {
			t.Fatal(err)
		}
		x, err := batch["x"].Float32s()
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, slices.Clone(x))
	}
	return batches
}

// TestRanksDivideBatches compares what 1, 2, 3 and 6 ranks get together with the batches, and refuses 4.
func TestRanksDivideBatches(t *testing.T) {
	values := make([]float32, 26)
	for i := range values {
		values[i] = float32(i)
	}
	data := rlx.Shuffled(rlx.Inputs{"x": rlx.Float32s(values, 13, 2)}, 6, 1)
	want := epochOf(t, data, 3)
	for _, size := range []int{1, 2, 3, 6} {
		got := make([][]float32, len(want))
		for rank := range size {
			for i, part := range epochOf(t, rlx.OfRank(data, rank, size), 3) {
				if len(part) != 12/size {
					t.Errorf("rank %d of %d has %d elements of a batch", rank, size, len(part))
				}
				got[i] = append(got[i], part...)
			}
		}
		if len(want) != 2 || !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
			t.Errorf("%d ranks get %v, want %v", size, got, want)
		}
	}
	for _, c := range []struct {
		rank, size int
		kind       error
	}{{0, 4, ir.ErrShape}, {2, 2, ir.ErrAttr}, {-1, 2, ir.ErrAttr}, {0, 0, ir.ErrAttr}} {
		for _, err := range rlx.OfRank(data, c.rank, c.size)(0) {
			if !errors.Is(err, c.kind) {
				t.Errorf("rank %d of %d: %v", c.rank, c.size, err)
			}
		}
	}
}
