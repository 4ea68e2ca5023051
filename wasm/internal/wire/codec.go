// Package wire implements the calls of the WebAssembly modules by their JavaScript host: for each
// call one request and one response in the module's memory, objects by handle, errors with their
// kind. All but [Serve] is plain Go, so that services are tested without a browser.
//
// It is below package compiler, whose methods read a [Request] and write a [Response]; js/src/wasm/module.ts is the
// other side. Start reading at service.go, then codec.go, the encoding of values.
package wire

import (
	"encoding/binary"
	"math"

	"github.com/rlx-go/rlx/ir"
)

// The wire form of calls: numbers are little endian, strings and byte strings
// have their length in front (u32), lists their count (u32). A request begins
// with the name of the method, a response with 0, or with 1 and an error.

// Request reads the arguments of a call. The first thing that does not fit is
// kept in err, and zero values follow.
type Request struct {
	data []byte
	err  error
}

// NewRequest reads bytes in the wire form: those of a request, or, in the place
// of a host, those of a response.
func NewRequest(data []byte) *Request { return &Request{data: data} }

// Err returns what did not fit.
func (r *Request) Err() error { return r.err }

// Fail keeps an error, unless there was one before.
func (r *Request) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *Request) take(n int) []byte {
	if r.err == nil && n > len(r.data) {
		r.err = ir.Errorf(ir.ErrSyntax, "the request is %d bytes short", n-len(r.data))
	}
	if r.err != nil {
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

// U32 reads a number of 32 bits.
func (r *Request) U32() int {
	if b := r.take(4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

// F64 reads a real number.
func (r *Request) F64() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// Bool reads a truth value.
func (r *Request) Bool() bool { return r.U32() != 0 }

// Bytes returns part of the request. The caller must copy bytes that it keeps.
func (r *Request) Bytes() []byte { return r.take(r.U32()) }

// Text reads a string.
func (r *Request) Text() string { return string(r.Bytes()) }

// List calls f for each entry of a list; every entry takes four bytes or more,
// so that a damaged count cannot ask for much.
func (r *Request) List(f func()) {
	n := r.U32()
	if n > len(r.data)/4 {
		r.take(len(r.data) + 1)
	}
	for i := 0; i < n && r.err == nil; i++ {
		f()
	}
}

// Texts reads a list of strings.
func (r *Request) Texts() []string {
	var out []string
	r.List(func() { out = append(out, r.Text()) })
	return out
}

// Symbols reads the sizes of symbolic dimensions by name.
func (r *Request) Symbols() map[string]int {
	out := map[string]int{}
	r.List(func() {
		name := r.Text()
		n := r.U32()
		if old, ok := out[name]; ok && old != n {
			r.Fail(ir.Errorf(ir.ErrSymbol, "symbol %q is %d and %d", name, old, n))
		}
		out[name] = n
	})
	return out
}

// Response collects the results of a call.
type Response struct{ data []byte }

// U32 writes a number of 32 bits.
func (w *Response) U32(n int) { w.data = binary.LittleEndian.AppendUint32(w.data, uint32(n)) }

// F64 writes a number of 64 bits.
func (w *Response) F64(x float64) {
	w.data = binary.LittleEndian.AppendUint64(w.data, math.Float64bits(x))
}

// Bool writes a truth value.
func (w *Response) Bool(b bool) {
	if b {
		w.U32(1)
		return
	}
	w.U32(0)
}

// Bytes writes a byte string.
func (w *Response) Bytes(b []byte) {
	w.U32(len(b))
	w.data = append(w.data, b...)
}

// Text writes a string.
func (w *Response) Text(s string) { w.Bytes([]byte(s)) }

// ValueType writes a value's type: dtype and sizes, each as text.
func (w *Response) ValueType(t ir.Type) {
	w.Text(t.DType.String())
	w.U32(len(t.Shape))
	for _, d := range t.Shape {
		w.Text(d.String())
	}
}

// Bind returns the module of some entries, with sizes for their symbolic
// dimensions.
func Bind(name string, entries []ir.Entry, symbols map[string]int) (*ir.Module, error) {
	for i, e := range entries {
		if e.Graph == nil || len(e.Graph.Symbols()) == 0 {
			continue
		}
		g, err := e.Graph.Bind(symbols)
		if err != nil {
			return nil, err
		}
		entries[i].Graph = g
	}
	return ir.NewModule(name, entries...)
}
