package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// region is where a tensor lies.
type region struct{ buffer, offset, bytes int }

// regionBytes is the room a tensor takes: bindings begin at multiples of
// RowBytes, and none is empty.
func regionBytes(t *fusion.Tensor) int { return align(max(t.Bytes(), 1), RowBytes) }

// bindingBytes is what a kernel binds of it: whole words, and not nothing.
func bindingBytes(t *fusion.Tensor) int { return align(max(t.Bytes(), 1), WordBytes) }

// bumpAllocator hands out memory for values that are never given back: states,
// inputs, constants. Buffers are filled one after the other.
type bumpAllocator struct {
	p    *Plan
	kind BufferKind
	capacity
	own []int // buffers of this kind
}

// capacity is how many bytes a tensor may take, and how many all tensors in a buffer: as much
// as a binding holds, or what can be counted in words by an I32 where that is less, so
// that arrays that share a binding have indices of 32 bits. What alone is larger has a
// buffer of its own.
type capacity struct{ tensor, buffer int }

func capacityOf(l loop.Limits) capacity {
	return capacity{l.BindingBytes, int(min(int64(l.BindingBytes), WordBytes*int64(loop.MaxElements)))}
}

// place returns a region in the first buffer with room.
func (a *bumpAllocator) place(t *fusion.Tensor) (region, error) {
	bytes := regionBytes(t)
	if bytes > a.tensor {
		return region{}, tooLarge(t, a.tensor)
	}
	for _, b := range a.own {
		if at := a.p.Buffers[b].Bytes; at <= a.buffer-bytes { // a sum might be more than an int holds
			a.p.Buffers[b].Bytes += bytes
			return region{b, at, bindingBytes(t)}, nil
		}
	}
	a.own = append(a.own, len(a.p.Buffers))
	a.p.Buffers = append(a.p.Buffers, Buffer{Kind: a.kind, Bytes: bytes})
	return region{len(a.p.Buffers) - 1, 0, bindingBytes(t)}, nil
}

func tooLarge(t *fusion.Tensor, limit int) error {
	return ir.Errorf(ir.ErrUnsupported, "tensor %q (%s%v) takes %d bytes, and a binding of this target holds %d", t.Name, t.DType, t.Dims, t.Bytes(), limit)
}

// liveRangeAllocator hands out memory for values with a lifetime: two of them may share a
// place when their lifetimes do not overlap. Each of its buffers is an arena.
// WebGPU tracks usage by buffer: a kernel that reads one part of a buffer and
// writes another binds both for writing. So what a kernel writes is placed, if
// that costs nothing, in another arena than what it reads.
type liveRangeAllocator struct {
	p *Plan
	capacity
	blocks map[int][]block // by buffer, those that may still be in use, by offset
}

// block is a place with the lifetime of what lies there, in positions of the
// entry's launches.
type block struct{ offset, bytes, from, to int }

// minArenas is how many arenas the pool spreads over before it looks at size. With
// as many as a kernel binds, kernels that read and write one buffer are rare, and
// equal layers bind their arrays alike; models of several sizes take no more
// memory with 8 than with 2.
const minArenas = 8

// place finds room for a tensor with a lifetime. avoid are buffers that its kernel reads.
func (a *liveRangeAllocator) place(l *liveRange, avoid []int) (region, error) {
	bytes := regionBytes(l.t)
	if bytes > a.tensor {
		return region{}, tooLarge(l.t, a.tensor)
	}
	var free, used []int
	for b := range a.blocks {
		if slices.Contains(avoid, b) {
			used = append(used, b)
		} else {
			free = append(free, b)
		}
	}
	slices.Sort(free)
	slices.Sort(used)
	if len(free) == 0 && len(used) < minArenas {
		free = append(free, a.grow())
	}
	for _, b := range append(free, used...) {
		if at := a.gap(b, bytes, l.from, l.to); at == 0 || at <= a.buffer-bytes {
			return a.insert(l, b, block{at, bytes, l.from, l.to}), nil
		}
	}
	return a.insert(l, a.grow(), block{0, bytes, l.from, l.to}), nil
}

func (a *liveRangeAllocator) grow() int {
	a.p.Buffers = append(a.p.Buffers, Buffer{Kind: TempBuffer})
	b := len(a.p.Buffers) - 1
	a.blocks[b] = nil
	return b
}

// insert puts a block among those of a buffer, without those that no tensor to come meets:
// however many there are, few are searched.
func (a *liveRangeAllocator) insert(l *liveRange, b int, x block) region {
	a.blocks[b] = slices.DeleteFunc(a.blocks[b], func(y block) bool { return y.to < l.next })
	i, _ := slices.BinarySearchFunc(a.blocks[b], x.offset, func(y block, offset int) int { return y.offset - offset })
	a.blocks[b] = slices.Insert(a.blocks[b], i, x)
	a.p.Buffers[b].Bytes = max(a.p.Buffers[b].Bytes, x.offset+x.bytes)
	return region{b, x.offset, bindingBytes(l.t)}
}

// gap returns the lowest offset at which nothing with an overlapping lifetime
// lies.
func (a *liveRangeAllocator) gap(buffer, bytes, from, to int) int {
	at := 0
	for _, x := range a.blocks[buffer] {
		if x.to < from || to < x.from {
			continue
		}
		if at <= x.offset-bytes {
			break
		}
		at = max(at, x.offset+x.bytes)
	}
	return at
}

// reset forgets all blocks but keeps the buffers: entries share them.
func (a *liveRangeAllocator) reset() {
	for b := range a.blocks {
		a.blocks[b] = nil
	}
}
