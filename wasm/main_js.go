// Command wasm is the compiler as a WebAssembly module for a JavaScript host, rlx.wasm.
//
// Its input are calls by js/src/wasm/module.ts, of which package wasm/internal/wire has the form and package
// wasm/internal/compiler the meaning; read compiler.go there first. Packages wasm/overlay and wasm/shrink make the
// module smaller, wasm/gen writes the methods of the ops in TypeScript, and wasm/sizes and wasm/onnx are modules
// that only pad graphs, and only import ONNX models.
package main

import (
	"github.com/rlx-go/rlx/wasm/internal/compiler"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

func main() { wire.Serve(compiler.New()) }
