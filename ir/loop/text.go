package loop

import (
	"strings"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// String returns the kernel as text: a header, one line for each array and one
// or more for each statement. Expressions are in the form of [scalar.Print];
// parts that a statement uses more than once have lines of their own before it.
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

// Label returns what a statement of the kernel does in a few words, for
// messages: "let i", "store y", "for k", "barrier".
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
		return "barrier"
	case *AtomicOp:
		return "atomic " + k.ArrayName(s.Array)
	case *Subgroup:
		return "subgroup " + s.Name
	case *Shuffle:
		return "shuffle " + s.Name
	case *FragmentZero:
		return "fragment " + s.Name
	case *FragmentLoad:
		return "fragment " + s.Name
	case *FragmentMulAdd:
		return "multiply-add " + s.Sum
	case *FragmentStore:
		return "store fragment " + s.Name
	}
	if withAsync {
		if label := k.asyncLabel(s); label != "" {
			return label
		}
	}
	return format.Sprintf("%T", s)
}

// ArrayName returns the name of array i, or its number where there is none.
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

// nested writes the body of the statement above it.
func (t *text) nested(body []Stmt) {
	t.depth++
	t.block(body)
	t.depth--
}

// exprs writes the shared parts of the expressions and returns their texts.
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
	case *FragmentLoad:
		side := ""
		if s.Right {
			side = ", right"
		}
		t.line("%s = %s[%s], stride %d%s%s", t.k.Label(s), t.k.ArrayName(s.Array), t.exprs(s.At)[0], s.Stride, turned(s.Turned), side)
	case *FragmentMulAdd:
		t.line("%s += %s · %s", t.k.Label(s), s.A, s.B)
	case *FragmentStore:
		t.line("%s to %s[%s], stride %d", t.k.Label(s), t.k.ArrayName(s.Array), t.exprs(s.At)[0], s.Stride)
	default:
		if withAsync && t.async(s) {
			return
		}
		t.line("%s", t.k.Label(s))
	}
}

// turned says that a fragment is loaded with rows and columns exchanged.
func turned(is bool) string {
	if is {
		return ", turned"
	}
	return ""
}

func (t *text) loop(s *For) {
	e := t.exprs(s.Start, s.End, s.Step)
	how := ""
	if s.Unroll {
		how = " unroll"
	}
	if s.Rolled {
		how = " rolled"
	}
	t.line("%s = %s below %s step %s%s", t.k.Label(s), e[0], e[1], e[2], how)
	t.nested(s.Body)
}
