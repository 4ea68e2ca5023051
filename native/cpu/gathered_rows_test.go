package cpu_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestGatheredRows adds rows of two tables by ids, one of which may be outside, with rows that are
// whole vectors and such that are not. A wrong id of the other, which is computed so that it is
// checked while the graph runs, is an error, but for that run only.
func TestGatheredRows(t *testing.T) {
	const rows, places = 7, 2000
	everyLevel(t, func(t *testing.T) {
		for _, width := range []int{16, 32, 33, 48, 4} {
			t.Run(fmt.Sprint(width), func(t *testing.T) {
				g, err := ir.Build("g", func(b *ir.Builder) {
					x, y := b.Input("x", ir.F32, ir.Dims(rows, width)...), b.Input("y", ir.F32, ir.Dims(rows, width)...)
					a, c := b.Input("a", ir.I32, ir.Dims(places)...), b.Input("c", ir.I32, ir.Dims(places)...)
					b.Output("z", ops.Add(b, ops.Embedding(b, x, ops.Neg(b, a)), ops.Neg(b, ops.Take(b, y, c, 0, ops.OutsideFill))))
				})
				if err != nil {
					t.Fatal(err)
				}
				x, y := random(rows*width), random(rows*width)
				a, c, z := make([]int32, places), make([]int32, places), make([]float32, places*width)
				for i := range a {
					a[i], c[i] = -int32(i*5%rows), int32(i*11%(rows+4)-2)
				}
				c[0], c[1], c[2] = 1<<31-1, -1<<31, rows-1
				step := bind(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), "run", map[string]native.Tensor{
					"x": native.Float32s(x, rows, width), "y": native.Float32s(y, rows, width),
					"a": native.Int32s(a, places), "c": native.Int32s(c, places),
				}, map[string]native.Tensor{"z": native.Float32s(z, places, width)})
				for _, wrong := range []int32{0, -rows, 1, 0} {
					last := a[places-1]
					if wrong != 0 {
						a[places-1] = wrong
					}
					err := step.Start(context.Background())
					if err == nil {
						err = step.Wait(context.Background())
					}
					a[places-1] = last
					if wrong != 0 {
						if !errors.Is(err, ir.ErrIndex) {
							t.Fatalf("id %d: %v", wrong, err)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					for i, got := range z {
						p, w := i/width, i%width
						want := x[-int(a[p])*width+w]
						if c[p] >= 0 && c[p] < rows {
							want -= y[int(c[p])*width+w]
						}
						if got != want {
							t.Fatalf("element %d of row %d is %v, not %v", w, p, got, want)
						}
					}
				}
			})
		}
	})
}
