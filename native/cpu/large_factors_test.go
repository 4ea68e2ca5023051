package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
)

// TestLargeFactorisations multiplies the factors of matrices of several blocks of reflections and several
// levels of divide and conquer.
func TestLargeFactorisations(t *testing.T) {
	for _, name := range []string{"qr", "full qr", "eigh", "svd"} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []ir.DType{ir.F32, ir.F64} {
				for _, dims := range [][2]int{{140, 140}, {150, 70}, {70, 150}} {
					g, err := ir.Build("factors", func(b *ir.Builder) {
						rest, turned := factored[name](b, b.Input("x", d, ir.Dims(dims[:]...)...))
						b.Output("rest", rest)
						b.Output("turned", turned)
					})
					if err != nil {
						t.Fatal(err)
					}
					checkForm(t, g, "routines", d, dims)
				}
			}
		})
	}
}
