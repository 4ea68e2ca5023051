package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// fused is a stretch of instructions as one kernel, or all that is done for rows as
// a few of them.
type fused struct {
	kernels *jit.Rows
	code    *jit.Code // of the kernels, once it is known which there will be
	arrays  []fusedArray
}

// fusedArray is an array of a kernel: a register, or the elements side by side
// that a load or store of a tensor names.
type fusedArray struct {
	reg    register
	single bool // of a register of one lane
	access *instr
	stores bool
}

// fuser makes kernels of the code of a nest.
type fuser struct {
	n   *nest
	set *jit.Set
	// spreads are the registers that have one value in all lanes, with where
	// it comes from; constants are those of one lane that never change.
	spreads   map[register]register
	constants map[register]scalar.Expr
	reads     map[register]int // how many instructions read a register
}

// fuse makes kernels of all stretches of instructions that it can.
func (n *nest) fuse(set *jit.Set) {
	if !jit.Available() {
		return
	}
	f := &fuser{n: n, set: set, spreads: map[register]register{}, constants: map[register]scalar.Expr{}, reads: map[register]int{}}
	n.keep(func(r register) { f.reads[r] = math.MaxInt / 2 })
	n.eachList(func(code *[]instr) { f.look(*code) })
	for _, p := range n.phases {
		f.tighten(p)
		f.unroll(p)
	}
	n.eachList(func(code *[]instr) { *code = f.list(*code) })
	n.eachList(func(code *[]instr) { *code = f.needed(*code) })
	n.lengthen()
	f.byRows()
	n.eachList(func(code *[]instr) { f.compile(*code) })
}

func (f *fuser) compile(code []instr) {
	for i := range code {
		if x := code[i].fused; x != nil {
			x.code = f.set.Compile(x.kernels)
		}
	}
}

// eachList shows the lists of instructions of a nest.
func (n *nest) eachList(f func(code *[]instr)) {
	for _, code := range []*[]instr{&n.starts, &n.runs, &n.rows, &n.sweep} {
		f(code)
	}
	for _, p := range n.phases {
		for _, code := range []*[]instr{&p.block, &p.inner, &p.element, &p.several, &p.finish, &p.tail, &p.carry, &p.total} {
			f(code)
		}
		for _, c := range p.combining {
			f(&c.code)
		}
	}
}

// look notes where the values of a list come from.
func (f *fuser) look(code []instr) {
	for i := range code {
		in := &code[i]
		in.registers(func(r *register, result bool) {
			if !result {
				f.reads[*r]++
			}
		})
		switch in.kind {
		case opSplat:
			f.spreads[in.dst] = in.args[0]
		case opConst:
			if in.one && in.dst.inKernels() {
				f.constants[in.dst] = in.node
			}
		}
	}
}

// inKernels reports whether kernels compute with the lanes of a register.
func (r register) inKernels() bool {
	return r.class == classF32 || r.class == classInt || r.class == classF64 || r.class == classLong
}

// list returns a list with kernels in place of what they can do. What they
// cannot do, and does not depend on it, comes before.
func (f *fuser) list(code []instr) []instr {
	var out []instr
	s := f.segment()
	end := func() {
		out = append(out, s.finish()...)
		s = f.segment()
	}
	for i := range code {
		in := &code[i]
		switch {
		case s.add(in):
		case s.before(in):
			out = append(out, *in)
		default:
			end()
			if !s.add(in) {
				out = append(out, *in)
			}
		}
	}
	end()
	return out
}

// needed leaves out what spreads a value that no instruction reads any more.
func (f *fuser) needed(code []instr) []instr {
	kept := code[:0]
	for _, in := range code {
		if in.kind != opSplat || f.reads[in.dst] > 0 {
			kept = append(kept, in)
		}
	}
	return kept
}

// lengthen lets kernels that need no registers of lanes take long stretches.
func (n *nest) lengthen() {
	if n.inner.usesWides() {
		return
	}
	for _, p := range n.phases {
		if p.whole || p.finish != nil || len(p.running) == 0 {
			long := true
			for i := range p.element {
				long = long && p.element[i].kind == opFused && !n.needLanes(p.element[i].fused.arrays)
			}
			if long {
				p.stretch = p.longest()
			}
		}
	}
}

// usesWides reports whether code reads the coordinates along a block.
func (s *space) usesWides() bool {
	return slices.ContainsFunc(s.wides(), func(a axis) bool { return a.used })
}

// needLanes reports whether a kernel reads or writes registers of lanes, of which
// coordinates have as many as a row.
func (n *nest) needLanes(arrays []fusedArray) bool {
	return slices.ContainsFunc(arrays, func(a fusedArray) bool {
		return a.access == nil && !a.single && !slices.ContainsFunc(n.along().wides(), func(x axis) bool { return x.reg == a.reg })
	})
}

// segment is a stretch of instructions that becomes a kernel.
type segment struct {
	*fuser
	k        *jit.Kernel
	kind     kind
	code     []instr
	arrays   []fusedArray
	values   map[register]jit.Value // of registers of many lanes, now
	single   map[register]jit.Value // of those of one, for all lanes
	written  []register             // in the order in which they were
	reads    map[register]int       // by the segment's own instructions
	looped   int                    // how much of code is of the loop, where some comes after it
	hasStore bool
}

func (f *fuser) segment() *segment {
	return &segment{
		fuser: f, k: &jit.Kernel{}, reads: map[register]int{},
		values: map[register]jit.Value{}, single: map[register]jit.Value{},
	}
}

// before reports whether an instruction that is no part of the kernel can come
// before it.
func (s *segment) before(in *instr) bool {
	if s.hasStore || in.kind == opStore || in.kind == opCheck {
		return len(s.code) == 0
	}
	own := false
	in.registers(func(r *register, _ bool) {
		own = own || slices.Contains(s.written, *r)
	})
	return !own
}

// add makes an instruction part of the kernel; it reports false, and does
// nothing, where it cannot be.
func (s *segment) add(in *instr) bool {
	if in.one || !s.ofKind(in, s.adds) {
		return false
	}
	in.registers(func(r *register, result bool) {
		if !result {
			s.reads[*r]++
		}
	})
	s.code = append(s.code, *in)
	return true
}

func (s *segment) adds(in *instr) bool {
	switch in.kind {
	case opMove:
		if !in.dst.inKernels() {
			return false
		}
		v, ok := s.value(in.args[0], wordType(in.dst))
		if !ok {
			return false
		}
		s.write(in.dst, v)
	case opLoad:
		if !in.sideBySide() {
			return false
		}
		array := s.array(fusedArray{access: in})
		if in.buf.dtype.IsBool() {
			s.write(in.dst, s.k.LoadBools(array))
		} else {
			s.write(in.dst, s.k.Load(array, in.buf.dtype))
		}
	case opStore:
		if !in.sideBySide() {
			return false
		}
		v, ok := s.value(in.args[0], in.buf.dtype)
		if !ok {
			return false
		}
		array := s.array(fusedArray{access: in, stores: true})
		if in.buf.dtype.IsBool() {
			s.k.StoreBools(array, v)
		} else {
			s.k.Store(array, in.buf.dtype, v)
		}
		s.hasStore = true
	case opApply:
		return s.apply(in)
	default:
		return false
	}
	return true
}

// operation is what an instruction applies, in the terms of kernels.
func (in *instr) operation() jit.Operation {
	return jit.Operation{Op: in.node.Op, From: in.node.Args[len(in.node.Args)-1].Type, To: in.node.Type}
}

func (s *segment) apply(in *instr) bool {
	o := in.operation()
	if !jit.Has(o) {
		return false
	}
	if _, one := s.spreads[in.args[0]]; one && in.changesWidth() {
		return false // which kernels have in lanes' width alone
	}
	args := make([]jit.Value, len(in.node.Args))
	for i, a := range in.node.Args {
		ok := true
		if in.uniform && i == 0 {
			args[i] = s.spread(in.args[0], a.Type)
		} else {
			args[i], ok = s.value(in.args[i], a.Type)
		}
		if !ok {
			return false
		}
	}
	v, _ := s.k.Apply(o, args...)
	s.write(in.dst, v)
	return true
}

func (s *segment) array(a fusedArray) int {
	s.arrays = append(s.arrays, a)
	return s.k.Array()
}

// wordType is a type of the lanes of a register, of integers and truths alike.
func wordType(r register) ir.DType {
	switch r.class {
	case classF32:
		return ir.F32
	case classF64:
		return ir.F64
	case classLong:
		return ir.I64
	}
	return ir.I32
}

func (s *segment) write(r register, v jit.Value) {
	if !slices.Contains(s.written, r) {
		s.written = append(s.written, r)
	}
	s.values[r] = v
}

// value returns what is in a register of many lanes, as a value of type t; false
// where it is known as a number and is to be a truth, or the other way round.
func (s *segment) value(r register, t ir.DType) (jit.Value, bool) {
	v, ok := s.values[r]
	if !ok {
		if from, ok := s.spreads[r]; ok {
			return s.spread(from, t), true
		}
		held := t
		if t.Size() < 4 && !t.IsBool() {
			held = wordType(r)
		}
		v = s.k.Load(s.array(fusedArray{reg: r}), held)
		s.values[r] = v
	}
	return v, s.k.IsTruth(v) == t.IsBool()
}

// spread returns what is in a register of one lane, for all lanes.
func (s *segment) spread(r register, t ir.DType) jit.Value {
	if v, ok := s.single[r]; ok {
		return v
	}
	var v jit.Value
	if c, ok := s.constants[r]; ok {
		v = s.k.Const(c)
	} else {
		v = s.k.Spread(s.array(fusedArray{reg: r, single: true}), t)
	}
	s.single[r] = v
	return v
}

// finish returns the kernel as an instruction; the instructions themselves where
// there are too few.
func (s *segment) finish() []instr {
	if len(s.code) == 0 || len(s.code) == 1 && s.code[0].kind != opApply {
		return s.code
	}
	s.count()
	for _, r := range s.written {
		if s.fuser.reads[r] == 0 {
			continue
		}
		s.k.Store(s.array(fusedArray{reg: r, stores: true}), s.storedAs(r), s.values[r])
	}
	return []instr{s.kernel()}
}

// storedAs is the type that the value of a register is stored as.
func (s *segment) storedAs(r register) ir.DType {
	if s.k.IsTruth(s.values[r]) {
		return jit.Truths
	}
	return wordType(r)
}

// count takes the instructions of the kernel out of the counts of reads.
func (s *segment) count() {
	for r, n := range s.reads {
		s.fuser.reads[r] -= n
	}
}

func (s *segment) kernel() instr {
	for _, a := range s.arrays {
		if a.access == nil && !a.stores {
			s.fuser.reads[a.reg]++
		}
	}
	return instr{kind: opFused, fused: &fused{kernels: jit.One(s.k), arrays: s.arrays}}
}

// registers shows the registers of a kernel, its results last.
func (x *fused) registers(f func(r *register, result bool)) {
	for _, results := range []bool{false, true} {
		for i := range x.arrays {
			switch a := &x.arrays[i]; {
			case a.access != nil:
				if !results {
					a.access.registers(func(r *register, result bool) {
						if !result {
							f(r, false)
						}
					})
				}
			case a.stores == results:
				f(&a.reg, results)
			}
		}
	}
}

// addSingle makes an instruction on single numbers part of a kernel.
func (s *segment) addSingle(in *instr) bool { return s.ofKind(in, s.addsSingle) }

func (s *segment) addsSingle(in *instr) bool {
	switch in.kind {
	case opMove:
		if !in.dst.inKernels() {
			return false
		}
		v := s.spread(in.args[0], wordType(in.dst))
		s.writeSingle(in.dst, v)
	case opLoad:
		if !in.isWord() {
			return false
		}
		s.writeSingle(in.dst, s.k.Spread(s.array(fusedArray{access: in}), in.buf.dtype))
	case opStore:
		if !in.isWord() || in.node == guarded {
			return false
		}
		v := s.spread(in.args[0], in.buf.dtype)
		if s.k.IsTruth(v) {
			return false
		}
		s.k.StoreFirst(s.array(fusedArray{access: in, stores: true}), v)
	case opApply:
		return s.applySingle(in)
	default:
		return false
	}
	return true
}

// isWord reports whether a load or store of one element is of a type that lanes have
// and its place a sum of coordinates.
func (in *instr) isWord() bool {
	switch in.buf.dtype {
	case ir.F32, ir.I32, ir.U32, ir.F64, ir.I64, ir.U64:
		return !in.at.general && in.at.mask == nil
	}
	return false
}

func (s *segment) applySingle(in *instr) bool {
	o := in.operation()
	if !jit.Has(o) || !in.dst.inKernels() || in.changesWidth() {
		return false
	}
	args := make([]jit.Value, len(in.node.Args))
	for i, a := range in.node.Args {
		if args[i] = s.spread(in.args[i], a.Type); s.k.IsTruth(args[i]) != a.Type.IsBool() {
			return false
		}
	}
	v, _ := s.k.Apply(o, args...)
	s.writeSingle(in.dst, v)
	return true
}

func (s *segment) writeSingle(r register, v jit.Value) {
	if !slices.Contains(s.written, r) {
		s.written = append(s.written, r)
	}
	s.single[r] = v
}

// kind is which numbers the lanes of a kernel are: all of one kernel are alike.
type kind uint8

const (
	anyKind kind = iota // truths alone
	words               // of 32 bits
	longs               // of 64 bits
)

// width returns how many lanes a register has.
func (k kind) width() int {
	if k == longs {
		return jit.Width() / 2
	}
	return jit.Width()
}

// segmentOf begins a kernel of a kind.
func (f *fuser) segmentOf(k kind) *segment {
	s := f.segment()
	s.kind, s.k.Long = k, k == longs
	return s
}

// ofKind adds an instruction by the given way unless it is of another kind than the
// kernel so far; it reports whether it did.
func (s *segment) ofKind(in *instr, add func(in *instr) bool) bool {
	k, ok := in.numbers()
	if !ok || k != anyKind && s.kind != anyKind && s.kind != k {
		return false
	}
	before := s.kind
	if k != anyKind {
		s.kind, s.k.Long = k, k == longs
	}
	if add(in) {
		return true
	}
	s.kind, s.k.Long = before, before == longs
	return false
}

// numbers returns the kind of the numbers that an instruction has to do with; false
// where they differ.
func (in *instr) numbers() (kind, bool) {
	found := anyKind
	note := func(k kind) bool {
		if k == anyKind || found == k {
			return true
		}
		first := found == anyKind
		found = k
		return first
	}
	switch in.kind {
	case opLoad, opStore:
		if in.buf.dtype.IsBool() {
			return words, true
		}
		return kindOf(in.buf.dtype), true
	case opMove:
		return kindOf(wordType(in.dst)), true
	case opApply:
		if in.changesWidth() {
			return longs, jit.Has(in.operation())
		}
		same := note(kindOf(in.node.Type))
		for _, a := range in.node.Args {
			same = note(kindOf(a.Type)) && same
		}
		return found, same
	}
	return found, true
}

// changesWidth reports whether an instruction converts numbers between 32 and 64 bits.
func (in *instr) changesWidth() bool {
	if in.node.Op != scalar.OpConvert {
		return false
	}
	from, to := kindOf(in.node.Args[0].Type), kindOf(in.node.Type)
	return from != to && from != anyKind && to != anyKind
}

func kindOf(t ir.DType) kind {
	switch classOf(t) {
	case classF64, classLong:
		return longs
	}
	if t.IsBool() {
		return anyKind
	}
	return words
}

// kindOfRunning returns the kind of running values; false where kernels do not
// compute with them, or not with all of them together.
func kindOfRunning(list []running) (kind, bool) {
	found := anyKind
	for _, r := range list {
		k := kindOf(wordType(r.acc))
		if !r.acc.inKernels() || found != anyKind && found != k {
			return 0, false
		}
		found = k
	}
	return found, true
}
