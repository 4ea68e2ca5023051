package wire

import "unsafe"

// A call is a request in the module's memory and a response there. The host
// asks for room (rlx_alloc), writes the request, calls rlx_call, and reads the
// response at rlx_out before the next call. Memory may move with every call:
// views of it are made anew each time.

var (
	service  *Service
	request  []byte
	response []byte
)

// Serve answers calls through the module's exports. It does not return, because
// exports work only while the program runs.
func Serve(s *Service) {
	service = s
	select {}
}

//go:wasmexport rlx_abi
func abi() int32 { return ABI }

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
	response = service.Call(request)
	return int32(len(response))
}

//go:wasmexport rlx_out
func out() int32 { return address(response) }

// objects is how many objects the host has not freed.
//
//go:wasmexport rlx_objects
func objects() int32 { return int32(service.Objects()) }

func address(b []byte) int32 {
	if len(b) == 0 {
		return 0
	}
	return int32(uintptr(unsafe.Pointer(&b[0])))
}
