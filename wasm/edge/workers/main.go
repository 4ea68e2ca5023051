//go:build js && wasm

// Command workers is the compile service on Cloudflare Workers, by the package github.com/syumai/workers. It is a module of its
// own, so that nobody else depends on that package.
package main

import (
	"github.com/rlx-go/rlx/wasm/edge"
	"github.com/syumai/workers"
)

// memory leaves room for the rest of an isolate's 128 MB.
const memory = 80 << 20

func main() { workers.Serve(edge.Handler(edge.Options{Memory: memory})) }
