// Package plansim runs whole plans in the simulator of the loop IR (package sim), which
// checks every memory access of every kernel, buffers shared by several tensors
// included. It tests plans without a GPU. Its input is a module and a target, its
// output the results of runs; read Open first.
package plansim

import (
	"bytes"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/replay"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Program is a plan in the simulator.
type Program struct {
	*replay.Program
	// Options are the simulator's options for every kernel.
	Options sim.Options
	// Counted, where set, is called after every dispatch with the counts of its kernel.
	Counted func(k *loop.Kernel, c sim.Counts)
}

// Text is a printer of the loop IR's own text form.
var Text plan.Printer = text{}

type text struct{}

func (text) Dialect() dtype.Dialect               { return dtype.WGSL }
func (text) Print(k *loop.Kernel) (string, error) { return k.String(), nil }

// Open compiles a module for a target and allocates its buffers. Temporary buffers
// start with arbitrary contents, since plans must not rely on them.
func Open(m *ir.Module, t plan.Target) (*Program, error) {
	p, kernels, err := plan.CompileKernels(m, t, Text)
	if err != nil {
		return nil, err
	}
	s := &Program{}
	d := &device{kernels: kernels, of: s, programs: map[*loop.Kernel]*sim.PreparedKernel{}}
	for _, b := range p.Buffers {
		data := make([]byte, b.Bytes)
		if b.Kind == plan.TempBuffer {
			for i := range data {
				data[i] = 0xff
			}
		}
		d.buffers = append(d.buffers, data)
	}
	s.Program, err = replay.New(p, d)
	return s, err
}

// SetStates sets the states and parameters of a graph by name. Those that the plan does not have,
// since passes drop a port that nothing depends on, are skipped.
func (s *Program) SetStates(g *ir.Graph, values map[string]*ir.Array) error {
	for _, p := range g.Ports() {
		if p.Kind == ir.InputPort || values[p.Name] == nil || s.Plan().Lookup(p.Name) == nil {
			continue
		}
		if err := s.Set(p.Name, values[p.Name]); err != nil {
			return err
		}
	}
	return nil
}

// RunGraph runs an entry, which was compiled from g, and returns the values of the outputs of g in
// their order, those of states read after the run.
func (s *Program) RunGraph(entry string, g *ir.Graph, inputs map[string]*ir.Array) ([]*ir.Array, error) {
	results, err := s.Run(entry, inputs)
	if err != nil {
		return nil, err
	}
	var out []*ir.Array
	for _, o := range g.Outputs() {
		a := results[o.Name]
		if o.State {
			if a, err = s.Get(o.Name); err != nil {
				return nil, err
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// device is the memory and the kernels of a plan.
type device struct {
	kernels []plan.Printed
	buffers [][]byte
	of      *Program
	// programs are those of the kernels that have run: a loop launches a kernel once for each step.
	programs map[*loop.Kernel]*sim.PreparedKernel
}

func (d *device) Write(buffer, offset int, data []byte) error {
	copy(d.buffers[buffer][offset:], data)
	return nil
}

func (d *device) Read(data []byte, buffer, offset int) error {
	copy(data, d.buffers[buffer][offset:])
	return nil
}

func (d *device) Copy(c *plan.Copy) error {
	copy(d.buffers[c.Dst][c.DstOffset:][:c.Bytes], d.buffers[c.Src][c.SrcOffset:])
	return nil
}

// Dispatch runs a kernel. It runs the kernel's draft first, if there is one, and checks
// that both write the same bytes, unless only a sample of workgroups is run.
func (d *device) Dispatch(step *plan.Dispatch, scalars []byte, counters []int) error {
	k := d.kernels[step.Kernel]
	if step.DraftGroups == [3]int{} || d.of.Options.Sample > 0 {
		return d.run(k.Kernel, step, scalars, counters, d.of.Counted)
	}
	before := d.bound(step)
	if err := d.run(k.Draft, step, scalars, counters, nil); err != nil {
		return err
	}
	drafted := d.bound(step)
	for buffer, data := range before {
		copy(d.buffers[buffer], data)
	}
	if err := d.run(k.Kernel, step, scalars, counters, d.of.Counted); err != nil {
		return err
	}
	for buffer, data := range drafted {
		if !bytes.Equal(data, d.buffers[buffer]) {
			return ir.Errorf(ir.ErrGraph, "the draft of %s writes different values to buffer %d", k.Name, buffer)
		}
	}
	return nil
}

// bound returns copies of the buffers that a dispatch binds, by index.
func (d *device) bound(step *plan.Dispatch) map[int][]byte {
	out := map[int][]byte{}
	for _, b := range step.Bindings {
		out[b.Buffer] = bytes.Clone(d.buffers[b.Buffer])
	}
	return out
}

func (d *device) run(k *loop.Kernel, step *plan.Dispatch, scalars []byte, counters []int, counted func(*loop.Kernel, sim.Counts)) error {
	l := sim.Launch{Counters: counters}
	for _, b := range step.Bindings {
		l.Arrays = append(l.Arrays, sim.Binding{Buffer: d.buffers[b.Buffer], Offset: b.Offset, Bytes: b.Bytes})
	}
	for i, t := range k.Scalars {
		v, err := word(t, scalars[i*plan.WordBytes:])
		if err != nil {
			return err
		}
		l.Scalars = append(l.Scalars, v)
	}
	p, err := d.program(k)
	if err != nil {
		return err
	}
	o, c := d.of.Options, sim.Counts{}
	if counted != nil {
		o.Counts = &c
		defer func() { counted(k, c) }()
	}
	return p.Run(l, o)
}

func (d *device) program(k *loop.Kernel) (*sim.PreparedKernel, error) {
	if p := d.programs[k]; p != nil {
		return p, nil
	}
	p, err := sim.Prepare(k)
	if err == nil {
		d.programs[k] = p
	}
	return p, err
}

// word returns the first scalar of a row. Scalars that the kernel does not read have
// type Invalid.
func word(t dtype.DType, row []byte) (scalar.Value, error) {
	if t == dtype.Invalid {
		return scalar.Value{}, nil
	}
	a, err := ir.ArrayOf(ir.Type{DType: t}, row[:t.Size()])
	if err != nil {
		return scalar.Value{}, err
	}
	return a.Element(0), nil
}
