// Command wasm is the compiler as a WebAssembly module for a JavaScript host.
package main

import (
	"github.com/rlx-go/rlx/wasm/internal/compiler"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

func main() { wire.Serve(compiler.New()) }
