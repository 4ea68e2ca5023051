// Command whole prints the state of every backend on this machine. It imports all of them, so that
// its build for macOS links all their bindings in one program: see package applecheck.
package main

import (
	"fmt"

	"github.com/rlx-go/rlx/native"
	_ "github.com/rlx-go/rlx/native/coreml"
	_ "github.com/rlx-go/rlx/native/cpu"
	_ "github.com/rlx-go/rlx/native/cuda"
	_ "github.com/rlx-go/rlx/native/metal"
	_ "github.com/rlx-go/rlx/webgpu"
)

func main() {
	for _, b := range native.Backends() {
		if err := b.Probe(); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s: %s\n", b.Name(), b.Info().Description)
	}
}
