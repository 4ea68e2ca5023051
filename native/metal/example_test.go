package metal_test

import (
	"fmt"

	"github.com/rlx-go/rlx"
	_ "github.com/rlx-go/rlx/native/metal"
)

// A program that imports the package can open the GPU, and can always say why not.
func Example() {
	session, err := rlx.Open("metal")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(session.Device().Description)
}
