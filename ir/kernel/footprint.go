package kernel

import (
	"github.com/rlx-go/rlx/ir"
)

// tooManyTensors reports whether a group touches more tensors than a kernel can
// bind one by one, and cannot share the bindings of arenas instead: more bytes
// than one binding holds, or elements that are no 32-bit words.
func (p *Program) tooManyTensors(g *Group) bool {
	f := footprint{seen: map[any]bool{}, words: true}
	for _, part := range g.parts() {
		for _, m := range part.Members {
			for _, a := range p.spaceOf(m.Node).reads {
				f.value(a.v)
			}
			for _, v := range m.Node.Results() {
				f.value(v)
			}
		}
		for _, c := range part.Copies {
			f.add(c.To, c.To.DType, c.To.Len())
			if c.From != nil {
				f.add(c.From, c.From.DType, c.From.Len())
			}
		}
	}
	return f.tensors > p.options.Tensors && (f.bytes > p.options.Bytes || !f.words)
}

// footprint is what a group touches, a value or tensor counted once.
type footprint struct {
	seen           map[any]bool
	tensors, bytes int
	words          bool // all elements are 32-bit words
}

func (f *footprint) value(v ir.Value) {
	size, _ := v.Shape().Size().Const()
	f.add(v, v.DType(), size)
}

func (f *footprint) add(what any, d ir.DType, size int) {
	if f.seen[what] {
		return
	}
	f.seen[what] = true
	f.tensors++
	f.bytes += size * DeviceSize(d)
	f.words = f.words && DeviceSize(d) == 4
}
