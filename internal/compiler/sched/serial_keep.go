package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Bounds of keeping the elements of a row for what follows its reductions: how
// many operations one must have to be dearer than a store and a load, and how many there
// may be, 64 KiB of f32, which the second cache holds.
const (
	worthKeeping = 8
	mostKept     = 1 << 14
)

// keptElement is where an element that a reduction computes is kept for the points of
// the row.
type keptElement struct {
	slot int
	at   scalar.Expr // in the inner coordinates
}

// keepElements has the reductions of a row keep the elements that its points need
// again, as a softmax does its exponentials.
func (s *serial) keepElements(code *fusion.Code) {
	s.kept = map[string]keptElement{}
	n := sizeOf(code.Inner)
	if n > mostKept || len(code.Points) == 0 {
		return
	}
	at := scalar.Expr(loop.Int(0))
	for i, v := range code.Inner {
		at = scalar.Add(scalar.Mul(at, loop.Int(sizeOf(code.Inner[i:i+1]))), v)
	}
	for _, stage := range code.Stages {
		for _, r := range stage.Reductions {
			for _, e := range r.Elements {
				s.keepElement(code, e, at)
			}
		}
	}
}

func (s *serial) keepElement(code *fusion.Code, e, at scalar.Expr) {
	key := scalar.Key(e)
	if scalar.Count(expanded(e)) < worthKeeping {
		return
	}
	for i := range code.Points {
		code.Points[i].Value = scalar.Substitute(code.Points[i].Value, func(n scalar.Expr) (scalar.Expr, bool) {
			if n.Op != e.Op || n.Type != e.Type || scalar.Key(n) != key {
				return nil, false
			}
			k, known := s.kept[key]
			if !known {
				k = keptElement{s.shared(s.name("kept"), e.Type, 1, sizeOf(code.Inner)), at}
				s.kept[key] = k
			}
			return scalar.LoadAt(k.slot, e.Type, at), true
		})
	}
}

// expanded is e as kernels compute it.
func expanded(e scalar.Expr) scalar.Expr { return scalar.Expand(e, scalar.Portable) }
