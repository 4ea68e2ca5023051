package cpu

import (
	"math"
	"testing"
)

// Where an int has 32 bits, this is 2 GiB.
func TestAnArenaThatAnIntDoesNotCountIsNoticed(t *testing.T) {
	for _, last := range []int{math.MaxInt/2 + 1, math.MaxInt} {
		var a arena
		a.alloc(math.MaxInt/2+1, 0, 1)
		if a.overflows {
			t.Error("one tensor is too many")
		}
		if a.alloc(last, 1, 1); !a.overflows {
			t.Errorf("%d bytes more are not too many", last)
		}
	}
}
