package kernel

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Launch is a kernel with the tensors to bind to its storage arrays, in order;
// the status words, where the kernel has them, stand as nil.
type Launch struct {
	Kernel *Kernel
	Args   []*Tensor
}

// Device is what schedules need to know of a target.
type Device struct {
	// Threads is the most threads of a workgroup, SharedBytes its memory, Groups
	// the most workgroups along an axis of a dispatch, and ArrayBytes the most
	// that a storage array takes.
	Threads, SharedBytes, Groups, ArrayBytes int
}

// DefaultDevice is what WebGPU promises everywhere.
var DefaultDevice = Device{Threads: 256, SharedBytes: 16 << 10, Groups: 65535, ArrayBytes: 128 << 20}

// emitter collects the pieces of one kernel. While it is built, loads and
// stores name arrays by tensor ID, or by a negative slot for memory of the
// kernel itself; finish numbers them as the kernel's arrays.
type emitter struct {
	*scalar.Simplifier
	p         *Program
	device    Device
	workgroup [3]int
	groups    [3]int
	own       []Array
	wide      map[int]bool // tensors that are loaded by vectors of four alone
	fresh     int
}

func newEmitter(p *Program, d Device) *emitter {
	return &emitter{Simplifier: scalar.NewSimplifier(), p: p, device: d, wide: map[int]bool{}}
}

// reader returns a reader for the kernel.
func (e *emitter) reader() *reader { return newReader(e.p, e.Simplifier) }

// statusSlot stands for the status words where a kernel only reads them.
const statusSlot = -1 << 20

// name returns a new variable name.
func (e *emitter) name(prefix string) string {
	e.fresh++
	return prefix + strconv.Itoa(e.fresh)
}

// shared declares workgroup memory and returns its slot.
func (e *emitter) shared(name string, d ir.DType, width, length int) int {
	e.own = append(e.own, Array{Name: name, DType: d, Width: width, Len: length, Space: Shared})
	return -len(e.own)
}

// store returns the statements that write an element of a tensor at a position.
// A persistent tensor is left as it is once the status words tell of an error.
func (e *emitter) store(t *Tensor, at ir.Index, value scalar.Expr) []Stmt {
	root, offset := t.resolve(e.p.depth(), linear(t.Dims, at))
	return e.guardStatus(root, &Store{Array: root.ID, At: e.Simplify(offset), Value: value})
}

// atomic is store for a value that is combined with what is there.
func (e *emitter) atomic(op scalar.Op, t *Tensor, at ir.Index, value scalar.Expr) []Stmt {
	root, offset := t.resolve(e.p.depth(), linear(t.Dims, at))
	return e.guardStatus(root, &AtomicOp{Op: op, Array: root.ID, At: e.Simplify(offset), Value: value})
}

// guardStatus puts a change of a persistent tensor under the condition that the
// status words tell of no error.
func (e *emitter) guardStatus(root *Tensor, s Stmt) []Stmt {
	if !root.Persistent() || !e.p.guarded() {
		return []Stmt{s}
	}
	fine := scalar.Eq(scalar.LoadAt(statusSlot, ir.U32, integer(0)), scalar.ConstI(ir.U32, 0))
	return []Stmt{&If{Cond: fine, Then: []Stmt{s}}}
}

// guarded reports whether any index is checked in the whole program.
func (p *Program) guarded() bool {
	for p.parent != nil {
		p = p.parent
	}
	return len(p.Checks) > 0
}

// linearGroup lays n workgroups out in a grid, since an axis of a dispatch is
// bounded, and returns the number of the workgroup that a thread is in. Numbers
// from n on may come up and must do nothing.
func (e *emitter) linearGroup(n int) scalar.Expr {
	n = max(n, 1)
	e.groups = [3]int{n, 1, 1}
	if n <= e.device.Groups {
		return GroupID(0, n)
	}
	rows := ceilDiv(n, e.device.Groups)
	cols := ceilDiv(n, rows)
	e.groups = [3]int{cols, rows, 1}
	return scalar.Add(GroupID(0, cols), scalar.Mul(GroupID(1, rows), integer(cols)))
}

// load returns the load of an element of a tensor.
func (e *emitter) load(t *Tensor, at ir.Index) scalar.Expr {
	return t.load(e.Simplifier, e.p.depth(), at)
}

// unflatten returns the coordinates of element number i in row-major order.
func (e *emitter) unflatten(i scalar.Expr, dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for k := len(dims) - 1; k > 0; k-- {
		at[k] = scalar.Mod(i, integer(dims[k]))
		i = scalar.FloorDiv(i, integer(dims[k]))
	}
	if len(dims) > 0 {
		at[0] = i
	}
	return simplifyAll(e.Simplifier, at)
}

// boundedGroup is linearGroup for kernels whose barriers need all threads: the
// number stays below n, and exists is false where it is not the workgroup's
// own, which then must store nothing.
func (e *emitter) boundedGroup(n int) (group, exists scalar.Expr) {
	group = e.linearGroup(n)
	if !e.overshoots() {
		return group, scalar.ConstBool(true)
	}
	return scalar.Min(group, integer(n-1)), scalar.Lt(group, integer(n))
}

// finish makes a kernel of its body: it gathers the tensors and numbers the
// arrays, device memory first.
func (e *emitter) finish(name string, body []Stmt) Launch {
	body = hoist(body)
	f := &finisher{e: e, slot: map[int]int{}, written: map[int]bool{}, atomic: map[int]bool{}}
	walkStores(body, func(array int) { f.written[array] = true })
	Walk(body, func(s Stmt) {
		if a, ok := s.(*AtomicOp); ok {
			f.atomic[a.Array] = true
		}
	})
	walkExprs(body, func(x scalar.Expr) scalar.Expr {
		scalar.Walk(x, f.visit)
		return x
	})
	for _, id := range sortedSlots(f.written) {
		f.need(id)
	}
	for _, id := range sortedSlots(e.wide) {
		f.need(id)
	}
	k := &Kernel{Name: name, Workgroup: e.workgroup, Groups: e.groups, Scalars: f.scalars, Counters: f.counters}
	args := f.layOut(k)
	k.Body = walkExprs(body, f.renumber)
	walkArrays(k.Body, func(array *int) { *array = f.slot[*array] })
	return Launch{k, args}
}

// finisher numbers the arrays of a kernel.
type finisher struct {
	e        *emitter
	order    []int
	slot     map[int]int
	written  map[int]bool
	atomic   map[int]bool
	scalars  []ir.DType
	counters int
	checks   bool
}

func (f *finisher) visit(x scalar.Expr) {
	switch x.Op {
	case scalar.OpLoad:
		f.need(x.Ref)
	case scalar.OpCheck:
		f.checks = true
	case scalar.OpVar:
		switch kind, i := BuiltinOf(x.Name); kind {
		case BuiltinScalar:
			for len(f.scalars) <= i {
				f.scalars = append(f.scalars, 0)
			}
			f.scalars[i] = x.Type
		case BuiltinCounter:
			f.counters = max(f.counters, i+1)
		}
	}
}

func (f *finisher) need(id int) {
	if !slices.Contains(f.order, id) {
		f.order = append(f.order, id)
	}
}

// layOut fills in the kernel's arrays: tensors, named by their place so that
// equal kernels have one text, the status words last among them, then the
// kernel's own memory.
func (f *finisher) layOut(k *Kernel) []*Tensor {
	var args []*Tensor
	add := func(id int, a Array) {
		f.slot[id] = len(k.Arrays)
		k.Arrays = append(k.Arrays, a)
	}
	for _, id := range f.order {
		if id < 0 {
			continue
		}
		t := f.e.p.byID[id]
		a := Array{Name: "t" + strconv.Itoa(len(args)), DType: t.DType, Width: 1, Len: max(t.Len(), 1)}
		if f.written[id] {
			a.Access = ReadWrite
		}
		if f.e.wide[id] {
			a.Width, a.Len = 4, a.Len/4
		}
		if f.atomic[id] {
			a.Access = Atomic
		}
		add(id, a)
		args = append(args, t)
	}
	status := Array{Name: "status", DType: ir.U32, Width: 1, Len: 4}
	if f.checks {
		status.Access = Atomic
	}
	if f.checks || slices.Contains(f.order, statusSlot) {
		add(statusSlot, status)
		args = append(args, nil)
	}
	for i, a := range f.e.own {
		add(-1-i, a)
	}
	return args
}

func (f *finisher) renumber(x scalar.Expr) scalar.Expr {
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpLoad {
			return nil, false
		}
		at := f.renumber(n.Args[0])
		return scalar.LoadAt(f.slot[n.Ref], n.Type, at), true
	})
}

func sortedSlots(set map[int]bool) []int {
	out := make([]int, 0, len(set))
	for id := range set {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func integer(n int) scalar.Expr { return scalar.ConstI(ir.I32, int64(n)) }

// guard puts statements under a condition, unless it always holds.
func guard(cond scalar.Expr, then []Stmt) []Stmt {
	if x, ok := cond.IntConst(); ok && x != 0 {
		return then
	}
	return []Stmt{&If{Cond: cond, Then: then}}
}

// overshoots reports whether the grid has more workgroups than were asked for.
func (e *emitter) overshoots() bool { return e.groups[1] > 1 }
