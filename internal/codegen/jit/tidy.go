package jit

import "github.com/rlx-go/rlx/ir/scalar"

// optimize returns the kernel without the steps that nothing needs, after it has made
// one step of two shifts that turn bits around.
func (k *Kernel) optimize() *Kernel {
	t := *k
	makers := map[Value]*step{}
	for _, list := range []*[]step{&t.steps, &t.after} {
		*list = append([]step(nil), *list...)
		for i := range *list {
			s := &(*list)[i]
			s.matchRotate(makers)
			if s.dst != noValue {
				makers[s.dst] = s
			}
		}
	}
	needed := map[Value]bool{}
	for _, r := range t.accumulators {
		needed[r.next] = true
	}
	t.after = eliminateDead(t.after, needed)
	t.steps = eliminateDead(t.steps, needed)
	return &t
}

// matchRotate makes x << n | x >> (32-n) one step, for unsigned x.
func (s *step) matchRotate(makers map[Value]*step) {
	if s.kind != apply || s.op != scalar.OpOr && s.op != scalar.OpAdd && s.op != scalar.OpXor || !s.typ.IsUnsigned() || s.args[0].constant || s.args[1].constant {
		return
	}
	a, b := makers[s.args[0].value], makers[s.args[1].value]
	if a == nil || b == nil {
		return
	}
	if a.op == scalar.OpShr {
		a, b = b, a
	}
	if a.kind != apply || b.kind != apply || a.op != scalar.OpShl || b.op != scalar.OpShr || a.args[0] != b.args[0] || a.args[0].constant {
		return
	}
	if up, down := a.args[1], b.args[1]; up.constant && down.constant && up.bits > 0 && up.bits+down.bits == 32 {
		*s = step{kind: rotateBits, typ: s.typ, from: s.from, args: a.args[:1], lanes: int(up.bits), dst: s.dst}
	}
}

// eliminateDead returns the steps whose results are needed, or that store, and notes what
// they need.
func eliminateDead(steps []step, needed map[Value]bool) []step {
	kept := make([]step, len(steps))
	at := len(kept)
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if s.kind != store && s.kind != storeFirst && !needed[s.dst] {
			continue
		}
		for _, a := range s.args {
			if !a.constant {
				needed[a.value] = true
			}
		}
		at--
		kept[at] = s
	}
	return kept[at:]
}
