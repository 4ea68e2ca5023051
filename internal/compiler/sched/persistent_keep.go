package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// keptRows are rows of a tensor in workgroup memory.
type keptRows struct {
	slot, length int
	dtype        ir.DType
	// from and to are where a carry lies before the first and after the last step, next
	// is where the body leaves its next value: nil for what is no carry, or in place.
	from, to *fusion.Tensor
	next     *keptRows
}

// keepCarries gives workgroup memory to the carries.
func (p *persistent) keepCarries() bool {
	for _, swap := range p.l.Swaps {
		begin, other := swap[0].Root(), swap[1].Root()
		old, next := p.keep(begin), p.keep(other)
		if old == nil || next == nil || swap[0].Sliced() || swap[1].Sliced() {
			return false
		}
		old.from, old.to, old.next = begin, begin, next
		if p.l.Count%2 == 1 {
			old.to = other
		}
	}
	for _, t := range p.l.Writes() { // those in place
		root := t.Root()
		if p.written[root.ID] == nil || p.kept[root.ID] != nil || p.stacked[root.ID] {
			continue
		}
		k := p.keep(root)
		if k == nil || t.Sliced() {
			return false
		}
		k.from, k.to = root, root
	}
	return true
}

// keepRest gives workgroup memory to what a step leaves for its own groups.
func (p *persistent) keepRest() bool {
	return p.all(func(x *rowPart) bool {
		for _, s := range x.code.Rows {
			if p.kept[s.Tensor.ID] != nil || p.stacked[s.Tensor.ID] {
				continue
			}
			if !slices.Contains(p.l.Body.Tensors, s.Tensor) || p.keep(s.Tensor) == nil {
				return false
			}
		}
		return true
	})
}

// keep gives workgroup memory to the rows of a tensor, or returns nil where that
// cannot be.
func (p *persistent) keep(t *fusion.Tensor) *keptRows {
	if t.Len() == 0 || t.Len()%p.rows != 0 || !isWordType(t.DType) || p.kept[t.ID] != nil {
		return nil
	}
	k := &keptRows{length: t.Len() / p.rows, dtype: t.DType}
	p.bytes += k.length * t.DType.Size()
	p.kept[t.ID] = k
	p.order = append(p.order, k)
	return k
}

func isWordType(d ir.DType) bool { return d == ir.F32 || d == ir.I32 || d == ir.U32 }

func mentions(e scalar.Expr, name string) bool {
	found := false
	scalar.Walk(e, func(n scalar.Expr) { found = found || n.Op == scalar.OpVar && n.Name == name })
	return found
}

// each writes what f does for the elements of some kept rows: their place there and in
// the whole tensor.
func (p *persistent) each(which func(k *keptRows) bool, f func(k *keptRows, i, at scalar.Expr)) {
	threads := p.workgroup[0]
	for _, k := range p.order {
		if which(k) {
			p.loop("i", loop.LocalID(0, threads), loop.Int(k.length), threads, k.length-1, func(i scalar.Expr) {
				f(k, i, scalar.Add(scalar.Mul(p.row, loop.Int(k.length)), i))
			})
		}
	}
}
