package emit

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Launch is a kernel with the tensors bound to its storage arrays, in order; nil means the
// status words. Or it is a library routine with the tensors of its arrays, and Kernel is nil.
type Launch struct {
	Kernel *loop.Kernel // nil for a routine and for parts
	// Draft, if set, computes the same as Kernel and compiles faster.
	Draft   *loop.Kernel
	Routine routine.Routine  // a library call instead of a kernel
	Args    []*fusion.Tensor // of the storage arrays
	// Parts are independent parts that become kernels once their tensors are placed: Kernel is
	// nil then, and Args are all tensors that a part touches.
	Parts []Part
}

// Emitter collects the pieces of one kernel. While the kernel is built, loads and stores name
// arrays by tensor ID, or by a negative slot for the kernel's own memory; Finish numbers them
// as the kernel's arrays.
type Emitter struct {
	*loop.Writer // appends to Body
	Grid
	Body       []loop.Stmt       // written so far
	Partition  *fusion.Partition // has the tensors
	Caps       loop.Caps         // of the target
	Resident   int               // see [loop.Kernel]
	Own        []loop.Array      // workgroup memory and registers; slot -1-i is Own[i]
	TensorMaps []loop.TensorMap  // tensor maps, by tensor ID
	mbarriers  []loop.Mbarrier
	Widths     map[int]int      // vector width of tensors accessed by vectors only, by tensor ID
	Words      map[int]bool     // tensors of bytes or 16-bit floats that are read as U32, by tensor ID
	Args       []*fusion.Tensor // the first arguments, where their order matters
}

// New returns an emitter for one kernel.
func New(p *fusion.Partition, caps loop.Caps) *Emitter {
	e := &Emitter{Writer: loop.NewWriter(), Grid: Grid{maxGroups: caps.Groups}, Partition: p, Caps: caps, Widths: map[int]int{}, Words: map[int]bool{}}
	e.Writer.Body = &e.Body
	return e
}

// Sibling returns an emitter for one more kernel of the same group.
func (e *Emitter) Sibling() *Emitter {
	out := New(e.Partition, e.Caps)
	out.Long = e.Long
	return out
}

// Reader returns a reader for the kernel.
func (e *Emitter) Reader() *fusion.Reader { return fusion.NewReader(e.Partition, e.Simplifier) }

// statusSlot is the slot of the status words in kernels that only read them.
const statusSlot = -1 << 20

// Shared declares workgroup memory and returns its slot.
func (e *Emitter) Shared(name string, d ir.DType, width, length int) int {
	e.Own = append(e.Own, loop.Array{Name: name, DType: d, Width: width, Len: length, Space: loop.Shared})
	return -len(e.Own)
}

// Mbarrier declares length barriers, each for the given number of warps, and returns their
// number.
func (e *Emitter) Mbarrier(name string, length, warps int) int {
	e.mbarriers = append(e.mbarriers, loop.Mbarrier{Name: name, Len: length, Warps: warps})
	return len(e.mbarriers) - 1
}

// Store returns the statements that store an element of a tensor. A persistent tensor keeps its
// value once the status words hold an error.
func (e *Emitter) Store(t *fusion.Tensor, at ir.Index, value scalar.Expr) []loop.Stmt {
	root, offset := e.Partition.Place(t, at)
	return e.GuardStatus(root, &loop.Store{Array: root.ID, At: e.Simplify(offset), Value: value})
}

// Atomic is store by an atomic read-modify-write.
func (e *Emitter) Atomic(op scalar.Op, t *fusion.Tensor, at ir.Index, value scalar.Expr) []loop.Stmt {
	root, offset := e.Partition.Place(t, at)
	return e.GuardStatus(root, &loop.AtomicOp{Op: op, Array: root.ID, At: e.Simplify(offset), Value: value})
}

// GuardStatus guards stores to a persistent tensor with the condition that the status words
// hold no error.
func (e *Emitter) GuardStatus(root *fusion.Tensor, s ...loop.Stmt) []loop.Stmt {
	if !e.Partition.IsGuarded(root) {
		return s
	}
	fine := scalar.Eq(scalar.LoadAt(statusSlot, ir.U32, loop.Int(0)), scalar.ConstI(ir.U32, 0))
	return []loop.Stmt{&loop.If{Cond: fine, Then: s}}
}

// PendingStore is a value to store.
type PendingStore struct {
	Tensor *fusion.Tensor
	At     ir.Index    // the element
	Value  scalar.Expr // its value
}

// Points computes the members of a group at some points and stores the results.
func (e *Emitter) Points(g *fusion.Group, r *fusion.Reader, at ...ir.Index) []loop.Stmt {
	return e.StoreAll(e.Values(g, r, at...))
}

// Values returns the stores of a group's members at some points, the elements of one tensor
// after those of another.
func (e *Emitter) Values(g *fusion.Group, r *fusion.Reader, at ...ir.Index) (stores []PendingStore) {
	for _, m := range g.Members {
		for i, t := range m.Store {
			for _, point := range at {
				if t == nil {
					continue
				}
				r.InGroup(g, point, func(ir.Value) (scalar.Expr, bool) { return nil, false })
				pos := m.At(point)
				stores = append(stores, PendingStore{t, pos, r.Element(m.Node.Result(i), pos)})
			}
		}
	}
	return stores
}

// StoreAll stores values. The printer names shared subexpressions.
func (e *Emitter) StoreAll(stores []PendingStore) []loop.Stmt {
	values := make([]scalar.Expr, len(stores))
	for i, s := range stores {
		values[i] = s.Value
	}
	body := e.NameAll(values)
	for i, s := range stores {
		body = append(body, e.Store(s.Tensor, s.At, values[i])...)
	}
	return body
}

// NameAll names shared subexpressions of values, and the values themselves where there are
// several, since the store of one may overwrite an operand of another.
func (e *Emitter) NameAll(values []scalar.Expr) []loop.Stmt {
	if len(values) < 2 {
		return nil
	}
	var body []loop.Stmt
	s := scalar.BindShared(e.Name("s")+"_", values...)
	for _, b := range s.Locals {
		body = append(body, &loop.Let{Name: b.Var.Name, Value: b.Value})
	}
	for i, root := range s.Roots {
		if root.Op == scalar.OpVar || root.Op == scalar.OpConst {
			values[i] = root
			continue
		}
		name := e.Name("v")
		body = append(body, &loop.Let{Name: name, Value: root})
		values[i] = scalar.FreeVar(name, root.Type)
	}
	return body
}

// Load returns the load of an element of a tensor.
func (e *Emitter) Load(t *fusion.Tensor, at ir.Index) scalar.Expr {
	return e.Partition.Load(e.Simplifier, t, at)
}

// Unflatten returns the row-major coordinates of element i.
func (e *Emitter) Unflatten(i scalar.Expr, dims []int) ir.Index {
	return fusion.Unflatten(e.Simplifier, i, dims)
}

// Finish builds the kernel from its body: it collects the tensors and numbers the arrays,
// device memory first.
func (e *Emitter) Finish(name string, body []loop.Stmt) Launch {
	body = loop.Hoist(body)
	f := &finisher{e: e, slot: map[int]int{}, written: map[int]bool{}, atomic: map[int]bool{}}
	for _, t := range e.Args {
		if t != nil {
			f.need(t.ID)
		}
	}
	loop.WalkStores(body, func(array int) { f.written[array] = true })
	for _, b := range e.TensorMaps {
		f.need(b.Array)
	}
	loop.Walk(body, f.visitStmt)
	k := &loop.Kernel{Name: name, Workgroup: e.Workgroup, Groups: e.Groups, Resident: e.Resident, Scalars: f.scalars, Counters: f.counters}
	k.Uncontracted = WithMma && f.compares
	if f.usesSubgroups && e.Caps.Subgroups {
		k.Subgroup = e.Caps.Subgroup
	}
	args := f.layOut(k)
	k.Body = loop.MapExprs(body, f.renumber)
	loop.WalkArrays(k.Body, func(array *int) { *array = f.slot[*array] })
	for _, b := range e.TensorMaps {
		b.Array = f.slot[b.Array]
		k.TensorMaps = append(k.TensorMaps, b)
	}
	k.Mbarriers = e.mbarriers
	return Launch{Kernel: k, Args: args}
}

// finisher numbers the arrays of a kernel.
type finisher struct {
	e             *Emitter
	order         []int
	slot          map[int]int
	written       map[int]bool
	atomic        map[int]bool
	scalars       []ir.DType
	counters      int
	checks        bool
	usesSubgroups bool // the kernel uses subgroup operations
	compares      bool // the kernel compares computed floats for equality
}

// visitStmt records what a statement uses. Arrays are numbered in the order of their first use in
// the body, after those of tensor maps, so that kernels that do the same have one text,
// whatever their tensors' IDs.
func (f *finisher) visitStmt(s loop.Stmt) {
	loop.EachNode(s, f.visitExpr)
	loop.Arrays(s, func(array *int) { f.need(*array) })
	switch s := s.(type) {
	case *loop.AtomicOp:
		f.atomic[s.Array] = true
	case *loop.Shuffle, *loop.Subgroup, *loop.FragmentZero:
		f.usesSubgroups = true
	}
}

func (f *finisher) visitExpr(x scalar.Expr) {
	switch x.Op {
	case scalar.OpLoad:
		f.need(x.Ref)
	case scalar.OpCheck:
		f.checks = true
	case scalar.OpEq:
		x, y := x.Args[0], x.Args[1]
		f.compares = f.compares || x.Type.IsFloat() && x.Op != scalar.OpConst && y.Op != scalar.OpConst
	case scalar.OpVar:
		switch kind, i := loop.BuiltinOf(x.Name); kind {
		case loop.BuiltinScalar:
			for len(f.scalars) <= i {
				f.scalars = append(f.scalars, 0)
			}
			f.scalars[i] = x.Type
		case loop.BuiltinCounter:
			f.counters = max(f.counters, i+1)
		}
	}
}

func (f *finisher) need(id int) {
	if !slices.Contains(f.order, id) {
		f.order = append(f.order, id)
	}
}

// layOut fills in the kernel's arrays: tensors, named by position so that equal kernels have
// one text, then the segment table and the status words, then the kernel's own memory.
func (f *finisher) layOut(k *loop.Kernel) []*fusion.Tensor {
	var args []*fusion.Tensor
	add := func(id int, a loop.Array) {
		f.slot[id] = len(k.Arrays)
		k.Arrays = append(k.Arrays, a)
	}
	for _, id := range f.order {
		if id < 0 {
			continue
		}
		t := f.e.Partition.Tensor(id)
		a := loop.Array{Name: "t" + strconv.Itoa(len(args)), DType: t.DType, Width: 1, Len: max(t.Len(), 1)}
		if f.e.Words[id] {
			a.DType, a.Len = ir.U32, CeilDiv(t.Len()*t.DType.Size(), 4)
		}
		if f.written[id] {
			a.Access = loop.ReadWrite
		}
		if width := f.e.Widths[id]; width > 0 {
			a.Width, a.Len = width, a.Len/width
		}
		if f.atomic[id] {
			a.Access = loop.Atomic
		}
		add(id, a)
		args = append(args, t)
	}
	status := loop.Array{Name: "status", DType: ir.U32, Width: 1, Len: 4}
	if f.checks {
		status.Access = loop.Atomic
	}
	if slices.Contains(f.order, TableSlot) {
		add(TableSlot, loop.Array{Name: "table", DType: ir.I32, Width: 1})
		args = append(args, segmentTable)
	}
	if f.checks || slices.Contains(f.order, statusSlot) {
		add(statusSlot, status)
		args = append(args, nil)
	}
	for i, a := range f.e.Own {
		add(-1-i, a)
	}
	return args
}

func (f *finisher) renumber(x scalar.Expr) scalar.Expr { return WithSlots(x, f.slot) }

// WithSlots renumbers the arrays of an expression's loads.
func WithSlots(x scalar.Expr, slot map[int]int) scalar.Expr {
	if !scalar.Any(x, func(n scalar.Expr) bool { return n.Op == scalar.OpLoad }) {
		return x
	}
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpLoad {
			return nil, false
		}
		return scalar.LoadAt(slot[n.Ref], n.Type, WithSlots(n.Args[0], slot)), true
	})
}

// CeilDiv returns a / b, rounded up, for positive b.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// PowerOfTwo returns the smallest power of two that is at least n.
func PowerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// Guard wraps statements in an If, unless the condition is always true.
func Guard(cond scalar.Expr, then []loop.Stmt) []loop.Stmt {
	if x, ok := cond.IntConst(); ok && x != 0 {
		return then
	}
	return []loop.Stmt{&loop.If{Cond: cond, Then: then}}
}

// IsWordType reports whether values of a type are 32-bit words.
func IsWordType(d ir.DType) bool { return d == ir.F32 || d == ir.I32 || d == ir.U32 }

// StoresAlone reports whether each thread may store a value of a type by itself: elsewhere those of 16 bits share a word.
func StoresAlone(caps loop.Caps, d ir.DType) bool {
	return IsWordType(d) || WithMma && caps.Dialect == dtype.CUDA && (d == ir.F16 || d == ir.BF16)
}

// Commutes reports whether a combination is one commutative operation.
func Commutes(combined []scalar.Expr) bool {
	if len(combined) != 1 || len(combined[0].Args) != 2 {
		return false
	}
	op := combined[0].Op
	return op == scalar.OpAdd || op == scalar.OpMul || op == scalar.OpMax || op == scalar.OpMin
}

// Choose selects x or y element by element.
func Choose(cond scalar.Expr, x, y []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(x))
	for i := range x {
		out[i] = scalar.Select(cond, x[i], y[i])
	}
	return out
}
