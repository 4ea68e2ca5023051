package loop

import (
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/scalar"
)

// asyncLabel is [Kernel.Label] for asynchronous work, "" for other statements.
func (k *Kernel) asyncLabel(s Stmt) string {
	switch s := s.(type) {
	case *CopyAsync:
		return "copy to " + k.ArrayName(s.To)
	case *CopyCommit:
		return "commit copies"
	case *CopyWait:
		return "wait for copies"
	case *ProxyFence:
		return "proxy fence"
	case *Mma:
		return "multiply-add " + s.Atom.String()
	case *MmaWait:
		return "wait for multiply-adds"
	case *Pack:
		return "pack " + s.Name
	case *CopyBox:
		return "copy box to " + k.ArrayName(s.To)
	case *Arrive:
		return "arrive at " + k.mbarrierName(s.Mbarrier)
	case *Await:
		return "await " + k.mbarrierName(s.Mbarrier)
	case *Roles:
		return "roles"
	}
	return ""
}

// async writes a statement that has more to tell than its label, and reports whether it has.
func (t *text) async(s Stmt) bool {
	switch s := s.(type) {
	case *Pack:
		e := t.exprs(s.Low, s.High)
		t.line("%s = %s of %s, %s", t.k.Label(s), s.Type, e[0], e[1])
	case *CopyAsync:
		t.copyAsync(s)
	case *CopyBox:
		t.copyBox(s)
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

// term writes a multiply-add by the first and last of its registers.
func (t *text) term(m *MmaTerm) {
	left := span(m.Left)
	if m.Left == nil {
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

// objects writes what the kernel's statements name by number.
func (t *text) objects() {
	for i, b := range t.k.Boxes {
		t.line("box %d: %s from %d, dims %d strides %d, copied by %d", i, t.k.ArrayName(b.Array), b.First, b.Dims, b.Strides, b.Size)
	}
	for i, m := range t.k.Mbarriers {
		t.line("mbarrier %d: %s[%d] of %d warps", i, m.Name, m.Len, m.Warps)
	}
}

// mbarrierName returns the name of an mbarrier, or its number where there is none.
func (k *Kernel) mbarrierName(i int) string {
	if i < 0 || i >= len(k.Mbarriers) {
		return format.Sprintf("mbarrier %d", i)
	}
	return k.Mbarriers[i].Name
}

func (t *text) copyBox(s *CopyBox) {
	e := t.exprs(s.exprs()...)
	n := len(s.From)
	t.line("%s[%s] = box %d from %s, at %s[%s]", t.k.Label(s), e[n], s.Box, e[:n], t.k.mbarrierName(s.Mbarrier), e[n+1])
}
