package cpu

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestRowsOfNeighboursHaveNoDivisions has rows of four neighbouring pixels, as between the stages of a Swin transformer.
// Elements at divided coordinates are not loaded as vectors.
func TestRowsOfNeighboursHaveNoDivisions(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := ops.Transpose(b, b.Input("x", ir.F32, ir.Dims(5, 2, 6, 2, 12)...), 0, 2, 1, 3, 4)
		b.Output("y", ops.Softmax(b, ops.Reshape(b, x, ir.Dims(30, 48)...), 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := buildPartition(backend{}, ir.Entry{Name: "g", Graph: g}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := p.Items[0].(*fusion.Group)
	code := rows.Code()
	coalesce(code, split(code, &code.Outer, rows.Outer), split(code, &code.Inner, rows.Inner))
	walkOffsets(code, func(offset scalar.Expr) {
		scalar.Walk(offset, func(x scalar.Expr) {
			if isDivision(x.Op) {
				t.Errorf("offset %s", offset)
			}
		})
	})
}
