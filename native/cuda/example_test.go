package cuda_test

import (
	"fmt"

	"github.com/rlx-go/rlx"
	_ "github.com/rlx-go/rlx/native/cuda"
)

// A program that imports the package can open a GPU, and can always say why not.
func Example() {
	session, err := rlx.Open("cuda") // "cuda:1" for the second one
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
