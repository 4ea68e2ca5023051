package cpu

import (
	"fmt"
	"sync/atomic"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/executor/synchronous"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
)

// program is a compiled module with its memory. It executes for a [synchronous.Program].
type program struct {
	entries    []*entry
	persistent map[string]*stored
	shared     map[string]*stored // of another program
	kept       []*stored          // the values of persistent, in order of appearance
	memory     ledger
	mesh       *collective.Mesh // nil without one
}

// stored is a parameter or a state.
type stored struct {
	slot native.Slot
	buf  *buffer
}

// entry is a compiled entry of a module.
type entry struct {
	name    string
	env     *environment
	runner  runner
	steps   []step
	names   map[step]string // of the group that a step is part of
	slots   []native.Slot
	inputs  []input
	outputs []output
	checks  []*ir.Node
	// onlyReads is set for a run that writes no state and may run concurrently with others.
	onlyReads bool
	world     *collective.Group // nil for an entry without collectives
	runs      int64             // runs begun, for errors of collectives
	lost      error             // why a collective of the current run failed
}

// runner holds the run-time state of an entry's steps.
type runner struct {
	env *environment
	// job is apart, since a helper may still be in done when the last run has returned and the
	// program is released.
	job     *job
	profile *profile // nil but for a run that is profiled
}

// input describes how a run receives an input: as the memory of a tensor, or as a scalar.
type input struct {
	slot   int
	buf    *buffer // nil for a run scalar
	scalar int
	held   []byte // the entry's own memory, for values that cannot be used in place
}

// output describes how a run returns an output.
type output struct {
	slot int
	buf  *buffer
	own  bool // no other tensor uses the buffer: the caller's memory may replace it
	home []byte
}

// store returns the buffer of a parameter or a state, which all entries share.
func (p *program) store(t *fusion.Tensor) *buffer {
	if s := p.persistent[t.Name]; s != nil {
		return s.buf
	}
	var b *buffer
	if s := p.shared[t.Name]; s != nil {
		b = s.buf
	} else {
		b = &buffer{dtype: t.DType, elems: t.Len()}
		p.memory.reserve(allocationOf(t), func(data []byte) { b.data = data })
	}
	kept := &stored{native.Slot{Name: t.Name, Role: native.State, DType: t.DType, Dims: t.Dims}, b}
	p.persistent[t.Name], p.kept = kept, append(p.kept, kept)
	return b
}

// acceptShared returns an error unless the module can use the memory of the other program.
func (p *program) acceptShared(m *ir.Module) error {
	var slots []native.Slot
	for _, s := range p.shared {
		if s.buf == nil {
			return native.ErrClosed
		}
		slots = append(slots, s.slot)
	}
	return native.AcceptShared(m, slots)
}

// markParams marks all states that are a parameter of some entry as parameters.
func (p *program) markParams(m *ir.Module) {
	for _, e := range m.Entries {
		for _, port := range e.Graph.Ports() {
			if s := p.persistent[port.Name]; s != nil && port.Kind == ir.ParamPort {
				s.slot.Role = native.Param
			}
		}
	}
}

// scalar adds an input that is passed by value.
func (e *entry) scalar(s native.Slot) {
	e.inputs = append(e.inputs, input{slot: len(e.slots), scalar: len(e.env.scalars)})
	e.slots = append(e.slots, s)
	e.env.scalars = append(e.env.scalars, scalar.Value{})
}

// output adds an output.
func (e *entry) output(s native.Slot, b *buffer, own bool) {
	e.outputs = append(e.outputs, output{slot: len(e.slots), buf: b, own: own})
	e.slots = append(e.slots, s)
}

// inputs returns the slots of all entries.
func (p *program) inputs() []native.Slot {
	var out []native.Slot
	for _, e := range p.entries {
		out = append(out, e.slots...)
	}
	return out
}

// allocate allocates all reserved memory.
func (p *program) allocate() {
	p.memory.allocate()
	for _, e := range p.entries {
		for i := range e.outputs {
			e.outputs[i].home = e.outputs[i].buf.data
		}
	}
}

// signature returns the program's entries, slots and memory size.
func (p *program) signature() synchronous.Signature {
	out := synchronous.Signature{Memory: p.memory.bytes()}
	for _, e := range p.entries {
		out.Entries = append(out.Entries, synchronous.Entry{Name: e.name, Slots: e.slots, OnlyReads: e.onlyReads})
	}
	for _, s := range p.kept {
		out.Persistent = append(out.Persistent, s.slot)
	}
	return out
}

func (p *program) Backend() string { return Name }

// Run runs an entry. It writes outputs directly to the caller's memory where that is aligned and no
// other tensor uses the buffer.
func (p *program) Run(entry int, values []native.Tensor) error {
	e := p.entries[entry]
	for i := range e.inputs {
		e.inputs[i].bind(e, values[e.inputs[i].slot])
	}
	for _, o := range e.outputs {
		o.buf.data = o.home
		if t := values[o.slot]; o.own && len(t.Data) > 0 && t.Aligned() {
			o.buf.data = t.Data
		}
	}
	if err := e.run(); err != nil {
		return err
	}
	for _, o := range e.outputs {
		if t := values[o.slot]; len(t.Data) > 0 && &t.Data[0] != &o.buf.data[0] {
			copy(t.Data, o.buf.data)
		}
	}
	return nil
}

func (p *program) Write(i int, t native.Tensor) { copy(p.kept[i].buf.data, t.Data) }

func (p *program) Read(i int) native.Tensor {
	s := p.kept[i]
	t := native.Zeros(s.slot.DType, s.slot.Dims...)
	copy(t.Data, s.buf.data)
	return t
}

func (p *program) Release() error {
	for _, s := range p.kept {
		s.buf = nil
	}
	p.memory = ledger{}
	for _, e := range p.entries {
		e.env, e.runner, e.steps, e.inputs, e.outputs, e.checks = nil, runner{}, nil, nil, nil, nil
		e.names, e.world = nil, nil
	}
	return nil
}

// run executes the steps of an entry whose inputs are bound.
func (e *entry) run() (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = &native.Error{Backend: Name, Call: e.name, Kind: native.ErrDevice, Err: fmt.Errorf("%v", x)}
			e.abort(err)
		}
	}()
	e.env.status.take()
	e.runs++
	e.lost = nil
	runSteps(&e.runner, e.steps)
	if code := e.env.status.take(); code != 0 {
		err := e.failedCheck(code)
		e.abort(err)
		return err
	}
	return nil
}

// failedCheck returns the error of the check with a status code; it names the node.
func (e *entry) failedCheck(code uint32) error {
	n := e.checks[int(code)-firstCode]
	if e.lost != nil {
		return &native.Error{Backend: Name, Call: e.name, Kind: native.KindOf(e.lost), Node: n.Label(), Err: e.lost}
	}
	name := n.Label()
	if name == "" {
		name = string(n.Op())
	}
	return &native.Error{
		Backend: Name, Call: e.name, Kind: ir.ErrIndex, Node: name,
		Err: n.Fail(ir.Errorf(ir.ErrIndex, "%s", n.Attrs().(*ops.CheckIndexAttrs).Failure())),
	}
}

// bind makes a run read the value of a tensor, in place where it is aligned.
func (in *input) bind(e *entry, t native.Tensor) {
	switch {
	case in.buf == nil:
		e.env.scalars[in.scalar] = scalarValue(t)
	case len(t.Data) == 0 || !t.Aligned():
		in.buf.data = in.held
		copy(in.held, t.Data)
	default:
		in.buf.data = t.Data
	}
}

func scalarValue(t native.Tensor) scalar.Value {
	switch t.DType {
	case ir.F32:
		x, _ := t.Float32s()
		return scalar.Value{F: float64(x[0])}
	case ir.I32:
		x, _ := t.Int32s()
		return scalar.Value{I: int64(x[0])}
	}
	x, _ := t.Uint32s()
	return scalar.Value{I: int64(x[0])}
}

// status is the code of the first check that failed in a run, 0 for none.
type status struct{ code atomic.Uint32 }

func (s *status) failed() bool { return s.code.Load() != 0 }

// fail records a code unless one is recorded already.
func (s *status) fail(code uint32) { s.code.CompareAndSwap(0, code) }

// take returns the code and clears it.
func (s *status) take() uint32 { return s.code.Swap(0) }
