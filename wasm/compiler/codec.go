package compiler

import (
	"encoding/binary"
	"math"

	"github.com/rlx-go/rlx/ir"
)

// The wire form of calls: numbers are little endian, strings and byte strings
// have their length in front (u32), lists their count (u32). A request begins
// with the name of the method, a response with 0, or with 1 and an error.

// request reads the arguments of a call. The first thing that does not fit is
// kept in err, and zero values follow.
type request struct {
	data []byte
	err  error
}

func (r *request) take(n int) []byte {
	if r.err == nil && n > len(r.data) {
		r.err = ir.Errorf(ir.ErrSyntax, "the request ends %d bytes too early", n-len(r.data))
	}
	if r.err != nil {
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *request) u32() int {
	if b := r.take(4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (r *request) f64() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (r *request) bool() bool { return r.u32() != 0 }

// bytes returns part of the request: copy what is to be kept.
func (r *request) bytes() []byte { return r.take(r.u32()) }

func (r *request) text() string { return string(r.bytes()) }

// list calls f for each entry of a list; every entry takes four bytes or more,
// so that a damaged count cannot ask for much.
func (r *request) list(f func()) {
	n := r.u32()
	if n > len(r.data)/4 {
		r.take(len(r.data) + 1)
	}
	for i := 0; i < n && r.err == nil; i++ {
		f()
	}
}

func (r *request) texts() []string {
	var out []string
	r.list(func() { out = append(out, r.text()) })
	return out
}

// response collects the results of a call.
type response struct{ data []byte }

func (w *response) u32(n int) { w.data = binary.LittleEndian.AppendUint32(w.data, uint32(n)) }

func (w *response) bytes(b []byte) {
	w.u32(len(b))
	w.data = append(w.data, b...)
}

func (w *response) text(s string) { w.bytes([]byte(s)) }

// valueType writes a value's type: dtype and sizes, each as text.
func (w *response) valueType(t ir.Type) {
	w.text(t.DType.String())
	w.u32(len(t.Shape))
	for _, d := range t.Shape {
		w.text(d.String())
	}
}
