//go:build js && wasm

// Command workers is the compile service on Cloudflare Workers, by the package github.com/syumai/workers. It is a module of its
// own, so that nobody else depends on that package.
package main

import (
	"net/http"

	"github.com/rlx-go/rlx/wasm/edge"
	"github.com/syumai/workers"
)

// memory leaves room for the rest of an isolate's 128 MB.
const memory = 80 << 20

func main() { workers.Serve(plain(edge.Handler(edge.Options{Memory: memory}))) }

// plain has a handler compress no answers: the runtime of Workers compresses a body that has a Content-Encoding, also where it is
// compressed already.
func plain(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding")
		h.ServeHTTP(w, r)
	})
}
