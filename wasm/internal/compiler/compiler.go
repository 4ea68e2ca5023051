// Package compiler is the interface of the WebAssembly module to its host, apart from the transport
// of bytes: building graphs op by op, differentiating them, deriving training steps, and compiling
// them to plans. It is plain Go and is tested without a browser.
//
// Every call is one request and one response, see package wire. Graphs and
// builders stay on this side; the host holds them by handle and frees them.
//
// Its input are calls of js/src/graph and js/src/compile, its output are plans, which js/src/runtime opens, and texts.
// Start reading at compiler.go, the list of calls, then build.go and compile.go.
package compiler

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

//go:generate go run ../../gen ../../../js/src/graph/ops.gen.ts

// New returns a compiler without any objects.
func New() *wire.Service {
	return wire.New(map[string]wire.Method{
		"builder":   newBuilder,
		"port":      wire.On(addPort),
		"constant":  wire.On(addConstant),
		"full":      wire.On(addFull),
		"op":        wire.On(addOp),
		"call":      wire.On(callFunction),
		"label":     wire.On(setLabel),
		"splice":    wire.On(splice),
		"output":    named((*ir.Builder).Output),
		"state":     named((*ir.Builder).SetState),
		"update":    named(updateState),
		"build":     build,
		"parse":     parse,
		"text":      wire.On(text),
		"describe":  wire.On(describe),
		"matching":  wire.On(matching),
		"bind":      wire.On(bind),
		"derive":    wire.On(deriveGraph),
		"vmap":      wire.On(vmap),
		"step":      wire.On(trainingStep),
		"curvature": wire.On(curvature),
		"init":      wire.On(initialState),
		"compile":   compile,
		"report":    reportOn,
		"choices":   choices,
		"trial":     wire.On(trial),
		"tuned":     wire.On(tuned),
	})
}
