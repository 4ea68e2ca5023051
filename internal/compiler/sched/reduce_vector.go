package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// byVectors reports whether vector loads are worth a try: rows longer than registers, of whole
// vectors, several per thread. CUDA only: WGSL has no vectors of 16-bit elements, which would
// gain most.
func (s rowLayout) byVectors(g *fusion.Group, dialect dtype.Dialect) bool {
	n := fusion.Product(g.Inner)
	return dialect == dtype.CUDA && s.chunks == 0 && !s.rowsFirst && n%width == 0 && n >= longRow*width*s.lanes &&
		width*g.Weight() <= maxUnrolledWeight
}

// vectors vectorises the loops of a kernel, or reports false where an access is not contiguous:
// its elements would be loaded one by one, in four times as many sectors per warp.
func (e *emitter) vectors(body []loop.Stmt) (out []loop.Stmt, ok bool) {
	m := newVectorizer(e)
	m.seeBlock(body)
	m.decide()
	for _, s := range body {
		if f, is := s.(*loop.For); is && !m.allWide(f) {
			return nil, false
		}
	}
	return m.block(body), true
}
