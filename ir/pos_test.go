package ir_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// A node's position is the line that calls its constructor, through any number of functions of this
// module, and through functions of the user's that the compiler may inline.
func TestPlacesOfNodes(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(3))
		for range 2 { // places are remembered from the first time on
			x = ops.Gelu(b, x)
			x = twice(b, x)
		}
		b.Output("y", x)
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []int
	for _, n := range g.Nodes() {
		if !strings.HasSuffix(n.Pos().File, "ir/pos_test.go") {
			t.Errorf("%s is placed at %s", n.Op(), n.Pos())
		}
		lines = append(lines, n.Pos().Line-lineOfInput)
	}
	for i, want := range []int{0, 2, 26, 2, 26} {
		if lines[i] != want {
			t.Fatalf("lines after that of the input %v", lines)
		}
	}
}

const lineOfInput = 15

func twice(b *ir.Builder, x ir.Value) ir.Value { return ops.Add(b, x, x) }

// BenchmarkBuild adds nodes as users do, with recorded call positions.
func BenchmarkBuild(b *testing.B) {
	_, err := ir.Build("g", func(bd *ir.Builder) {
		x := bd.Input("x", ir.F32, ir.N(3))
		for b.Loop() {
			x = ops.Sin(bd, x)
		}
		bd.Output("y", x)
	})
	if err != nil {
		b.Fatal(err)
	}
}
