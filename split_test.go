package rlx_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
)

// splitData has ten rows with their numbers, and labels of three classes.
func splitData() rlx.Inputs {
	return rlx.Inputs{
		"row":    rlx.Float32s([]float32{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9}, 10, 2),
		"labels": rlx.Int32s([]int32{5, 5, 2, 5, 2, 2, 2, 0, 0, 5}),
	}
}

// testedRows returns the rows to test with, and checks that the others are those to train with.
func testedRows(t *testing.T, test float64, o rlx.SplitOptions) (rows []int) {
	t.Helper()
	training, testing, err := rlx.SplitRows(splitData(), test, o)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := splitData()["labels"].Int32s()
	var parts [2][]int
	for i, part := range []rlx.Inputs{training, testing} {
		x, _ := part["row"].Float32s()
		labels, _ := part["labels"].Int32s()
		for at, label := range labels {
			row := int(x[2*at])
			if parts[i] = append(parts[i], row); label != all[row] || x[2*at+1] != x[2*at] {
				t.Errorf("row %d has label %d and %g, want %d", row, label, x[2*at+1], all[row])
			}
		}
	}
	both := slices.Sorted(slices.Values(slices.Concat(parts[0], parts[1])))
	if !slices.Equal(both, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) || !slices.IsSorted(parts[0]) {
		t.Errorf("the parts are %v", parts)
	}
	return parts[1]
}

// TestSplitRows compares rows with stored ones, which fit.test.mjs has, too, and counts how often seeds choose each.
func TestSplitRows(t *testing.T) {
	for _, c := range []struct {
		test float64
		o    rlx.SplitOptions
		want []int
	}{
		{0.4, rlx.SplitOptions{Seed: 7, Stratify: "labels"}, []int{0, 5, 8, 9}}, // classes of 4, 4 and 2 rows
		{0.3, rlx.SplitOptions{Seed: 4_000_000_000}, []int{2, 3, 9}},
		{0.01, rlx.SplitOptions{}, []int{7}},
	} {
		if got := testedRows(t, c.test, c.o); !slices.Equal(got, c.want) {
			t.Errorf("%g of the rows by %+v are %v, want %v", c.test, c.o, got, c.want)
		}
	}
	var times [10]int
	for seed := range uint32(1000) {
		for _, row := range testedRows(t, 0.3, rlx.SplitOptions{Seed: seed}) {
			times[row]++
		}
	}
	for row, n := range times {
		if n < 240 || n > 360 { // 300 ± 4 deviations
			t.Errorf("1000 seeds choose row %d %d times, want about 300", row, n)
		}
	}
}

func TestSplitRowsRefuses(t *testing.T) {
	one := rlx.Inputs{"x": rlx.Float32s([]float32{1}, 1)}
	for _, c := range []struct {
		data rlx.Inputs
		test float64
		o    rlx.SplitOptions
		kind error
	}{
		{splitData(), 0, rlx.SplitOptions{}, ir.ErrAttr},
		{splitData(), 1, rlx.SplitOptions{}, ir.ErrAttr},
		{splitData(), 0.5, rlx.SplitOptions{Stratify: "row"}, ir.ErrAttr},
		{splitData(), 0.5, rlx.SplitOptions{Stratify: "label"}, ir.ErrName},
		{one, 0.5, rlx.SplitOptions{}, ir.ErrShape},
		{nil, 0.5, rlx.SplitOptions{}, ir.ErrShape},
	} {
		if _, _, err := rlx.SplitRows(c.data, c.test, c.o); !errors.Is(err, c.kind) {
			t.Errorf("%g by %+v: %v, want %v", c.test, c.o, err, c.kind)
		}
	}
}
