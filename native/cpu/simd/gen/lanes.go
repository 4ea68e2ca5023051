package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cpu/simd/spec"
)

// lanes writes the kernel of an expression of up to three operands, arrays of
// 32-bit elements: it goes through them a register at a time, to the end of the
// register that the last element is in.
type lanes struct {
	*file
	set  *set
	uses map[scalar.Expr]int
	at   map[scalar.Expr]string
	free []string // registers
	mask []string // registers of masks
}

// args are where a kernel has its operands.
var args = []string{"SI", "R8", "R9"}

func writeLanes(f *file, s *set, name string, e scalar.Expr) {
	l := &lanes{file: f, set: s, uses: map[scalar.Expr]int{}, at: map[scalar.Expr]string{}}
	for i := s.count - 1; i >= 0; i-- {
		l.free = append(l.free, fmt.Sprint(s.reg, i))
	}
	for i := 7; i > 0; i-- {
		l.mask = append(l.mask, fmt.Sprint("K", i))
	}
	f.declare(name, "n int, d, a, b, c unsafe.Pointer")
	f.line("TEXT ·%s(SB), NOSPLIT, $0-40", name)
	f.op("MOVQ n+0(FP), AX")
	f.op("MOVQ d+8(FP), DI")
	arity := 0
	scalar.Walk(e, func(x scalar.Expr) {
		if x.Op == scalar.OpArg {
			arity = max(arity, x.Ref+1)
		}
	})
	for i, reg := range args[:arity] {
		f.op("MOVQ %c+%d(FP), %s", 'a'+i, 16+8*i, reg)
	}
	f.op("XORQ DX, DX")
	f.label("loop")
	l.body(e)
	f.op("ADDQ $%d, DX", s.bytes)
	f.op("SUBQ $%d, AX", s.bytes/4)
	f.op("JGT loop")
	f.op("VZEROUPPER")
	f.op("RET")
}

func (l *lanes) wide() bool { return l.set == avx512 }

// body computes and stores the lanes of one register.
func (l *lanes) body(root scalar.Expr) {
	seen := map[scalar.Expr]bool{}
	var order []scalar.Expr
	scalar.Walk(root, func(x scalar.Expr) {
		if !seen[x] {
			seen[x] = true
			order = append(order, x)
			for _, a := range x.Args {
				l.uses[a]++
			}
		}
	})
	l.uses[root]++
	for _, x := range order {
		if x.Op != scalar.OpConst {
			l.node(x)
		}
	}
	r := l.at[root]
	if root.Type.IsBool() {
		d := l.take()
		if l.wide() {
			l.op("VPBROADCASTD.Z %s, %s, %s", l.word(1), r, d)
		} else {
			l.op("VPSRLD $31, %s, %s", r, d)
		}
		r = d
	}
	l.op("VMOVUPS %s, (DI)(DX*1)", r)
}

func (l *lanes) take() string {
	if len(l.free) == 0 {
		panic("no register is left")
	}
	r := l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	return r
}

// dest returns the register for the value of a node.
func (l *lanes) dest(x scalar.Expr) string {
	if !x.Type.IsBool() || !l.wide() {
		return l.take()
	}
	if len(l.mask) == 0 {
		panic("no mask is left")
	}
	r := l.mask[len(l.mask)-1]
	l.mask = l.mask[:len(l.mask)-1]
	return r
}

// release takes one use of a node back.
func (l *lanes) release(x scalar.Expr) {
	r := l.at[x]
	if l.uses[x]--; l.uses[x] > 0 || r == "" {
		return
	}
	l.give(r)
}

func (l *lanes) give(r string) {
	if r[0] == 'K' {
		l.mask = append(l.mask, r)
	} else {
		l.free = append(l.free, r)
	}
}

// bits returns what a constant is in 32 bits.
func bits(x scalar.Expr) uint32 {
	v, _ := x.Value()
	if x.Type.IsFloat() {
		return math.Float32bits(float32(v.F))
	}
	return uint32(v.I)
}

// in returns a node in a register: a constant in one to be given back.
func (l *lanes) in(x scalar.Expr) (reg string, back func()) {
	if x.Op != scalar.OpConst {
		return l.at[x], func() {}
	}
	r := l.take()
	l.op("VBROADCASTSS %s, %s", l.word(bits(x)), r)
	return r, func() { l.give(r) }
}

// binary writes an instruction whose last operand may be in memory.
func (l *lanes) binary(name string, x, y scalar.Expr, d string) {
	a, back := l.in(x)
	l.with(name, a, y, d)
	back()
}

func (l *lanes) with(name, a string, y scalar.Expr, d string) {
	if y.Op == scalar.OpConst {
		l.withWord(name, a, bits(y), d)
		return
	}
	l.op("%s %s, %s, %s", name, l.at[y], a, d)
}

// withWord writes an instruction with a constant for its last operand.
func (l *lanes) withWord(name, a string, word uint32, d string) {
	if l.wide() {
		first, rest, _ := strings.Cut(name, " ")
		name = strings.TrimSpace(first + ".BCST " + rest)
	}
	l.op("%s %s, %s, %s", name, l.word(word), a, d)
}

// node computes a node.
func (l *lanes) node(x scalar.Expr) {
	if x.Op == scalar.OpBitcast || x.Op == scalar.OpConvert && x.Type.IsInteger() && x.Args[0].Type.IsInteger() {
		// The same bits: the node takes the register over, with all its uses.
		a := x.Args[0]
		if a.Op == scalar.OpConst {
			l.at[x], _ = l.in(a)
			return
		}
		if l.uses[a] == 1 {
			l.at[x] = l.at[a]
			return
		}
		d := l.dest(x)
		l.op("VMOVAPS %s, %s", l.at[a], d)
		l.at[x] = d
		l.release(a)
		return
	}
	d := l.dest(x)
	switch {
	case x.Op == scalar.OpArg:
		l.load(x, d)
	case x.Op == scalar.OpSelect:
		l.choose(x, d)
	case x.Op == scalar.OpConvert:
		l.convert(x, d)
	case x.Op >= scalar.OpEq && x.Op <= scalar.OpGe && !x.Args[0].Type.IsBool():
		l.compare(x, d)
	case x.Type.IsBool():
		l.logic(x, d)
	case x.Type.IsFloat():
		l.float(x, d)
	default:
		l.integer(x, d)
	}
	l.at[x] = d
	for _, a := range x.Args {
		l.release(a)
	}
}

func (l *lanes) load(x scalar.Expr, d string) {
	from := fmt.Sprintf("(%s)(DX*1)", args[x.Ref])
	switch {
	case !x.Type.IsBool():
		l.op("VMOVUPS %s, %s", from, d)
	case l.wide():
		r := l.take()
		l.op("VMOVUPS %s, %s", from, r)
		l.op("VPTESTMD %[1]s, %[1]s, %[2]s", r, d)
		l.give(r)
	default:
		l.op("VMOVUPS %s, %s", from, d)
		l.op("VPSLLD $31, %[1]s, %[1]s", d)
		l.op("VPSRAD $31, %[1]s, %[1]s", d)
	}
}

func (l *lanes) choose(x scalar.Expr, d string) {
	c, a, b := x.Args[0], x.Args[1], x.Args[2]
	if x.Type.IsBool() {
		panic("a choice of bools")
	}
	other, back := l.in(b)
	switch {
	case l.wide() && a.Op == scalar.OpConst:
		l.op("VBLENDMPS.BCST %s, %s, %s, %s", l.word(bits(a)), other, l.at[c], d)
	case l.wide():
		l.op("VBLENDMPS %s, %s, %s, %s", l.at[a], other, l.at[c], d)
	case a.Op == scalar.OpConst:
		l.op("VBLENDVPS %s, %s, %s, %s", l.at[c], l.word(bits(a)), other, d)
	default:
		l.op("VBLENDVPS %s, %s, %s, %s", l.at[c], l.at[a], other, d)
	}
	back()
}

func (l *lanes) convert(x scalar.Expr, d string) {
	a := x.Args[0]
	r, back := l.in(a)
	defer back()
	switch {
	case a.Type.IsBool():
		one := uint32(1)
		if x.Type.IsFloat() {
			one = math.Float32bits(1)
		}
		if l.wide() {
			l.op("VPBROADCASTD.Z %s, %s, %s", l.word(one), r, d)
		} else {
			l.withWord("VPAND", r, one, d)
		}
	case x.Type == dtype.F32 && a.Type == dtype.I32:
		l.op("VCVTDQ2PS %s, %s", r, d)
	case x.Type == dtype.I32 && a.Type == dtype.F32:
		l.op("VCVTTPS2DQ %s, %s", r, d)
	default:
		panic(fmt.Sprint("convert ", a.Type, " to ", x.Type))
	}
}

// compare writes one of the six comparisons.
func (l *lanes) compare(x scalar.Expr, d string) {
	a, b := x.Args[0], x.Args[1]
	kind := x.Op - scalar.OpEq
	if a.Type.IsFloat() {
		predicate := []int{0x00, 0x04, 0x11, 0x12, 0x1e, 0x1d}[kind]
		l.binary(fmt.Sprintf("VCMPPS $%#x,", predicate), a, b, d)
		return
	}
	if l.wide() {
		name := "VPCMPD"
		if a.Type.IsUnsigned() {
			name = "VPCMPUD"
		}
		l.binary(fmt.Sprintf("%s $%d,", name, []int{0, 4, 1, 2, 6, 5}[kind]), a, b, d)
		return
	}
	negate := false
	switch x.Op {
	case scalar.OpEq, scalar.OpNe:
		l.binary("VPCMPEQD", a, b, d)
		negate = x.Op == scalar.OpNe
	default:
		if x.Op == scalar.OpLt || x.Op == scalar.OpGe {
			a, b = b, a
		}
		l.greater(a, b, d)
		negate = x.Op == scalar.OpLe || x.Op == scalar.OpGe
	}
	if negate {
		l.withWord("VPXOR", d, math.MaxUint32, d)
	}
}

// greater writes a > b for integers, of which AVX2 has the signed one.
func (l *lanes) greater(a, b scalar.Expr, d string) {
	if a.Type.IsSigned() {
		l.binary("VPCMPGTD", a, b, d)
		return
	}
	ra, backA := l.in(a)
	rb, backB := l.in(b)
	l.withWord("VPXOR", ra, 1<<31, d)
	t := l.take()
	l.withWord("VPXOR", rb, 1<<31, t)
	l.op("VPCMPGTD %s, %s, %s", t, d, d)
	l.give(t)
	backA()
	backB()
}

// logic writes operations on masks.
func (l *lanes) logic(x scalar.Expr, d string) {
	a := l.at[x.Args[0]]
	if x.Op == scalar.OpNot {
		if l.wide() {
			l.op("KNOTW %s, %s", a, d)
		} else {
			l.withWord("VPXOR", a, math.MaxUint32, d)
		}
		return
	}
	name := map[scalar.Op]string{
		scalar.OpAnd: "AND", scalar.OpOr: "OR", scalar.OpXor: "XOR", scalar.OpNe: "XOR",
	}[x.Op]
	if name == "" {
		panic(fmt.Sprint("logic: ", x.Op))
	}
	if l.wide() {
		l.op("K%sW %s, %s, %s", name, l.at[x.Args[1]], a, d)
	} else {
		l.op("VP%s %s, %s, %s", name, l.at[x.Args[1]], a, d)
	}
}

func (l *lanes) float(x scalar.Expr, d string) {
	round := func(how int) {
		name := "VROUNDPS"
		if l.wide() {
			name = "VRNDSCALEPS"
		}
		l.op("%s $%d, %s, %s", name, how, l.at[x.Args[0]], d)
	}
	switch x.Op {
	case scalar.OpFma:
		l.fused(x, d)
	case scalar.OpNeg:
		l.withWord("VXORPS", l.at[x.Args[0]], 1<<31, d)
	case scalar.OpAbs:
		l.withWord("VANDPS", l.at[x.Args[0]], 1<<31-1, d)
	case scalar.OpSqrt:
		l.op("VSQRTPS %s, %s", l.at[x.Args[0]], d)
	case scalar.OpRound:
		round(8)
	case scalar.OpFloor:
		round(9)
	case scalar.OpCeil:
		round(10)
	case scalar.OpTrunc:
		round(11)
	default:
		name := map[scalar.Op]string{
			scalar.OpAdd: "VADDPS", scalar.OpSub: "VSUBPS", scalar.OpMul: "VMULPS", scalar.OpDiv: "VDIVPS",
		}[x.Op]
		if name == "" {
			panic(fmt.Sprint("float: ", x.Op))
		}
		l.binary(name, x.Args[0], x.Args[1], d)
	}
}

// fused writes a product and a sum, rounded once.
func (l *lanes) fused(x scalar.Expr, d string) {
	a, b, c := x.Args[0], x.Args[1], x.Args[2]
	if c.Op == scalar.OpConst {
		l.op("VBROADCASTSS %s, %s", l.word(bits(c)), d)
	} else {
		l.op("VMOVAPS %s, %s", l.at[c], d)
	}
	l.binary("VFMADD231PS", a, b, d)
}

func (l *lanes) integer(x scalar.Expr, d string) {
	logic := map[bool]string{true: "D"}[l.wide()]
	switch x.Op {
	case scalar.OpShl, scalar.OpShr:
		name := "VPSLL"
		if x.Op == scalar.OpShr {
			name = map[bool]string{true: "VPSRA", false: "VPSRL"}[x.Type.IsSigned()]
		}
		if by := x.Args[1]; by.Op == scalar.OpConst {
			l.op("%sD $%d, %s, %s", name, bits(by), l.at[x.Args[0]], d)
			return
		}
		l.binary(name+"VD", x.Args[0], x.Args[1], d)
		return
	case scalar.OpNeg:
		l.op("VPXOR%[1]s %[2]s, %[2]s, %[2]s", logic, d)
		l.op("VPSUBD %s, %s, %s", l.at[x.Args[0]], d, d)
		return
	case scalar.OpNot:
		l.withWord("VPXOR"+logic, l.at[x.Args[0]], math.MaxUint32, d)
		return
	case scalar.OpAbs:
		l.op("VPABSD %s, %s", l.at[x.Args[0]], d)
		return
	}
	sign := map[bool]string{true: "SD", false: "UD"}[x.Type.IsSigned()]
	name := map[scalar.Op]string{
		scalar.OpAdd: "VPADDD", scalar.OpSub: "VPSUBD", scalar.OpMul: "VPMULLD",
		scalar.OpAnd: "VPAND" + logic, scalar.OpOr: "VPOR" + logic, scalar.OpXor: "VPXOR" + logic,
		scalar.OpMin: "VPMIN" + sign, scalar.OpMax: "VPMAX" + sign,
	}[x.Op]
	if name == "" {
		panic(fmt.Sprint("integer: ", x.Op))
	}
	l.binary(name, x.Args[0], x.Args[1], d)
}

// writeTable writes the kernels of all operations, and the table of them.
func writeTable(f *file, s *set) {
	var table strings.Builder
	fmt.Fprintf(&table, "var lanes%s = []Lanes{ // in the order of spec.Operations\n", s.name)
	for _, o := range spec.Operations() {
		name := fmt.Sprintf("%s%s%s%s", o.Op, s.name, o.From, o.To)
		writeLanes(f, s, name, scalar.Simplify(o.Expr()))
		fmt.Fprintf(&table, "%s,\n", name)
	}
	fmt.Fprintf(&f.decl, "%s}\n\n", table.String())
}
