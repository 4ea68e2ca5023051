// Package compiler is what the WebAssembly module offers to its host, apart
// from how bytes get in and out: building graphs op by op, differentiating
// them, turning them into training steps, and compiling them to plans. It is
// plain Go, so that it is tested without a browser.
//
// Every call is one request and one response, see [Compiler.Call]. Graphs and
// builders stay on this side; the host holds them by handle and frees them.
package compiler

import (
	"errors"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format"
)

//go:generate go run ../gen ../../js/src/ops.gen.ts

// ABI is the version of the calls. A host refuses a module with another one.
const ABI = 1

// Compiler holds what the host has handles of. It is not safe for concurrent
// use: the module has one thread.
type Compiler struct {
	objects map[int]any
	next    int
}

// New returns a compiler without any objects.
func New() *Compiler { return &Compiler{objects: map[int]any{}, next: 1} }

// method answers one kind of call.
type method func(c *Compiler, r *request, w *response) error

var methods map[string]method

func init() {
	methods = map[string]method{
		"builder":  newBuilder,
		"port":     addPort,
		"constant": addConstant,
		"full":     addFull,
		"op":       addOp,
		"call":     callFunction,
		"label":    setLabel,
		"output":   addOutput,
		"state":    setState,
		"build":    build,
		"parse":    parse,
		"text":     text,
		"describe": describe,
		"bind":     bind,
		"derive":   deriveGraph,
		"vmap":     vmap,
		"step":     trainingStep,
		"init":     initialState,
		"compile":  compile,
		"free":     free,
	}
}

// Call answers a request. It does not panic: a bug in the compiler comes back
// as an error of kind "internal".
func (c *Compiler) Call(data []byte) (out []byte) {
	defer func() {
		if p := recover(); p != nil {
			out = failure(format.Errorf("internal error: %v", p))
		}
	}()
	r := &request{data: data}
	name := r.text()
	m, ok := methods[name]
	if !ok {
		return failure(ir.Errorf(ir.ErrName, "there is no method %q", name))
	}
	w := &response{}
	w.u32(0)
	if err := m(c, r, w); err != nil {
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
	w := &response{}
	w.u32(1)
	kind := "internal"
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			kind = k.name
			break
		}
	}
	w.text(kind)
	w.text(err.Error())
	var op *ir.OpError
	if !errors.As(err, &op) {
		op = &ir.OpError{}
	}
	w.text(string(op.Op))
	w.u32(len(op.In))
	for _, t := range op.In {
		w.text(t.String())
	}
	return w.data
}

// add keeps an object and returns its handle.
func (c *Compiler) add(x any) int {
	h := c.next
	c.next++
	c.objects[h] = x
	return h
}

// get returns the object behind a handle that the request names.
func get[T any](c *Compiler, r *request) (T, error) {
	h := r.u32()
	x, ok := c.objects[h].(T)
	if !ok && r.err == nil {
		return x, ir.Errorf(ir.ErrName, "handle %d is no %T, or was freed", h, x)
	}
	return x, r.err
}

// Objects returns how many objects the host holds.
func (c *Compiler) Objects() int { return len(c.objects) }

func free(c *Compiler, r *request, _ *response) error {
	delete(c.objects, r.u32())
	return nil
}
