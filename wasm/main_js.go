// Command wasm is the compiler as a WebAssembly module for a JavaScript host:
// package compiler behind five exported functions.
//
// A call is a request in the module's memory and a response there. The host
// asks for room (rlx_alloc), writes the request, calls rlx_call, and reads the
// response at rlx_out, rlx_out_len before the next call. Memory may move with
// every call: views of it are made anew each time.
package main

import (
	"unsafe"

	"github.com/rlx-go/rlx/wasm/compiler"
)

var (
	state    = compiler.New()
	request  []byte
	response []byte
)

//go:wasmexport rlx_abi
func abi() int32 { return compiler.ABI }

// alloc returns the address of room for a request of n bytes.
//
//go:wasmexport rlx_alloc
func alloc(n int32) int32 {
	if cap(request) < int(n) {
		request = make([]byte, n)
	}
	request = request[:n]
	return address(request)
}

// call answers the request that was written and returns the size of the
// response.
//
//go:wasmexport rlx_call
func call() int32 {
	response = state.Call(request)
	return int32(len(response))
}

//go:wasmexport rlx_out
func out() int32 { return address(response) }

// objects is how many objects the host has not freed.
//
//go:wasmexport rlx_objects
func objects() int32 { return int32(state.Objects()) }

func address(b []byte) int32 {
	if len(b) == 0 {
		return 0
	}
	return int32(uintptr(unsafe.Pointer(&b[0])))
}

// main keeps the module alive: exports work only while the program runs.
func main() { select {} }
