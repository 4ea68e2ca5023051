package cudacpp

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/ir/loop"
)

// StaticShared is the maximum static shared memory of a kernel. A kernel that needs
// more has only dynamic shared memory, whose size the driver must be given first
// (CUDA C++ Programming Guide, "Shared Memory" of compute capability 7.x).
const StaticShared = 48 << 10

// DynamicShared returns the dynamic shared memory of a launch, in bytes, for a kernel
// whose arrays take the given bytes.
func DynamicShared(bytes int) int {
	if bytes > StaticShared {
		return bytes
	}
	return 0
}

// copyAlign is the alignment of what a copy of 16 bytes writes (PTX ISA, "cp.async").
const copyAlign = 16

// shared declares the shared arrays. In dynamic shared memory, arrays of MMA tiles come
// first because of their alignment, and then those that copies write.
func (p *printer) shared() {
	copied := copiedBy16(p.k)
	align := func(i int) int {
		switch {
		case p.tiles[i]:
			return loop.TileAlign
		case copied[i]:
			return copyAlign
		}
		return 0 // that of its type
	}
	var list []int
	for i, a := range p.k.Arrays {
		if a.Space == loop.Shared {
			list = append(list, i)
		}
	}
	if DynamicShared(p.k.SharedBytes()) == 0 {
		for i, m := range p.k.Mbarriers {
			p.line("  __shared__ unsigned long long %s[%d];", p.src.Mbarriers[i], m.Len)
		}
		for _, i := range list {
			attribute := ""
			if by := align(i); by > 0 {
				attribute = fmt.Sprintf("__align__(%d) ", by)
			}
			p.line("  __shared__ %s%s %s[%d];", attribute, memoryType(p.k.Arrays[i]), p.src.Names[i], p.k.Arrays[i].Len)
		}
		return
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(align(b), align(a)) })
	p.line("  extern __shared__ __align__(1024) unsigned char dynamic_shared[];")
	at, end := 0, 0
	for _, i := range list {
		a, from := p.k.Arrays[i], at
		if a.Overlay {
			from = 0
		}
		t := memoryType(a)
		p.line("  %s *const %s = (%s *)(dynamic_shared + %d);", t, p.src.Names[i], t, from)
		if end = max(end, from+a.Bytes()); !a.Overlay {
			at = end
		}
	}
	at = (end + 7) / 8 * 8
	for i, m := range p.k.Mbarriers {
		p.line("  unsigned long long *const %s = (unsigned long long *)(dynamic_shared + %d);", p.src.Mbarriers[i], at)
		at += 8 * m.Len
	}
}

// tilesOf returns the arrays that MMA reads.
func tilesOf(k *loop.Kernel) map[int]bool {
	out := map[int]bool{}
	loop.Walk(k.Body, func(s loop.Stmt) {
		if s, ok := s.(*loop.Mma); ok {
			for _, t := range s.Terms {
				if t.LeftRegisters == nil {
					out[t.A.Array] = true
				}
				out[t.B.Array] = true
			}
		}
	})
	return out
}

// copiedBy16 returns the arrays that asynchronous copies of 16 bytes write.
func copiedBy16(k *loop.Kernel) map[int]bool {
	out := map[int]bool{}
	loop.Walk(k.Body, func(s loop.Stmt) {
		if c, ok := s.(*loop.CopyAsync); ok && c.Count*loop.DeviceSize(k.Arrays[c.From].DType) == copyAlign {
			out[c.To] = true
		}
	})
	return out
}
