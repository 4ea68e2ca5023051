package webgpu_test

import (
	"fmt"

	"github.com/rlx-go/rlx"
	_ "github.com/rlx-go/rlx/webgpu"
)

// A program that imports the package can open the GPU, and can always say why
// not.
func Example() {
	session, err := rlx.Open("webgpu")
	if err != nil {
		fmt.Println(err)
		session, err = rlx.Open("cpu")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(session.Device().Description)
}
