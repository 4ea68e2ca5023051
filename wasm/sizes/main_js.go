// Command sizes is the padding of open sizes as a WebAssembly module for a JavaScript host: pages load
// it beside the compiler when they pad.
package main

import (
	"github.com/rlx-go/rlx/wasm/internal/padder"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

func main() { wire.Serve(padder.New()) }
