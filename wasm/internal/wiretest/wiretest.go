// Package wiretest calls services of package wire from tests, as the JavaScript
// host does.
package wiretest

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// List is a list in a request: its entries, or the parts of its entries, follow
// their number.
type List struct {
	Len   int
	Parts []any
}

// Of returns a list of single entries.
func Of[T any](items ...T) List {
	l := List{Len: len(items)}
	for _, x := range items {
		l.Parts = append(l.Parts, x)
	}
	return l
}

// Entries returns a list of n entries of one or more parts each.
func Entries(n int, parts ...any) List { return List{Len: n, Parts: parts} }

// Request returns the bytes of a request: strings, numbers (int: 32 bits),
// byte strings and lists.
func Request(method string, args ...any) []byte {
	return appendAll(nil, append([]any{method}, args...))
}

func appendAll(out []byte, args []any) []byte {
	for _, a := range args {
		switch a := a.(type) {
		case string:
			out = append(binary.LittleEndian.AppendUint32(out, uint32(len(a))), a...)
		case []byte:
			out = append(binary.LittleEndian.AppendUint32(out, uint32(len(a))), a...)
		case int:
			out = binary.LittleEndian.AppendUint32(out, uint32(a))
		case float64:
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(a))
		case List:
			out = binary.LittleEndian.AppendUint32(out, uint32(a.Len))
			out = appendAll(out, a.Parts)
		default:
			panic(fmt.Sprintf("wiretest: %T in a request", a))
		}
	}
	return out
}

// Error is an error that a service answered with.
type Error struct {
	Kind, Message, Op string
	Operands          []string
}

// Call makes a call and returns the response, or the error.
func Call(s *wire.Service, method string, args ...any) (*wire.Request, *Error) {
	r := wire.NewRequest(s.Call(Request(method, args...)))
	if r.U32() == 0 {
		return r, nil
	}
	return nil, &Error{Kind: r.Text(), Message: r.Text(), Op: r.Text(), Operands: r.Texts()}
}

// Must is [Call] for a call that must not fail.
func Must(t testing.TB, s *wire.Service, method string, args ...any) *wire.Request {
	t.Helper()
	r, err := Call(s, method, args...)
	if err != nil {
		t.Fatalf("%s: %s: %s", method, err.Kind, err.Message)
	}
	return r
}
