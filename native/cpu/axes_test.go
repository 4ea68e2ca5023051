package cpu

import (
	"slices"
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

// TestLongAxesAreRows moves the longest axis last where the last has few points, as heads of attention have for each edge.
func TestLongAxesAreRows(t *testing.T) {
	for _, c := range []struct{ dims, want []int }{
		{[]int{30000, 4}, []int{4, 30000}},
		{[]int{8, 1000, 2, 3}, []int{8, 2, 3, 1000}},
		{[]int{30000, 16}, []int{30000, 16}},
		{[]int{40, 4}, []int{40, 4}},
		{[]int{7}, []int{7}},
		{nil, nil},
	} {
		vars := make([]scalar.Expr, len(c.dims))
		for i, n := range c.dims {
			vars[i] = scalar.NewVar("i", ir.I32, 0, int64(n-1))
		}
		got := points{vars, c.dims}.longLast()
		if !slices.Equal(got.dims, c.want) {
			t.Errorf("%v become %v, not %v", c.dims, got.dims, c.want)
		}
		for i, v := range got.vars {
			if _, hi, _ := scalar.NewSimplifier().Range(v); int(hi) != c.want[i]-1 {
				t.Errorf("the coordinate of %d points has %d", c.want[i], hi+1)
			}
		}
	}
}
