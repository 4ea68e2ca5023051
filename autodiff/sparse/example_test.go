package sparse_test

import (
	"fmt"
	"log"

	"github.com/rlx-go/rlx/autodiff/sparse"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Each result of x² depends on one element: the Jacobian is diagonal.
func ExamplePatternOf() {
	g, err := ir.Build("square", func(b *ir.Builder) {
		b.Output("y", ops.Square(b, b.Input("x", ir.F32, ir.N(3))))
	})
	if err != nil {
		log.Fatal(err)
	}
	d, err := sparse.Jacobian(g, "y", "x")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Pattern.Rows, d.Passes)
	// Output: [[0] [1] [2]] 1
}
