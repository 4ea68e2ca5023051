// Package zero calls exported functions with nil and zero arguments, and finds those that panic.
package zero

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Func is an exported function and its name.
type Func struct {
	Name string
	F    any
}

// Type is an exported type, as a nil pointer to it, and its name.
type Type struct {
	Name    string
	Pointer any
}

// patience is the time that a call may take.
const patience = 20 * time.Second

var (
	errorType   = reflect.TypeFor[error]()
	builderType = reflect.TypeFor[*ir.Builder]()
)

// Run calls the functions, and the methods of the types, and returns a line for each call that panics or does not
// return: what was called and how, what it panicked with, and where.
func Run(funcs []Func, types []Type) []string {
	_, errProgram := program()
	_, errTrainer := trainer()
	if err := errors.Join(errProgram, errTrainer); err != nil {
		return []string{"arguments that work: " + err.Error()}
	}
	var found []string
	for _, f := range funcs {
		if t := reflect.TypeOf(f.F); (fails(t) || builds(t)) && !extends[f.Name] {
			found = append(found, try(f.Name, func(*maker) reflect.Value { return reflect.ValueOf(f.F) })...)
		}
	}
	for _, t := range types {
		found = append(found, methods(t)...)
	}
	return found
}

// extends are functions for code that extends the compiler, to which a graph hands what they need, and errors. Where an
// argument is the number of repetitions, the largest one takes for ever.
var extends = map[string]bool{
	"ir.BindAttrs": true, "ir.CopyAttrs": true, "ir.AttrDims": true, "ir.Body": true, "ir.Inline": true, "ir.NewMapping": true,
	"ir.Builder.Err": true, "ir.Builder.TakeErr": true, "ir.EvalContext.Call": true, "ir.Graph.UnknownOutput": true, "ir.Graph.UnknownPort": true,
	"ir.KernelsLowering.For": true, "ir.RoutineLowering.For": true, "ir.Node.Fail": true, "ir.Padding.Plain": true, "nan.With": true,
	"collective.Pending.Fail": true, "nn.Stack": true,
}

// methods tries the methods of a type that can return an error on a nil pointer, which is what programs have that ignore
// the error of a constructor, on a zero value of package rlx, and on a value that works.
func methods(t Type) []string {
	var found []string
	p := reflect.TypeOf(t.Pointer)
	for i := range p.NumMethod() {
		m := p.Method(i)
		name := t.Name + "." + m.Name
		if !fails(m.Type) || extends[name] || m.Name == "Unwrap" {
			continue
		}
		if !promoted(p.Elem(), m.Name) {
			found = append(found, try("nil "+name, func(*maker) reflect.Value { return reflect.Zero(p).Method(i) })...)
		}
		if strings.HasPrefix(name, "rlx.") {
			found = append(found, try("zero "+name, func(*maker) reflect.Value { return reflect.New(p.Elem()).Method(i) })...)
		}
		if works := newMaker().of(p); !works.IsNil() {
			found = append(found, try(name, func(k *maker) reflect.Value { return k.of(p).Method(i) })...)
		}
	}
	return found
}

// promoted reports whether a method of the pointer to a type is one of the type itself, or of a field.
func promoted(t reflect.Type, name string) bool {
	_, of := t.MethodByName(name)
	return of
}

// builds reports whether a function gets a builder, which records errors.
func builds(t reflect.Type) bool { return t.NumIn() > 0 && t.In(0) == builderType }

// fails reports whether the last result of a function is an error.
func fails(t reflect.Type) bool { return t.NumOut() > 0 && t.Out(t.NumOut()-1) == errorType }

// try calls a function with zero values for all arguments, for none, and for each, and with negative and large numbers.
func try(name string, f func(k *maker) reflect.Value) []string {
	var found []string
	t := f(newMaker()).Type()
	call := func(how string, change func(k *maker, args []reflect.Value)) {
		k := newMaker()
		args := make([]reflect.Value, t.NumIn())
		for i := range args {
			args[i] = k.of(t.In(i))
		}
		change(k, args)
		if fault := caught(func() {
			if v := f(k); t.IsVariadic() {
				v.CallSlice(args)
			} else {
				v.Call(args)
			}
		}); fault != "" {
			found = append(found, name+" "+how+": "+fault)
		}
	}
	call("with arguments that work", func(*maker, []reflect.Value) {})
	call("with zero arguments", func(k *maker, args []reflect.Value) {
		for i := range args {
			args[i] = k.zero(t, i, args[i])
		}
	})
	for i := range t.NumIn() {
		call(fmt.Sprintf("with argument %d zero", i), func(k *maker, args []reflect.Value) { args[i] = k.zero(t, i, args[i]) })
		for _, x := range extremes(t.In(i)) {
			call(fmt.Sprintf("with argument %d %v", i, x), func(_ *maker, args []reflect.Value) { args[i] = x })
		}
	}
	return found
}

// extremes are numbers of a type that hardly anything allows.
func extremes(t reflect.Type) []reflect.Value {
	var out []reflect.Value
	add := func(x any) { out = append(out, reflect.ValueOf(x).Convert(t)) }
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		add(-1)
		add(math.MaxInt)
		add(math.MinInt)
	case reflect.Int32:
		add(-1)
		add(math.MaxInt32)
	case reflect.Float64, reflect.Float32:
		add(math.NaN())
		add(math.Inf(1))
		add(-1.)
	}
	return out
}

// caught runs f and returns what it panicked with and where, or that it did not return; "" if it returned.
func caught(f func()) string {
	done := make(chan string, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				done <- fmt.Sprint(fault) + where(string(debug.Stack()))
			}
			close(done)
		}()
		f()
	}()
	select {
	case fault := <-done:
		return fault
	case <-time.After(patience):
		return "does not return"
	}
}

// where returns the first line of the module in a stack below the panic.
func where(stack string) string {
	_, stack, _ = strings.Cut(stack, "panic(")
	for line := range strings.Lines(stack) {
		if line = strings.TrimSpace(line); strings.Contains(line, ".go:") && !strings.Contains(line, "/go/src/") && !strings.Contains(line, "/usr/") {
			line, _, _ = strings.Cut(line, " +")
			return " at " + line
		}
	}
	return ""
}

// maker makes arguments that work for the functions of one call.
type maker struct {
	b     *ir.Builder
	depth int
}

func newMaker() *maker {
	b, _ := ir.NewBuilder("zero")
	return &maker{b: b}
}

// zero is the zero value of argument i, or given where a function has no way to report it: a builder.
func (k *maker) zero(t reflect.Type, i int, given reflect.Value) reflect.Value {
	if t.In(i) == builderType && !fails(t) {
		return given
	}
	return reflect.Zero(t.In(i))
}

// of returns a value of a type that works for many functions.
func (k *maker) of(t reflect.Type) reflect.Value {
	if v := k.known(t); v.IsValid() {
		return v
	}
	switch t.Kind() {
	case reflect.String:
		return reflect.ValueOf("x").Convert(t)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint, reflect.Float32, reflect.Float64:
		return reflect.ValueOf(1).Convert(t)
	case reflect.Slice:
		s := reflect.MakeSlice(t, 1, 1)
		s.Index(0).Set(k.deeper(t.Elem()))
		return s
	case reflect.Map:
		m := reflect.MakeMap(t)
		m.SetMapIndex(k.deeper(t.Key()), k.deeper(t.Elem()))
		return m
	case reflect.Func:
		return reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value {
			out := make([]reflect.Value, t.NumOut())
			for i := range out {
				out[i] = reflect.Zero(t.Out(i))
			}
			return out
		})
	}
	return reflect.Zero(t)
}

// deeper is [maker.of] for an element.
func (k *maker) deeper(t reflect.Type) reflect.Value {
	if k.depth > 3 {
		return reflect.Zero(t)
	}
	k.depth++
	defer func() { k.depth-- }()
	return k.of(t)
}

// known returns the values of the types that most functions are about.
func (k *maker) known(t reflect.Type) reflect.Value {
	one := func(v any, _ ...error) reflect.Value {
		x := reflect.ValueOf(v)
		if x.IsValid() && x.Type().AssignableTo(t) {
			return x.Convert(t)
		}
		return reflect.Value{}
	}
	switch t {
	case reflect.TypeFor[context.Context]():
		return one(context.Background())
	case reflect.TypeFor[io.Reader]():
		return one(strings.NewReader("x"))
	case reflect.TypeFor[io.ReaderAt]():
		return one(strings.NewReader("x"))
	case reflect.TypeFor[io.Writer]():
		return one(io.Discard)
	case errorType:
		return one(errors.New("x"))
	case builderType:
		return one(k.b)
	case reflect.TypeFor[ir.Value]():
		return one(ops.Ones(k.b, ir.F32, ir.Dims(2, 3)...))
	case reflect.TypeFor[ir.DType]():
		return one(ir.F32)
	case reflect.TypeFor[ir.Dim]():
		return one(ir.N(2))
	case reflect.TypeFor[ir.Type]():
		return one(ir.TypeOf(ir.F32, ir.Dims(2, 3)...))
	case reflect.TypeFor[*ir.Graph]():
		return one(graph())
	case reflect.TypeFor[*ir.Module]():
		return one(module())
	case reflect.TypeFor[rlx.Tensor]():
		return one(rlx.Float32s(make([]float32, 6), 2, 3))
	case reflect.TypeFor[*rlx.Session]():
		return one(session())
	case reflect.TypeFor[*rlx.Program]():
		return one(program())
	case reflect.TypeFor[*rlx.Trainer]():
		return one(trainer())
	}
	return reflect.Value{}
}

func session() (*rlx.Session, error) { return rlx.Open("cpu") }

func program() (*rlx.Program, error) {
	s, err := session()
	if err != nil {
		return nil, err
	}
	m, err := module()
	if err != nil {
		return nil, err
	}
	return s.Compile(context.Background(), m)
}

func trainer() (*rlx.Trainer, error) {
	s, err := session()
	if err != nil {
		return nil, err
	}
	g, err := graph()
	if err != nil {
		return nil, err
	}
	return s.Train(context.Background(), g, rlx.Training{Loss: "x"})
}

func graph() (*ir.Graph, error) {
	return ir.Build("x", func(b *ir.Builder) {
		b.Output("x", ops.ReduceSum(b, ops.Mul(b, b.Input("x", ir.F32, ir.Dims(2, 3)...), b.Param("w", ir.F32, ir.Dims(2, 3)...))))
	})
}

func module() (*ir.Module, error) {
	g, err := graph()
	if err != nil {
		return nil, err
	}
	return ir.NewModule("x", ir.Entry{Name: "x", Graph: g})
}
