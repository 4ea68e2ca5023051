package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// memoryPhase places the tensors of an entry.
type memoryPhase struct{ *entryCompiler }

// placeAll assigns a region to every tensor that a launch or the host accesses.
func (c memoryPhase) placeAll() error {
	if err := c.placeFixed(c.partition); err != nil {
		return err
	}
	return c.placeTemps(c.partition.Outputs)
}

// placeFixed places the ports and constants of a partition and of the partitions
// nested in it.
func (c memoryPhase) placeFixed(p *fusion.Partition) error {
	for _, t := range p.Tensors {
		if err := c.placeFixedTensor(t); err != nil {
			return err
		}
	}
	for _, item := range p.Items {
		if x, ok := item.(fusion.Control); ok {
			for _, inner := range x.Partitions() {
				if err := c.placeFixed(inner); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// placeFixedTensor places a port or constant. Entries share the regions of persistent
// ports.
func (c memoryPhase) placeFixedTensor(t *fusion.Tensor) (err error) {
	var r region
	switch {
	case t.Constant != nil:
		if r, err = c.constants.place(t); err == nil {
			c.plan.Constants = append(c.plan.Constants, Constant{r.buffer, r.offset, deviceBytes(t)})
		}
	case t.Port == nil:
		return nil
	case t.Port.Kind == ir.InputPort:
		r, err = c.inputs.place(t)
	default:
		known, ok := c.persistent[t.Name]
		if r = known; !ok {
			r, err = c.states.place(t)
			c.persistent[t.Name] = r
		}
		r.bytes = bindingBytes(t) // a place of the target's layout has none
	}
	c.regions[t] = r
	return err
}

// deviceBytes returns a constant in the device's layout, padded to words.
func deviceBytes(t *fusion.Tensor) []byte {
	data := loop.DeviceBytes(t.DType, t.Constant)
	return append(slices.Clone(data), make([]byte, align(len(data), WordBytes)-len(data))...)
}

// liveRange is the range of launches over which a tensor is live.
type liveRange struct {
	t        *fusion.Tensor
	from, to int
	avoid    []*fusion.Tensor // the arguments of the kernel that defines it
	next     int              // the first launch at which it or a tensor placed later is live
}

// placeTemps places intermediate values, in order of first use. The given outputs
// live to the end. In a loop a value that is defined outside of it is live from the
// first to the last iteration.
func (c memoryPhase) placeTemps(outputs []*fusion.Tensor) error {
	c.temps.reset()
	lives := c.liveRanges(outputs)
	if withArena && c.target.OneArena && len(lives) <= maxPacked {
		return packTemps(c.entryCompiler, lives)
	}
	for _, l := range lives {
		var avoid []int
		for _, t := range l.avoid {
			if r, ok := c.regions[t]; ok {
				avoid = append(avoid, r.buffer)
			}
		}
		r, err := c.temps.place(l, avoid)
		if err != nil {
			return err
		}
		c.regions[l.t] = r
	}
	return nil
}

// maxPacked bounds the tensors that are packed in one arena, since that takes quadratic time.
const maxPacked = 4096

func (c memoryPhase) liveRanges(outputs []*fusion.Tensor) []*liveRange {
	found := map[*fusion.Tensor]*liveRange{}
	var order []*liveRange
	for i, l := range c.launches {
		for _, t := range l.Args {
			if t == nil || t.Constant != nil || t.Port != nil {
				continue
			}
			from, to := c.useRange(i, t)
			to = max(to, c.heldUntil(i))
			x := found[t]
			if x == nil {
				x = &liveRange{t: t, from: from, to: to, avoid: l.Args}
				found[t] = x
				order = append(order, x)
			}
			x.from, x.to = min(x.from, from), max(x.to, to)
		}
	}
	for _, t := range outputs {
		if t == nil || t.Port != nil || t.Constant != nil {
			continue
		}
		if found[t] == nil { // an empty tensor, which no launch computes
			found[t] = &liveRange{t: t}
			order = append(order, found[t])
		}
		found[t].to = len(c.launches)
	}
	next := len(c.launches)
	for _, x := range slices.Backward(order) {
		next = min(next, x.from)
		x.next = next
	}
	return order
}

// heldUntil returns the last launch during which the memory of launch i is in use. The memory of a
// collective is held until the next collective, or to the end, so that launches in between do not
// wait for it: it starts at its place in the list and may end at any time before its result is
// read.
func (c memoryPhase) heldUntil(i int) int {
	if !isCollective(c.launches[i]) || len(c.launches[i].loops) > 0 {
		return i
	}
	for next := i + 1; next < len(c.launches); next++ {
		if isCollective(c.launches[next]) {
			return next
		}
	}
	return len(c.launches) - 1
}

func isCollective(l placedLaunch) bool {
	_, ok := l.Routine.(routine.Collective)
	return ok
}

// useRange extends the use of a tensor by launch i over the enclosing loops that the
// tensor is defined outside of.
func (c memoryPhase) useRange(i int, t *fusion.Tensor) (from, to int) {
	from, to = i, i
	for depth, r := range c.launches[i].loops {
		if slices.ContainsFunc(r.partitions, func(p *fusion.Partition) bool { return madeInside(p, t) }) {
			continue
		}
		for from > 0 && c.launches[from-1].isInside(depth, r) {
			from--
		}
		for to+1 < len(c.launches) && c.launches[to+1].isInside(depth, r) {
			to++
		}
	}
	return from, to
}

// isInside reports whether the loop at a depth around a launch is r.
func (l *placedLaunch) isInside(depth int, r *enclosingLoop) bool {
	return depth < len(l.loops) && l.loops[depth] == r
}

// madeInside reports whether a tensor belongs to a partition or to one nested in it.
func madeInside(p *fusion.Partition, t *fusion.Tensor) bool {
	if slices.Contains(p.Tensors, t) {
		return true
	}
	for _, item := range p.Items {
		if x, ok := item.(fusion.Control); ok {
			for _, inner := range x.Partitions() {
				if madeInside(inner, t) {
					return true
				}
			}
		}
	}
	return false
}

// region is the memory of a tensor.
type region struct{ buffer, offset, bytes int }

// regionBytes returns the size reserved for a tensor: bindings begin at multiples of
// RowBytes, and none is empty.
func regionBytes(t *fusion.Tensor) int { return align(max(t.Bytes(), 1), RowBytes) }

// bindingBytes returns the size of the binding of a tensor: whole words, at least one.
func bindingBytes(t *fusion.Tensor) int { return align(max(t.Bytes(), 1), WordBytes) }

// bumpAllocator allocates memory that is never freed: states, inputs, constants. It
// fills the first buffer with room.
type bumpAllocator struct {
	p    *Plan
	kind BufferKind
	capacity
	own []int // buffers of this kind
}

// capacity is the maximum size of a tensor and of a buffer, in bytes. A tensor is limited
// by the size of a binding; a shared buffer also by the words that an I32 counts, so that
// arrays that share a binding have indices of 32 bits. A larger tensor has a buffer of its
// own.
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
		if at := a.p.Buffers[b].Bytes; at <= a.buffer-bytes { // a sum could overflow
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

// liveRangeAllocator allocates intermediate values: two of them may share memory when
// their live ranges do not overlap. Each of its buffers is an arena. WebGPU tracks usage
// by buffer: a kernel that reads one part of a buffer and writes another binds both for
// writing. So the results of a kernel are placed, if that costs nothing, in another arena
// than its operands.
type liveRangeAllocator struct {
	p *Plan
	capacity
	blocks map[int][]block // by buffer, those that may still be in use, by offset
}

// block is a part of an arena that is in use from launch from to launch to.
type block struct{ offset, bytes, from, to int }

// minArenas is the number of arenas that liveRangeAllocator uses before it minimises
// size. With one for each binding of a kernel, kernels that read and write one buffer
// are rare, and equal layers bind their arrays alike. Models of several sizes take no more
// memory with 8 arenas than with 2.
const minArenas = 8

// place allocates a tensor for its live range, if possible not in the buffers to avoid.
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
		if at := gap(a.blocks[b], bytes, l.from, l.to); at == 0 || at <= a.buffer-bytes {
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

// insert adds a block to a buffer and drops the blocks that are dead for all tensors
// still to be placed, which keeps the list short.
func (a *liveRangeAllocator) insert(l *liveRange, b int, x block) region {
	a.blocks[b] = slices.DeleteFunc(a.blocks[b], func(y block) bool { return y.to < l.next })
	i, _ := slices.BinarySearchFunc(a.blocks[b], x.offset, func(y block, offset int) int { return y.offset - offset })
	a.blocks[b] = slices.Insert(a.blocks[b], i, x)
	a.p.Buffers[b].Bytes = max(a.p.Buffers[b].Bytes, x.offset+x.bytes)
	return region{b, x.offset, bindingBytes(l.t)}
}

// gap returns the lowest offset between blocks, sorted by offset, with bytes free during the live
// range [from, to].
func gap(blocks []block, bytes, from, to int) int {
	at := 0
	for _, x := range blocks {
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
