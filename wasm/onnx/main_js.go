// Command onnx reads ONNX models, as a WebAssembly module for a JavaScript host: pages load it beside the compiler when
// they open one.
package main

import (
	"github.com/rlx-go/rlx/wasm/internal/importer"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

func main() { wire.Serve(importer.New()) }
