package nan_test

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/ops/nan"
)

func ExampleConventions() {
	fmt.Println(len(nan.Conventions()) > 100)
	// Output: true
}
