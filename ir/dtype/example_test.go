package dtype_test

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/dtype"
)

func ExampleParse() {
	d, err := dtype.Parse("bf16")
	fmt.Println(d, d.Size(), d.IsFloat(), err)
	// Output: bf16 2 true <nil>
}
