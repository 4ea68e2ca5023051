package serial_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/sched/serial"
)

// TestWorkgroupsShareNoPanels checks the division of a product among workgroups: whole panels
// of 6 rows and of 8 columns, and packed columns of one workgroup only.
func TestWorkgroupsShareNoPanels(t *testing.T) {
	for _, m := range []int{3, 6, 7, 128, 1000} {
		for _, n := range []int{3, 8, 200, 1000, 1100} {
			for _, shares := range []int{1, 2, 5, 8} {
				for _, most := range []int{1, 87, 512} {
					rows, columns, packed := serial.ProductArea(m, n, shares, most)
					across, down := (n+columns-1)/columns, (m+rows-1)/rows
					switch {
					case across*down > shares:
						t.Errorf("%d × %d among %d: %d × %d areas", m, n, shares, down, across)
					case down > 1 && rows%6 != 0, packed%8 != 0, across > 1 && columns%packed != 0:
						t.Errorf("%d × %d among %d: areas of %d × %d, %d packed", m, n, shares, rows, columns, packed)
					case packed >= most+8:
						t.Errorf("%d × %d: %d columns are packed, %d fit", m, n, packed, most)
					}
				}
			}
		}
	}
}

// TestSquareProductsAreDividedBothWays has a product whose rows eight workgroups pack twice and
// its columns four times: packing all of one operand eight times took a tenth of the time of a
// product of 1024 rows and columns.
func TestSquareProductsAreDividedBothWays(t *testing.T) {
	if rows, columns, _ := serial.ProductArea(1024, 1024, 8, 512); rows != 258 || columns != 512 {
		t.Errorf("areas of %d × %d, want 258 × 512", rows, columns)
	}
}
