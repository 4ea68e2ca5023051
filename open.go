package rlx

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/sized"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/native"
)

// openProgram is a [native.Program] with open sizes: a base program for parameters, states and
// entries without open sizes, and one program for each bucket, which shares the parameters and
// states.
type openProgram struct {
	session *Session
	options CompileOptions
	name    string
	names   []string        // of all entries
	closed  map[string]bool // entries without open sizes, and whether they change parameters or states
	base    native.Program
	move    *mover // nil if programs share parameters and states, or have none
	entries map[string]*openEntry

	compiles sync.WaitGroup // begun with mu locked and ended unset

	mu      sync.Mutex
	buckets map[string]*list.Element // of *bucket, by key
	recent  list.List                // the most recently used first
	ended   bool
}

// bucket is an entry compiled for some sizes.
type bucket struct {
	key     string
	entry   *openEntry
	bound   map[string]int
	exact   bool          // compiled without padding
	ready   chan struct{} // closed when program and err are set
	program native.Program
	ports   []native.Slot // the inputs of the program
	buffers sync.Pool     // of map[string]Tensor, padded inputs
	err     error
	users   int  // guarded by openProgram.mu
	evicted bool // guarded by openProgram.mu
}

// open compiles the part of a module without open sizes, and shares the memory of a program unless
// that is nil.
func (s *Session) open(ctx context.Context, m *ir.Module, o CompileOptions, with native.Program) (native.Program, error) {
	if o.Mesh != nil { // ranks could choose different buckets, and would wait for each other
		return nil, ir.Errorf(ir.ErrUnsupported, "the module has open sizes; with a Mesh all sizes must be bound")
	}
	p := newOpenProgram(s, m.Name)
	p.options = o
	var closed []ir.Entry
	for _, e := range m.Entries {
		p.names = append(p.names, e.Name)
		if len(e.Graph.Symbols()) == 0 {
			closed = append(closed, e)
			p.closed[e.Name] = writes(e.Graph)
			continue
		}
		made, err := newOpenEntry(e, o.Sizes)
		if err != nil {
			return nil, err
		}
		p.entries[e.Name] = made
	}
	holder, err := sized.Holder(m)
	if err != nil {
		return nil, err
	}
	base, err := ir.NewModule(m.Name, append(closed, ir.Entry{Name: plan.HolderEntry, Graph: holder})...)
	if err != nil {
		return nil, err
	}
	if p.base, err = s.compile(ctx, base, o, with); err != nil {
		return nil, err
	}
	if _, shares := s.backend.(native.Sharer); !shares && len(p.base.Persistent()) > 0 {
		p.move = newMover(p.base)
	}
	return p, nil
}

func newOpenProgram(s *Session, name string) *openProgram {
	return &openProgram{session: s, name: name, closed: map[string]bool{}, entries: map[string]*openEntry{}, buckets: map[string]*list.Element{}}
}

// Entries returns the names of the entries, in the order of the module.
func (p *openProgram) Entries() []string { return slices.Clone(p.names) }

// Slots returns the inputs and outputs of an entry, in which open sizes are [native.OpenSize].
func (p *openProgram) Slots(entry string) []native.Slot {
	e := p.entries[entry]
	if e == nil {
		if entry == plan.HolderEntry {
			return nil
		}
		return p.base.Slots(entry)
	}
	return slices.Clone(e.slots)
}

func openSlot(name string, role native.Role, t dtype.DType, shape ir.Shape) native.Slot {
	s := native.Slot{Name: name, Role: role, DType: t, Dims: make([]int, len(shape))}
	for axis, d := range shape {
		n, constant := d.Const()
		if !constant {
			n = native.OpenSize
		}
		s.Dims[axis] = n
	}
	return s
}

// Persistent returns the parameters and states.
func (p *openProgram) Persistent() []native.Slot { return p.base.Persistent() }

// Set writes a parameter or a state.
func (p *openProgram) Set(ctx context.Context, name string, t Tensor) error {
	return p.SetAll(ctx, map[string]Tensor{name: t})
}

// Get returns a parameter or a state.
func (p *openProgram) Get(ctx context.Context, name string) (x Tensor, err error) {
	err = p.withBase(ctx, "get", false, func() (err error) {
		x, err = p.base.Get(ctx, name)
		return err
	})
	return x, err
}

// GetAll returns all parameters and states.
func (p *openProgram) GetAll(ctx context.Context) (values map[string]Tensor, err error) {
	err = p.withBase(ctx, "get", false, func() (err error) {
		values, err = p.base.GetAll(ctx)
		return err
	})
	return values, err
}

// SetAll writes parameters and states.
func (p *openProgram) SetAll(ctx context.Context, values map[string]Tensor) error {
	return p.withBase(ctx, "set", true, func() error { return p.base.SetAll(ctx, values) })
}

// withBase calls f while the base program has the newest parameters and states.
func (p *openProgram) withBase(ctx context.Context, call string, writes bool, f func() error) error {
	if p.move == nil {
		return f()
	}
	return p.fault(call, p.move.do(ctx, p.base, writes, f))
}

// Memory returns the bytes of all compiled programs.
func (p *openProgram) Memory() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.base.Memory()
	for at := p.recent.Front(); at != nil; at = at.Next() {
		if b := at.Value.(*bucket); b.isReady() && b.program != nil {
			sum += b.program.Memory()
		}
	}
	return sum
}

func (b *bucket) isReady() bool {
	select {
	case <-b.ready:
		return true
	default:
		return false
	}
}

// fault wraps an error of a call.
func (p *openProgram) fault(call string, err error) error {
	if typed := (*native.Error)(nil); err == nil || errors.As(err, &typed) {
		return err
	}
	return &native.Error{Backend: p.session.backend.Name(), Call: call, Kind: native.KindOf(err), Err: err}
}

// acquire returns the bucket for a call, compiled. The caller releases it.
func (p *openProgram) acquire(ctx context.Context, e *openEntry, c *call) (*bucket, error) {
	if !c.exact {
		b, err := p.compiled(ctx, e, c.bound, false)
		if err == nil || !errors.Is(err, errNotPadded) {
			return b, err
		}
	}
	return p.compiled(ctx, e, c.sizes, true)
}

// errNotPadded is the error of a bucket whose sizes the padded graph cannot have, such as an odd
// size that is halved.
var errNotPadded = errors.New("the sizes of the bucket do not fit the graph")

func hasZero(sizes map[string]int) bool {
	for _, n := range sizes {
		if n == 0 {
			return true
		}
	}
	return false
}

// compiled returns the bucket for bound sizes. The first caller compiles it, even if its own ctx
// ends before, and the others wait.
func (p *openProgram) compiled(ctx context.Context, e *openEntry, bound map[string]int, exact bool) (*bucket, error) {
	key := e.Name + "\x00" + formatSizes(bound)
	if exact {
		key += "\x00exact"
	}
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return nil, native.ErrClosed
	}
	at, known := p.buckets[key]
	if !known {
		b := &bucket{key: key, entry: e, bound: bound, exact: exact, ready: make(chan struct{}), users: 1}
		at = p.recent.PushFront(b)
		p.buckets[key] = at
		p.compiles.Go(func() {
			defer p.release(b)
			defer close(b.ready)
			b.err = p.compile(context.WithoutCancel(ctx), b)
		})
	}
	b := at.Value.(*bucket)
	p.recent.MoveToFront(at)
	b.users++
	dropped := p.evict()
	p.mu.Unlock()
	for _, d := range dropped {
		p.closeBucket(d)
	}
	select {
	case <-b.ready:
	case <-ctx.Done():
		p.release(b)
		return nil, ctx.Err()
	}
	if b.err != nil {
		p.forget(b)
		return nil, b.err
	}
	return b, nil
}

// evict removes the least recently used buckets beyond the limit, and returns those without users.
func (p *openProgram) evict() []*bucket {
	var idle []*bucket
	for p.recent.Len() > cmp.Or(p.options.Buckets, defaultBuckets) {
		b := p.remove(p.recent.Back())
		if b.users == 0 {
			idle = append(idle, b)
		}
	}
	return idle
}

// remove removes a bucket from the cache. Its last user closes it.
func (p *openProgram) remove(at *list.Element) *bucket {
	b := at.Value.(*bucket)
	p.recent.Remove(at)
	delete(p.buckets, b.key)
	b.evicted = true
	return b
}

// forget removes a bucket that failed to compile, so that the next call tries again. It keeps one
// whose sizes do not fit, which cannot change.
func (p *openProgram) forget(b *bucket) {
	p.mu.Lock()
	if at := p.buckets[b.key]; at != nil && at.Value == b && !errors.Is(b.err, errNotPadded) {
		p.remove(at)
	}
	p.mu.Unlock()
	p.release(b)
}

// release ends a use of a bucket.
func (p *openProgram) release(b *bucket) {
	p.mu.Lock()
	b.users--
	last := b.evicted && b.users == 0
	p.mu.Unlock()
	if last {
		p.closeBucket(b)
	}
}

// closeBucket frees the program of a bucket without users.
func (p *openProgram) closeBucket(b *bucket) error {
	if !b.isReady() || b.program == nil {
		return nil
	}
	ctx := context.Background()
	var moved error
	if p.move != nil {
		moved = p.move.forget(ctx, b.program)
	}
	return errors.Join(moved, b.program.Close(ctx))
}

// compile compiles a bucket.
func (p *openProgram) compile(ctx context.Context, b *bucket) (err error) {
	if b.entry.file != nil {
		return p.openBucket(ctx, b)
	}
	var g *ir.Graph
	if b.exact {
		g, err = b.entry.graph.Bind(b.bound)
	} else if g, err = b.entry.analysis.Graph(b.bound); err != nil {
		return errors.Join(errNotPadded, err)
	}
	if err != nil {
		return err
	}
	for _, port := range g.Ports() {
		if port.Kind == ir.InputPort {
			b.ports = append(b.ports, native.SlotOf(port.Name, native.Input, port.Value))
		}
	}
	m, err := ir.NewModule(p.name, ir.Entry{Name: b.entry.Name, Graph: g})
	if err != nil {
		return err
	}
	with := p.base
	if p.move != nil || len(p.base.Persistent()) == 0 {
		with = nil
	}
	b.program, err = p.session.compile(ctx, m, p.options, with)
	return err
}

func (p *openProgram) prepare(ctx context.Context, entry string, sizes map[string]int) error {
	e := p.entries[entry]
	if e == nil {
		if !slices.Contains(p.Entries(), entry) {
			return p.fault(entry, ir.Errorf(ir.ErrName, "unknown entry %q: have %q", entry, p.Entries()))
		}
		return nil
	}
	used := map[string]int{}
	for _, s := range e.Symbols {
		n, given := sizes[s]
		if !given || n < 0 {
			return p.fault(entry, ir.Errorf(ir.ErrSymbol, "symbol %q needs a size of 0 or greater; given are %s", s, formatSizes(sizes)))
		}
		used[s] = n
	}
	c, err := e.newCall(used)
	if err != nil {
		return p.fault(entry, err)
	}
	b, err := p.acquire(ctx, e, c)
	if err != nil {
		return p.fault(entry, err)
	}
	p.release(b)
	return nil
}

// Close closes all programs.
func (p *openProgram) Close(ctx context.Context) error {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.compiles.Wait()
	p.mu.Lock()
	var idle []*bucket
	for p.recent.Len() > 0 {
		if b := p.remove(p.recent.Front()); b.users == 0 {
			idle = append(idle, b)
		}
	}
	p.mu.Unlock()
	var failed error
	for _, b := range idle {
		failed = errors.Join(failed, p.closeBucket(b))
	}
	return errors.Join(failed, p.base.Close(ctx))
}
