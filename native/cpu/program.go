package cpu

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native"
)

// program is a compiled module with its memory.
type program struct {
	mu         sync.Mutex
	entries    []*entry
	byName     map[string]*entry
	persistent map[string]*stored
	names      []string // of persistent values, in order of appearance
	last       *handle  // the run that was asked for last
	closed     bool
}

// stored is a parameter or a state.
type stored struct {
	slot native.Slot
	buf  *buffer
}

// entry is one way to run a program.
type entry struct {
	name    string
	env     *environment
	runner  runner
	steps   []step
	slots   []native.Slot
	inputs  []input
	outputs []output
	checks  []*ir.Node
}

// runner is what steps are run with.
type runner struct {
	env *environment
	job job
}

// input is where a run takes an input from: the memory of a tensor, or a run
// scalar.
type input struct {
	slot   int
	buf    *buffer // nil for a run scalar
	scalar int
	held   []byte // memory of the entry's own, for inputs that are kept
}

// output is where a run leaves an output.
type output struct {
	slot int
	buf  *buffer
	own  bool // no other value lies there: it can be put elsewhere
	home []byte
}

// store returns the memory of a parameter or a state, which entries share.
func (p *program) store(t *group.Tensor) *buffer {
	if s := p.persistent[t.Name]; s != nil {
		return s.buf
	}
	b := &buffer{dtype: t.DType, elems: t.Len()}
	b.data = allocate(b.bytes())
	p.persistent[t.Name] = &stored{native.Slot{Name: t.Name, Role: native.State, DType: t.DType, Dims: t.Dims}, b}
	p.names = append(p.names, t.Name)
	return b
}

// roles tells parameters from states: what some entry only reads is a
// parameter.
func (p *program) roles(m *ir.Module) {
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

// input adds an input in memory.
func (e *entry) input(s native.Slot, b *buffer) {
	b.data = allocate(b.bytes())
	e.inputs = append(e.inputs, input{slot: len(e.slots), buf: b, held: b.data})
	e.slots = append(e.slots, s)
}

// output adds an output.
func (e *entry) output(s native.Slot, b *buffer, own bool) {
	e.outputs = append(e.outputs, output{slot: len(e.slots), buf: b, own: own, home: b.data})
	e.slots = append(e.slots, s)
}

func (p *program) Entries() []string {
	var out []string
	for _, e := range p.entries {
		out = append(out, e.name)
	}
	return out
}

func (p *program) Slots(entry string) []native.Slot {
	if e := p.byName[entry]; e != nil {
		return slices.Clone(e.slots)
	}
	return nil
}

func (p *program) Persistent() []native.Slot {
	out := make([]native.Slot, len(p.names))
	for i, name := range p.names {
		out[i] = p.persistent[name].slot
	}
	return out
}

func fault(call, name string, err error) error {
	return &native.Error{Backend: Name, Call: call, Kind: native.KindOf(err), Name: name, Err: err}
}

// lock takes the program for a call, after the runs that were asked for before;
// unless it is closed or ctx is done.
func (p *program) lock(ctx context.Context, call string) error {
	p.mu.Lock()
	for p.last != nil {
		h := p.last
		p.mu.Unlock()
		select {
		case <-h.done:
		case <-ctx.Done():
			return fault(call, "", ctx.Err())
		}
		p.mu.Lock()
		if p.last == h {
			p.last = nil
		}
	}
	return p.open(call)
}

// open keeps the lock unless the program is closed.
func (p *program) open(call string) error {
	if p.closed {
		p.mu.Unlock()
		return &native.Error{Backend: Name, Call: call, Kind: native.ErrClosed}
	}
	return nil
}

func (p *program) find(call, name string) (*stored, error) {
	s := p.persistent[name]
	if s == nil {
		return nil, fault(call, name, ir.Errorf(ir.ErrName, "there is no parameter or state %q: there are %v", name, p.names))
	}
	return s, nil
}

func (p *program) Set(name string, t native.Tensor) error {
	if err := p.lock(context.Background(), "set"); err != nil {
		return err
	}
	defer p.mu.Unlock()
	s, err := p.find("set", name)
	if err != nil {
		return err
	}
	if err := s.slot.Accept(t); err != nil {
		return fault("set", name, err)
	}
	copy(s.buf.data, t.Data)
	return nil
}

func (p *program) Get(ctx context.Context, name string) (native.Tensor, error) {
	if err := p.lock(ctx, "get"); err != nil {
		return native.Tensor{}, err
	}
	defer p.mu.Unlock()
	s, err := p.find("get", name)
	if err != nil {
		return native.Tensor{}, err
	}
	return tensorOf(s.slot, s.buf), nil
}

// tensorOf returns a copy of what is in a buffer.
func tensorOf(s native.Slot, b *buffer) native.Tensor {
	t := native.Zeros(s.DType, s.Dims...)
	copy(t.Data, b.data)
	return t
}

func (p *program) Close() error {
	if p.lock(context.Background(), "close") != nil {
		return nil // closed before
	}
	defer p.mu.Unlock()
	p.closed = true
	for _, s := range p.persistent {
		s.buf = nil
	}
	for _, e := range p.entries {
		e.env, e.runner, e.steps, e.inputs, e.outputs, e.checks = nil, runner{}, nil, nil, nil, nil
	}
	return nil
}

// entryOf returns the entry of that name.
func (p *program) entryOf(name string) (*entry, error) {
	e := p.byName[name]
	if e == nil {
		return nil, fault(name, "", ir.Errorf(ir.ErrName, "there is no such entry: there are %v", p.Entries()))
	}
	return e, nil
}

// run does the steps of an entry whose inputs are in place.
func (e *entry) run() (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = &native.Error{Backend: Name, Call: e.name, Kind: native.ErrDevice, Err: fmt.Errorf("%v", x)}
		}
	}()
	e.env.status.take()
	for _, s := range e.steps {
		s.run(&e.runner)
	}
	if code := e.env.status.take(); code != 0 {
		return e.failedCheck(code)
	}
	return nil
}

// failedCheck returns the error of a check, which names the node.
func (e *entry) failedCheck(code uint32) error {
	n := e.checks[int(code)-options.FirstCode]
	name := n.Label()
	if name == "" {
		name = fmt.Sprintf("%s %d", n.Op(), n.ID())
	}
	return &native.Error{
		Backend: Name, Call: e.name, Kind: ir.ErrIndex, Node: name,
		Err: n.Fail(ir.Errorf(ir.ErrIndex, "an index is outside its range")),
	}
}

// take puts the value of a tensor where a run finds it.
func (in *input) take(e *entry, t native.Tensor) {
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
