//go:build cgo && linux && (amd64 || arm64)

package nccl_test

import (
	"fmt"

	"github.com/rlx-go/rlx/native/collective/nccl"
)

// Whether this machine has the library. Programs use it by the engine of package launch, when all ranks have a GPU.
func ExampleAvailable() {
	if err := nccl.Available(); err != nil {
		fmt.Println("no NCCL:", err)
	}
}
