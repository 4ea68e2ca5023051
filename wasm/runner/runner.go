// Package runner runs modules on the CPU for a host that calls it as package
// wire says. Modules come as the text form of their graphs.
package runner

import (
	"context"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
	"github.com/rlx-go/rlx/wasm/wire"
)

// New returns a service without any programs.
func New() *wire.Service {
	return wire.New(map[string]wire.Method{
		"open":  open,
		"run":   run,
		"set":   set,
		"get":   get,
		"close": closeProgram,
	})
}

// program is a compiled module with the outputs of its last run.
type program struct {
	native.Program
	outputs map[string]native.Tensor
}

// open (name, entries with their graphs' text, symbols) → program, its
// parameters and states, and its entries with inputs and outputs.
func open(s *wire.Service, r *wire.Request, w *wire.Response) error {
	m, err := readModule(r)
	if err != nil {
		return err
	}
	p, err := cpu.Backend().Compile(context.Background(), m, native.Options{})
	if err != nil {
		return err
	}
	w.U32(s.Add(&program{Program: p}))
	writeSlots(w, p.Persistent())
	w.U32(len(p.Entries()))
	for _, name := range p.Entries() {
		w.Text(name)
		writeSlots(w, p.Slots(name))
	}
	return nil
}

func readModule(r *wire.Request) (*ir.Module, error) {
	name := r.Text()
	var entries []ir.Entry
	var err error
	r.List(func() {
		e := ir.Entry{Name: r.Text()}
		if text := r.Text(); err == nil {
			e.Graph, err = ir.Parse(text)
		}
		entries = append(entries, e)
	})
	symbols := r.Symbols()
	if r.Err() != nil {
		return nil, r.Err()
	}
	if err != nil {
		return nil, err
	}
	return wire.Bind(name, entries, symbols)
}

// writeSlots writes name, role, type, size in bytes and range of each slot.
func writeSlots(w *wire.Response, slots []native.Slot) {
	w.U32(len(slots))
	for _, s := range slots {
		w.Text(s.Name)
		w.Text(s.Role.String())
		w.ValueType(ir.Type{DType: s.DType, Shape: ir.Dims(s.Dims...)})
		bytes, _ := s.DType.Bytes(native.Tensor{Dims: s.Dims}.Len()) // it has memory already
		w.U32(bytes)
		w.Bool(s.Checked)
		w.F64(float64(s.Lo))
		w.F64(float64(s.Hi))
	}
}

// run (program, entry, inputs) runs an entry, and keeps its outputs for get.
func run(s *wire.Service, r *wire.Request, _ *wire.Response) error {
	p, err := wire.Get[*program](s, r)
	if err != nil {
		return err
	}
	entry := r.Text()
	slots := p.Slots(entry)
	in := map[string]native.Tensor{}
	r.List(func() {
		name := r.Text()
		in[name] = tensor(slots, name, r.Bytes())
	})
	if r.Err() != nil {
		return r.Err()
	}
	started, err := p.Run(context.Background(), entry, in)
	if err != nil {
		return err
	}
	p.outputs, err = started.Wait(context.Background())
	return err
}

// tensor returns a copy of bytes as a value for a slot. What does not fit is
// left to the program to refuse.
func tensor(slots []native.Slot, name string, data []byte) native.Tensor {
	for _, s := range slots {
		if s.Name == name && s.Role != native.Output {
			t := native.Zeros(s.DType, s.Dims...)
			if len(t.Data) != len(data) {
				t.Data = nil
			}
			copy(t.Data, data)
			return t
		}
	}
	return native.Tensor{}
}

// set (program, name, bytes) writes a parameter or a state.
func set(s *wire.Service, r *wire.Request, _ *wire.Response) error {
	p, err := wire.Get[*program](s, r)
	if err != nil {
		return err
	}
	name, data := r.Text(), r.Bytes()
	if r.Err() != nil {
		return r.Err()
	}
	return p.Set(name, tensor(p.Persistent(), name, data))
}

// get (program, name) → bytes of an output of the last run, of a parameter or
// of a state.
func get(s *wire.Service, r *wire.Request, w *wire.Response) error {
	p, err := wire.Get[*program](s, r)
	if err != nil {
		return err
	}
	name := r.Text()
	t, ok := p.outputs[name]
	if !ok {
		if t, err = p.Get(context.Background(), name); err != nil {
			return err
		}
	}
	w.Bytes(t.Data)
	return nil
}

// closeProgram (program) gives back its memory.
func closeProgram(s *wire.Service, r *wire.Request, _ *wire.Response) error {
	p, err := wire.Take[*program](s, r)
	if err != nil {
		return err
	}
	return p.Close()
}
