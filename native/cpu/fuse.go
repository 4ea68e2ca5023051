package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// fused is a sequence of instructions as one kernel, or all the work of rows as several.
type fused struct {
	kernels *jit.Rows
	code    *jit.Code // the compiled kernels, set at the end of fuse
	arrays  []fusedArray
}

// fusedArray is an array argument of a kernel: a register, or the contiguous elements that a
// load or store accesses.
type fusedArray struct {
	reg    register
	scalar bool // a register accessed at its first vector only: uniform, or the lanes of an accumulator
	access *instr
	stores bool
	// In a row kernel: the place of an indirect array is computed by the row, from that of a base,
	// which the kernel does not access itself.
	indirect, base bool
}

// fuser replaces instructions of a nest by kernels.
type fuser struct {
	n   *nest
	set *jit.Set
	// splats maps registers with one value in all lanes to the uniform register of the
	// value; constants maps uniform registers to their constants.
	splats    map[register]register
	constants map[register]scalar.Expr
	reads     map[register]int // number of instructions that read a register
}

// fuse replaces all sequences of instructions that kernels can do. Reductions and unrolled
// loops come first, as they take instructions from their loops; kernels for whole rows come
// last, as they consist of the others.
func (n *nest) fuse(set *jit.Set) {
	if !jit.Available() {
		return
	}
	f := &fuser{n: n, set: set, splats: map[register]register{}, constants: map[register]scalar.Expr{}, reads: map[register]int{}}
	n.eachLiveIn(func(r register) { f.reads[r] = math.MaxInt / 2 })
	n.eachList(func(code *[]instr) { f.countReads(*code) })
	for _, p := range n.phases {
		f.fuseReduction(p)
		f.unroll(p)
	}
	n.eachList(func(code *[]instr) { *code = f.fuseList(*code) })
	n.eachList(func(code *[]instr) { *code = f.dropDeadSplats(*code) })
	n.extendBlocks()
	f.fuseRows()
	n.eachList(func(code *[]instr) { f.compile(*code) })
}

func (f *fuser) compile(code []instr) {
	for i := range code {
		if x := code[i].fused; x != nil {
			x.code = f.set.Compile(x.kernels)
		}
	}
}

// eachList calls f for each list of instructions of a nest.
func (n *nest) eachList(f func(code *[]instr)) {
	for _, code := range []*[]instr{&n.starts, &n.runs, &n.rows, &n.rowKernel} {
		f(code)
	}
	for _, p := range n.phases {
		for _, code := range []*[]instr{&p.block, &p.inner, &p.element, &p.unrolled, &p.finish, &p.tail, &p.carry, &p.total} {
			f(code)
		}
		for _, c := range p.merges {
			f(&c.code)
		}
	}
}

// countReads records reads, splats and constants of a list.
func (f *fuser) countReads(code []instr) {
	for i := range code {
		in := &code[i]
		in.registers(func(r *register, result bool) {
			if !result {
				f.reads[*r]++
			}
		})
		switch in.kind {
		case opSplat:
			f.splats[in.dst] = in.args[0]
		case opConst:
			if in.scalar && in.dst.inKernels() {
				f.constants[in.dst] = in.node
			}
		}
	}
}

// inKernels reports whether kernels can compute with a register.
func (r register) inKernels() bool {
	return r.class == classF32 || r.class == classInt || r.class == classF64 || r.class == classLong
}

// fuseList returns a list with kernels in place of the instructions that they can do. The
// others move before the kernel where they do not depend on it.
func (f *fuser) fuseList(code []instr) []instr {
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
		case s.canHoist(in):
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

// dropDeadSplats removes splats whose result no instruction reads any more.
func (f *fuser) dropDeadSplats(code []instr) []instr {
	kept := code[:0]
	for _, in := range code {
		if in.kind != opSplat || f.reads[in.dst] > 0 {
			kept = append(kept, in)
		}
	}
	return kept
}

// extendBlocks raises the block length of kernels that use no lane registers.
func (n *nest) extendBlocks() {
	for _, p := range n.phases {
		if p.whole || p.finish != nil || len(p.accumulators) == 0 {
			long := true
			for i := range p.element {
				long = long && p.element[i].kind == opFused && !n.usesLaneRegisters(p.element[i].fused.arrays)
			}
			if long {
				p.maxPoints = p.blockLimit()
			}
		}
	}
}

// usesLaneRegisters reports whether a kernel reads or writes lane registers other than
// coordinates, which have a lane for each point of a row.
func (n *nest) usesLaneRegisters(arrays []fusedArray) bool {
	return slices.ContainsFunc(arrays, func(a fusedArray) bool {
		return a.access == nil && !a.scalar && !slices.ContainsFunc(n.wideSpace().wides(), func(x axis) bool { return x.reg == a.reg })
	})
}

// segment is a sequence of instructions that becomes a kernel.
type segment struct {
	*fuser
	k        *jit.Kernel
	kind     laneKind
	code     []instr
	arrays   []fusedArray
	values   map[register]jit.Value // current values of wide registers
	uniform  map[register]jit.Value // of those of one, for all lanes
	written  []register             // in the order of the writes
	reads    map[register]int       // by the segment's own instructions
	looped   int                    // number of instructions of code that are part of the loop
	hasStore bool
}

func (f *fuser) segment() *segment {
	return &segment{
		fuser: f, k: &jit.Kernel{}, reads: map[register]int{},
		values: map[register]jit.Value{}, uniform: map[register]jit.Value{},
	}
}

// canHoist reports whether an instruction that is not part of the kernel can move before it.
func (s *segment) canHoist(in *instr) bool {
	if s.hasStore || in.kind == opStore || in.kind == opCheck {
		return len(s.code) == 0
	}
	own := false
	in.registers(func(r *register, _ bool) {
		own = own || slices.Contains(s.written, *r)
	})
	return !own
}

// add makes an instruction part of the kernel. Where it cannot be, add returns false and
// changes nothing.
func (s *segment) add(in *instr) bool {
	if in.scalar || !s.addOfKind(in, s.lower) {
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

func (s *segment) lower(in *instr) bool {
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
		if !in.isInKernels() {
			return false
		}
		s.write(in.dst, s.load(in))
	case opStore:
		if !in.isInKernels() {
			return false
		}
		if in.parts {
			re, _ := s.value(in.args[0], partType(in.buf.dtype))
			im, _ := s.value(in.args[1], partType(in.buf.dtype))
			s.k.StorePairs(s.array(fusedArray{access: in, stores: true}), partType(in.buf.dtype), re, im)
			s.hasStore = true
			return true
		}
		v, ok := s.value(in.args[0], in.buf.dtype)
		if !ok {
			return false
		}
		s.store(in, v)
		s.hasStore = true
	case opApply:
		return s.apply(in)
	default:
		return false
	}
	return true
}

// load loads the elements of a load that kernels can do.
func (s *segment) load(in *instr) jit.Value {
	if in.isGathered() {
		return s.gather(in)
	}
	array := s.array(fusedArray{access: in})
	if in.parts {
		return s.k.LoadPart(array, in.node.Type, int(in.node.Op-scalar.OpReal))
	}
	if runs, ok := in.runs(); ok {
		return s.k.LoadRuns(array, in.buf.dtype, runs)
	}
	if in.buf.dtype.IsBool() {
		return s.k.LoadBools(array)
	}
	return s.k.Load(array, in.buf.dtype)
}

// gather loads elements at places that the kernel computes or reads: the array begins where those are 0.
func (s *segment) gather(in *instr) jit.Value {
	places, _ := s.value(in.at.index, wordType(in.at.index))
	access, at := *in, *in.at
	at.general, at.index, access.at = false, register{}, &at
	return s.k.Gather(s.array(fusedArray{access: &access}), in.buf.dtype, places, at.span)
}

// store stores a value as a store that kernels can do.
func (s *segment) store(in *instr, v jit.Value) {
	array := s.array(fusedArray{access: in, stores: true})
	runs, ok := in.runs()
	switch {
	case ok:
		s.k.StoreRuns(array, in.buf.dtype, runs, v)
	case in.buf.dtype.IsBool():
		s.k.StoreBools(array, v)
	default:
		s.k.Store(array, in.buf.dtype, v)
	}
}

// operation returns the operation of an instruction in the terms of package jit.
func (in *instr) operation() jit.Operation {
	return jit.Operation{Op: in.node.Op, From: in.node.Args[len(in.node.Args)-1].Type, To: in.node.Type}
}

func (s *segment) apply(in *instr) bool {
	o := in.operation()
	if !jit.Has(o) {
		return false
	}
	if _, one := s.splats[in.args[0]]; one && in.changesWidth() {
		return false // splats have the width of the kernel's lanes
	}
	args := make([]jit.Value, len(in.node.Args))
	for i, a := range in.node.Args {
		ok := true
		if in.uniform && i == 0 {
			args[i] = s.splat(in.args[0], a.Type)
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

// wordType returns the element type of a register in a kernel.
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

// value returns the value of a wide register as a value of type t; false where it is a number
// and t is bool, or the reverse.
func (s *segment) value(r register, t ir.DType) (jit.Value, bool) {
	v, ok := s.values[r]
	if !ok {
		if from, ok := s.splats[r]; ok {
			return s.splat(from, t), true
		}
		held := t
		if t.Size() < 4 && !t.IsBool() {
			held = wordType(r)
		}
		v = s.k.Load(s.array(fusedArray{reg: r}), held)
		s.values[r] = v
	}
	return v, s.k.IsBool(v) == t.IsBool()
}

// splat returns the value of a uniform register in all lanes.
func (s *segment) splat(r register, t ir.DType) jit.Value {
	if v, ok := s.uniform[r]; ok {
		return v
	}
	var v jit.Value
	if c, ok := s.constants[r]; ok {
		v = s.k.Const(c)
	} else {
		v = s.k.Splat(s.array(fusedArray{reg: r, scalar: true}), t)
	}
	s.uniform[r] = v
	return v
}

// finish returns the kernel as an instruction, or the instructions themselves where they are
// too few.
func (s *segment) finish() []instr {
	if len(s.code) == 0 || len(s.code) == 1 && !s.code[0].converts() {
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

// converts reports whether an instruction computes with its elements, and does not only copy them: registers
// hold narrow elements widened.
func (in *instr) converts() bool {
	switch in.kind {
	case opLoad, opStore:
		return in.parts || in.buf.dtype.Size() < 4
	}
	return in.kind == opApply
}

// storedAs returns the element type of a register in memory.
func (s *segment) storedAs(r register) ir.DType {
	if s.k.IsBool(s.values[r]) {
		return jit.BoolWords
	}
	return wordType(r)
}

// count subtracts the kernel's own reads from the counts.
func (s *segment) count() {
	for r, n := range s.reads {
		s.fuser.reads[r] -= n
	}
}

func (s *segment) kernel() instr {
	for _, a := range s.arrays {
		if a.access != nil {
			for _, t := range a.access.at.terms {
				s.fuser.reads[t.reg]++
			}
		} else if !a.stores {
			s.fuser.reads[a.reg]++
		}
	}
	return instr{kind: opFused, fused: &fused{kernels: jit.One(s.k), arrays: s.arrays}}
}

// registers calls f for the registers of a kernel, the results last.
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

// addScalar makes an instruction on uniform values part of a kernel.
func (s *segment) addScalar(in *instr) bool { return s.addOfKind(in, s.lowerScalar) }

func (s *segment) lowerScalar(in *instr) bool {
	switch in.kind {
	case opMove:
		if !in.dst.inKernels() {
			return false
		}
		v := s.splat(in.args[0], wordType(in.dst))
		s.writeScalar(in.dst, v)
	case opLoad:
		if !in.isScalarAccess() {
			return false
		}
		s.writeScalar(in.dst, s.k.Splat(s.array(fusedArray{access: in}), in.buf.dtype))
	case opStore:
		if !in.isScalarAccess() || in.node == guarded {
			return false
		}
		v := s.splat(in.args[0], in.buf.dtype)
		if s.k.IsBool(v) {
			return false
		}
		s.k.StoreFirst(s.array(fusedArray{access: in, stores: true}), v)
	case opApply:
		return s.applyScalar(in)
	default:
		return false
	}
	return true
}

// isScalarAccess reports whether a uniform load or store has an element type of lanes and an
// affine address.
func (in *instr) isScalarAccess() bool {
	switch in.buf.dtype {
	case ir.F32, ir.I32, ir.U32, ir.F64, ir.I64, ir.U64:
		return !in.at.general && in.at.mask == nil
	}
	return false
}

func (s *segment) applyScalar(in *instr) bool {
	o := in.operation()
	if !jit.Has(o) || !in.dst.inKernels() || in.changesWidth() {
		return false
	}
	args := make([]jit.Value, len(in.node.Args))
	for i, a := range in.node.Args {
		if args[i] = s.splat(in.args[i], a.Type); s.k.IsBool(args[i]) != a.Type.IsBool() {
			return false
		}
	}
	v, _ := s.k.Apply(o, args...)
	s.writeScalar(in.dst, v)
	return true
}

func (s *segment) writeScalar(r register, v jit.Value) {
	if !slices.Contains(s.written, r) {
		s.written = append(s.written, r)
	}
	s.uniform[r] = v
}

// laneKind is the width of the numbers in the lanes of a kernel, which is the same for all of
// one kernel.
type laneKind uint8

const (
	kindAny laneKind = iota // booleans only
	kind32                  // of 32 bits
	kind64                  // of 64 bits
)

// width returns the number of lanes of a vector.
func (k laneKind) width() int {
	if k == kind64 {
		return jit.Width() / 2
	}
	return jit.Width()
}

// segmentOf starts a kernel of a kind.
func (f *fuser) segmentOf(k laneKind) *segment {
	s := f.segment()
	s.kind, s.k.Long = k, k == kind64
	return s
}

// addOfKind adds an instruction with add unless its kind differs from that of the kernel so
// far; it reports whether it did.
func (s *segment) addOfKind(in *instr, add func(in *instr) bool) bool {
	k, ok := in.laneKind()
	if !ok || k != kindAny && s.kind != kindAny && s.kind != k {
		return false
	}
	before := s.kind
	if k != kindAny {
		s.kind, s.k.Long = k, k == kind64
	}
	if add(in) {
		return true
	}
	s.kind, s.k.Long = before, before == kind64
	return false
}

// laneKind returns the kind of an instruction's operands and result; false where they differ.
func (in *instr) laneKind() (laneKind, bool) {
	found := kindAny
	note := func(k laneKind) bool {
		if k == kindAny || found == k {
			return true
		}
		first := found == kindAny
		found = k
		return first
	}
	switch in.kind {
	case opLoad, opStore:
		if in.buf.dtype.IsBool() {
			return kind32, true
		}
		if in.parts {
			return kindOf(partType(in.buf.dtype)), true
		}
		return kindOf(in.buf.dtype), true
	case opMove:
		return kindOf(wordType(in.dst)), true
	case opApply:
		if in.changesWidth() {
			return kind64, jit.Has(in.operation())
		}
		same := note(kindOf(in.node.Type))
		for _, a := range in.node.Args {
			same = note(kindOf(a.Type)) && same
		}
		return found, same
	}
	return found, true
}

// changesWidth reports whether an instruction converts between 32 and 64 bits.
func (in *instr) changesWidth() bool {
	if in.node.Op != scalar.OpConvert {
		return false
	}
	from, to := kindOf(in.node.Args[0].Type), kindOf(in.node.Type)
	return from != to && from != kindAny && to != kindAny
}

func kindOf(t ir.DType) laneKind {
	switch classOf(t) {
	case classF64, classLong:
		return kind64
	}
	if t.IsBool() {
		return kindAny
	}
	return kind32
}

// kindOfAccumulators returns the common kind of accumulators; false where they differ or
// kernels cannot compute with them.
func kindOfAccumulators(list []accumulator) (laneKind, bool) {
	found := kindAny
	for _, r := range list {
		k := kindOf(wordType(r.acc))
		if !r.acc.inKernels() || found != kindAny && found != k {
			return 0, false
		}
		found = k
	}
	return found, true
}
