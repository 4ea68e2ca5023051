package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// panelVectors are the vectors of a row of a panel of [Substitute], by kernel.
var panelVectors = [...]int{8, 4, 2, 1}

// PanelWidth returns the columns of the panels that [Substitute] solves for n columns: those of the narrowest
// kernel that has n, or of the widest.
func PanelWidth[T Float](n int) int {
	d := kernelsOf[T]()
	return panelVectors[d.panelKernel(n)] * d.lanes
}

// panelKernel returns the narrowest kernel that has n columns, or the widest.
func (d *kernels[T]) panelKernel(n int) int {
	k := 0
	for k+1 < len(panelVectors) && panelVectors[k+1]*d.lanes >= n {
		k++
	}
	return k
}

// Substitute solves a triangular system for the columns of a panel, in place: row i becomes aᵢᵢ times the sum of
// the row and of aᵢₗ times each row l before it. So a is a lower triangle with the elements below the diagonal
// negated and those on it inverted. Rows of a have size elements, rows of the panel width ones, a result of
// [PanelWidth].
func Substitute[T Float](size int, a, panel []T, width int) {
	d := kernelsOf[T]()
	code := d.substitute[d.panelKernel(width)]
	if code == nil {
		plainSubstitute(size, a, panel, width)
		return
	}
	_, _ = a[size*size-1], panel[size*width-1]
	var t substituteArguments
	t.a, t.panel, t.aRow = unsafe.Pointer(&a[0]), unsafe.Pointer(&panel[0]), size
	asm.Call(code, unsafe.Pointer(&t), size)
}

// substituteArguments are the arguments of code for [Substitute]; n is the size.
type substituteArguments struct {
	a, panel unsafe.Pointer
	aRow     int
}

func plainSubstitute[T Float](size int, a, panel []T, width int) {
	for i := range size {
		row := panel[i*width:][:width]
		for l, by := range a[i*size:][:i] {
			for j, x := range panel[l*width:][:width] {
				row[j] += by * x
			}
		}
		for j := range row {
			row[j] *= a[i*size+i]
		}
	}
}
