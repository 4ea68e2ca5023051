package permute_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/permute"
)

func TestAxes(t *testing.T) {
	data := make([]byte, 2*3*4*2) // [2, 3, 4] of two bytes, the number of the element twice
	for i := range data {
		data[i] = byte(i / 2)
	}
	got := permute.Axes(data, 2, []int{2, 3, 4}, []int{2, 0, 1})
	for a := range 4 {
		for b := range 2 {
			for c := range 3 {
				want := byte((b*3+c)*4 + a)
				if at := 2 * ((a*2+b)*3 + c); !bytes.Equal(got[at:at+2], []byte{want, want}) {
					t.Errorf("element [%d, %d, %d] is %v, not %d", a, b, c, got[at:at+2], want)
				}
			}
		}
	}
	if got := permute.Axes(nil, 4, []int{0, 3}, []int{1, 0}); len(got) != 0 {
		t.Errorf("of no elements it has %d bytes", len(got))
	}
}

func TestOrders(t *testing.T) {
	order := []int{2, 0, 3, 1}
	for i, axis := range permute.Inverse(order) {
		if order[axis] != i {
			t.Errorf("the inverse of %v has %d at %d", order, axis, i)
		}
	}
	if got, want := permute.Others(5, []int{3}, nil, []int{0, 1}), []int{2, 4}; !slices.Equal(got, want) {
		t.Errorf("the axes in no list are %v, not %v", got, want)
	}
}
