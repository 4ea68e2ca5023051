package wire

import (
	"errors"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
)

// ABI is the version of the calls. A host refuses a module with another one.
const ABI = 4

// Service answers calls, and holds what the host has handles of. It is not safe
// for concurrent use: a module has one thread.
type Service struct {
	methods map[string]Method
	objects map[int]any
	next    int
}

// Method answers one kind of call.
type Method func(s *Service, r *Request, w *Response) error

// New returns a service without any objects. Besides the given methods there is
// "free" (handle), which forgets an object.
func New(methods map[string]Method) *Service {
	methods["free"] = func(s *Service, r *Request, _ *Response) error {
		delete(s.objects, r.U32())
		return nil
	}
	return &Service{methods: methods, objects: map[int]any{}, next: 1}
}

// Call answers a request. It does not panic: a bug in a method comes back as an
// error of kind "internal".
func (s *Service) Call(data []byte) (out []byte) {
	defer func() {
		if p := recover(); p != nil {
			out = failure(format.Errorf("internal error: %v", p))
		}
	}()
	r := NewRequest(data)
	name := r.Text()
	m, ok := s.methods[name]
	if !ok {
		return failure(ir.Errorf(ir.ErrName, "unknown method %q", name))
	}
	w := &Response{}
	w.U32(0)
	if err := m(s, r, w); err != nil {
		return failure(err)
	}
	if r.err != nil {
		return failure(r.err)
	}
	return w.data
}

// kinds are the names under which the host knows the kinds of error.
var kinds = []struct {
	err  error
	name string
}{
	{ir.ErrShape, "shape"},
	{ir.ErrDType, "dtype"},
	{ir.ErrAttr, "attr"},
	{ir.ErrName, "name"},
	{ir.ErrIndex, "index"},
	{ir.ErrGraph, "graph"},
	{ir.ErrNoRule, "rule"},
	{ir.ErrSymbol, "symbol"},
	{ir.ErrSyntax, "syntax"},
	{ir.ErrUnsupported, "unsupported"},
}

// failure is the response of a call that went wrong: kind, message, op, and
// the types of the operands.
func failure(err error) []byte {
	w := &Response{}
	w.U32(1)
	kind := "internal"
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			kind = k.name
			break
		}
	}
	w.Text(kind)
	w.Text(err.Error())
	op, ok := errors.AsType[*ir.OpError](err)
	if !ok {
		op = &ir.OpError{}
	}
	w.Text(string(op.Op))
	w.U32(len(op.In))
	for _, t := range op.In {
		w.Text(t.String())
	}
	return w.data
}

// Add keeps an object and returns its handle.
func (s *Service) Add(x any) int {
	h := s.next
	s.next++
	s.objects[h] = x
	return h
}

// Get returns the object with the handle in the request.
func Get[T any](s *Service, r *Request) (T, error) {
	h := r.U32()
	x, ok := s.objects[h].(T)
	if !ok && r.err == nil {
		return x, ir.Errorf(ir.ErrName, "unknown or freed handle %d of %T", h, x)
	}
	return x, r.err
}

// On returns the method whose first argument is the handle of an object, which it passes to f.
func On[T any](f func(x T, s *Service, r *Request, w *Response) error) Method {
	return func(s *Service, r *Request, w *Response) error {
		x, err := Get[T](s, r)
		if err != nil {
			return err
		}
		return f(x, s, r, w)
	}
}

// Take is [Get], and forgets the object.
func Take[T any](s *Service, r *Request) (T, error) {
	h := NewRequest(r.data).U32()
	x, err := Get[T](s, r)
	if err == nil {
		delete(s.objects, h)
	}
	return x, err
}

// Objects returns how many objects the host holds.
func (s *Service) Objects() int { return len(s.objects) }
