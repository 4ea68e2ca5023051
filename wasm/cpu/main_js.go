// Command cpu is the CPU backend as a WebAssembly module for a JavaScript host
// without WebGPU.
package main

import (
	"github.com/rlx-go/rlx/wasm/runner"
	"github.com/rlx-go/rlx/wasm/wire"
)

func main() { wire.Serve(runner.New()) }
