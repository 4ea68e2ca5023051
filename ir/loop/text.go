package loop

import (
	"strings"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// String returns the kernel as text: a header, one line per array and one or more per
// statement. Expressions have the form of [scalar.Print]; common subexpressions of a statement
// have lines of their own before it.
//
//	kernel scale workgroup [64 1 1] groups [2 1 1]
//	array 0: x f32[100] storage read
//	array 1: y f32[100] storage read_write
//	let i = add(mul(group_x:i32[0..1], 64:i32), local_x:i32[0..63])
//	if lt(i:i32[0..127], 100:i32)
//	  store y[i:i32[0..127]] = mul(load.f32(0, i:i32[0..127]), 2:f32)
func (k *Kernel) String() string {
	t := text{k: k}
	t.line("kernel %s workgroup %d groups %d", k.Name, k.Workgroup, k.Groups)
	for i, a := range k.Arrays {
		t.line("array %d: %s", i, a)
	}
	if len(k.Scalars) > 0 {
		t.line("scalars %s", k.Scalars)
	}
	if k.Counters > 0 {
		t.line("counters %d", k.Counters)
	}
	if k.Resident > 0 {
		t.line("resident %d", k.Resident)
	}
	if k.Uncontracted {
		t.line("uncontracted")
	}
	if withAsync {
		t.objects()
	}
	if k.Subgroup != [2]int{} {
		t.line("subgroup %d to %d", k.Subgroup[0], k.Subgroup[1])
	}
	t.block(k.Body)
	return t.String()
}

// String returns the array as in the text form of a kernel: "x f32[100] storage
// read", "tile f32x4[64] shared".
func (a Array) String() string {
	s := format.Sprintf("%s %s[%d] %s", a.Name, vectorName(a.DType, a.Width), a.Len, a.Space)
	if a.Space == Storage {
		s += " " + a.Access.String()
	}
	return s
}

func vectorName(t dtype.DType, width int) string {
	if width == 1 {
		return t.String()
	}
	return format.Sprintf("%sx%d", t, width)
}

// String returns "storage", "shared" or "private".
func (s Space) String() string {
	if s > Private {
		return "invalid"
	}
	return [...]string{"storage", "shared", "private"}[s]
}

// String returns "read", "read_write" or "atomic".
func (a Access) String() string {
	if a > Atomic {
		return "invalid"
	}
	return [...]string{"read", "read_write", "atomic"}[a]
}

// Label describes a statement of the kernel in a few words, for messages: "let i", "store y",
// "for k", "barrier".
func (k *Kernel) Label(s Stmt) string {
	switch s := s.(type) {
	case *Let:
		return "let " + s.Name
	case *Var:
		return "var " + s.Name
	case *Assign:
		return "assign " + s.Name
	case *Store:
		return "store " + k.ArrayName(s.Array)
	case *LoadVec:
		return "load " + k.ArrayName(s.Array)
	case *StoreVec:
		return "store " + k.ArrayName(s.Array)
	case *For:
		return "for " + s.Var
	case *If:
		return "if"
	case *Barrier:
		if s.Kernels {
			return "barrier of kernels"
		}
		return "barrier"
	case *AtomicOp:
		return "atomic " + k.ArrayName(s.Array)
	case *Subgroup:
		return "subgroup " + s.Name
	case *Shuffle:
		return "shuffle " + s.Name
	}
	if withAsync {
		if label := k.asyncLabel(s); label != "" {
			return label
		}
	}
	return format.Sprintf("%T", s)
}

// ArrayName returns the name of array i, or its number if there is none.
func (k *Kernel) ArrayName(i int) string {
	if i < 0 || i >= len(k.Arrays) {
		return format.Sprintf("array %d", i)
	}
	return k.Arrays[i].Name
}

// text writes a kernel line by line.
type text struct {
	strings.Builder
	k     *Kernel
	depth int
}

func (t *text) line(text string, args ...any) {
	t.WriteString(strings.Repeat("  ", t.depth))
	t.WriteString(format.Sprintf(text, args...))
	t.WriteByte('\n')
}

func (t *text) block(body []Stmt) {
	for _, s := range body {
		t.stmt(s)
	}
}

// nested writes the body of a statement.
func (t *text) nested(body []Stmt) {
	t.depth++
	t.block(body)
	t.depth--
}

// exprs writes the common subexpressions and returns the texts of the expressions.
func (t *text) exprs(e ...scalar.Expr) []string {
	lines, texts := scalar.PrintAll(e...)
	for _, l := range lines {
		t.line("%s", l)
	}
	return texts
}

func (t *text) stmt(s Stmt) {
	switch s := s.(type) {
	case *Let:
		t.line("%s = %s", t.k.Label(s), t.exprs(s.Value)[0])
	case *Var:
		t.line("%s = %s", t.k.Label(s), t.exprs(s.Init)[0])
	case *Assign:
		t.line("%s = %s", t.k.Label(s), t.exprs(s.Value)[0])
	case *Store:
		e := t.exprs(s.At, s.Value)
		t.line("%s[%s] = %s", t.k.Label(s), e[0], e[1])
	case *LoadVec:
		at := t.exprs(s.At)[0]
		t.line("let %s = %s[%s]", strings.Join(s.Names, ", "), t.k.ArrayName(s.Array), at)
	case *StoreVec:
		e := t.exprs(append([]scalar.Expr{s.At}, s.Values...)...)
		t.line("%s[%s] = %s", t.k.Label(s), e[0], strings.Join(e[1:], ", "))
	case *For:
		t.loop(s)
	case *If:
		t.line("if %s", t.exprs(s.Cond)[0])
		t.nested(s.Then)
		if len(s.Else) > 0 {
			t.line("else")
			t.nested(s.Else)
		}
	case *AtomicOp:
		e := t.exprs(s.At, s.Value)
		to := ""
		if s.Old != "" {
			to = ", old " + s.Old
		}
		t.line("%s[%s] %s %s%s", t.k.Label(s), e[0], s.Op, e[1], to)
	case *Subgroup:
		t.line("%s = %s %s", t.k.Label(s), s.Op, t.exprs(s.Value)[0])
	case *Shuffle:
		t.line("%s = %s across %d", t.k.Label(s), t.exprs(s.Value)[0], s.Xor)
	default:
		if withAsync && t.async(s) {
			return
		}
		t.line("%s", t.k.Label(s))
	}
}

// transposed returns the mark of a transposed fragment load.
func transposed(is bool) string {
	if is {
		return ", transposed"
	}
	return ""
}

func (t *text) loop(s *For) {
	e := t.exprs(s.Start, s.End, s.Step)
	how := ""
	if s.Unroll {
		how = " unroll"
	}
	if s.NoUnroll {
		how = " rolled"
	}
	t.line("%s = %s below %s step %s%s", t.k.Label(s), e[0], e[1], e[2], how)
	t.nested(s.Body)
}

// asyncLabel is [Kernel.Label] for fragments and asynchronous statements, "" for others.
func (k *Kernel) asyncLabel(s Stmt) string {
	switch s := s.(type) {
	case *FragmentZero:
		return "fragment " + s.Name
	case *FragmentLoad:
		return "fragment " + s.Name
	case *FragmentMulAdd:
		return "multiply-add " + s.Sum
	case *FragmentStore:
		return "store fragment " + s.Name
	case *CopyAsync:
		return "copy to " + k.ArrayName(s.To)
	case *CopyCommit:
		return "commit copies"
	case *CopyWait:
		return "wait for copies"
	case *ProxyFence:
		return "proxy fence"
	case *Mma:
		return "multiply-add " + s.Shape.String()
	case *MmaWait:
		return "wait for multiply-adds"
	case *Pack:
		return "pack " + s.Name
	case *CopyTMA:
		return "copy by tensor map to " + k.ArrayName(s.To)
	case *Arrive:
		return "arrive at " + k.mbarrierName(s.Mbarrier)
	case *Await:
		return "await " + k.mbarrierName(s.Mbarrier)
	case *Roles:
		return "roles"
	}
	return ""
}

// async writes a statement of fragments, or an asynchronous one, that has more than its label, and reports whether s
// is one.
func (t *text) async(s Stmt) bool {
	switch s := s.(type) {
	case *FragmentLoad:
		side := ""
		if s.Right {
			side = ", right"
		}
		t.line("%s = %s[%s], stride %d%s%s", t.k.Label(s), t.k.ArrayName(s.Array), t.exprs(s.At)[0], s.Stride, transposed(s.Transposed), side)
	case *FragmentMulAdd:
		t.line("%s += %s · %s", t.k.Label(s), s.A, s.B)
	case *FragmentStore:
		t.line("%s to %s[%s], stride %d", t.k.Label(s), t.k.ArrayName(s.Array), t.exprs(s.At)[0], s.Stride)
	case *Pack:
		e := t.exprs(s.Low, s.High)
		t.line("%s = %s of %s, %s", t.k.Label(s), s.Type, e[0], e[1])
	case *CopyAsync:
		t.copyAsync(s)
	case *CopyTMA:
		t.copyTMA(s)
	case *Arrive:
		t.line("%s[%s]", t.k.Label(s), t.exprs(s.At)[0])
	case *Await:
		e := t.exprs(s.At, s.Phase)
		t.line("%s[%s] phase %s", t.k.Label(s), e[0], e[1])
	case *Roles:
		for _, r := range s.List {
			t.line("role of %d threads", r.Threads)
			t.nested(r.Body)
		}
	case *CopyWait:
		t.line("%s, %d pending", t.k.Label(s), s.Pending)
	case *Mma:
		t.line("%s", t.k.Label(s))
		for i := range s.Terms {
			t.term(&s.Terms[i])
		}
	case *MmaWait:
		t.line("%s, %d pending, then use of %s", t.k.Label(s), s.Pending, span(s.Names))
	default:
		return false
	}
	return true
}

func (t *text) copyAsync(s *CopyAsync) {
	list := []scalar.Expr{s.ToAt, s.FromAt}
	if s.Valid != nil {
		list = append(list, s.Valid)
	}
	e := t.exprs(list...)
	valid := ""
	if s.Valid != nil {
		valid = " if " + e[2]
	}
	t.line("%s[%s] = %d of %s[%s]%s", t.k.Label(s), e[0], s.Count, t.k.ArrayName(s.From), e[1], valid)
}

// term writes a multiply-add with the first and last of its registers.
func (t *text) term(m *MmaTerm) {
	left := span(m.LeftRegisters)
	if m.LeftRegisters == nil {
		left = t.tile(&m.A)
	}
	right := t.tile(&m.B)
	t.depth++
	sign := "+="
	if m.First {
		sign = "="
	}
	t.line("%s %s %s * %s", span(m.Sums), sign, left, right)
	t.depth--
}

func span(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return names[0] + ".." + names[len(names)-1]
}

func (t *text) tile(m *Tile) string {
	s := format.Sprintf("%s[%s] k %d", t.k.ArrayName(m.Array), t.exprs(m.At)[0], m.K)
	if m.Depth > 0 {
		s += format.Sprintf(" panels of %d", m.Depth)
	}
	return s
}

// objects writes the tensor maps and mbarriers of the kernel.
func (t *text) objects() {
	for i, b := range t.k.TensorMaps {
		t.line("tensor map %d: %s from %d, dims %d strides %d, copied by %d", i, t.k.ArrayName(b.Array), b.First, b.Dims, b.Strides, b.Size)
		if c := b.Im2col; c != nil {
			t.line("  pixels from %d to %d by %d", c.Lower, c.Upper, c.Step)
		}
	}
	for i, m := range t.k.Mbarriers {
		t.line("mbarrier %d: %s[%d] of %d warps", i, m.Name, m.Len, m.Warps)
	}
}

// mbarrierName returns the name of an mbarrier, or its number if there is none.
func (k *Kernel) mbarrierName(i int) string {
	if i < 0 || i >= len(k.Mbarriers) {
		return format.Sprintf("mbarrier %d", i)
	}
	return k.Mbarriers[i].Name
}

func (t *text) copyTMA(s *CopyTMA) {
	e := t.exprs(exprsOf(s)...)
	n, to := len(s.From), len(s.From)+len(s.Offset)
	offset := ""
	if to > n {
		offset = format.Sprintf(" offset by %s", e[n:to])
	}
	t.line("%s[%s] = tensor map %d from %s%s, at %s[%s]", t.k.Label(s), e[to], s.Map, e[:n], offset, t.k.mbarrierName(s.Mbarrier), e[to+1])
}
