package plain_test

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/ir/scalar/plain"
)

// A format without expm1 has it by exp and arithmetic, exact where exp(x) is close to 1.
func ExampleExpm1() {
	value, err := scalar.Eval(plain.Expm1(scalar.Arg(0, dtype.F32)), &scalar.Env{Args: []scalar.Value{{F: 1e-6}}})
	fmt.Printf("%.6g %v\n", value.F, err)
	// Output: 1e-06 <nil>
}
