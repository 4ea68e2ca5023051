package plan

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// maxFusedText bounds the texts of parts that differ and share a kernel, in bytes.
const maxFusedText = 16 << 10

// pack makes launches of parts side by side as their tensors lie. Where many in the
// entry do the same, those in the same buffers have one, which finds them in a table.
// The others share one by a few, and so do parts of which one kernel is enough.
func (c *entryCompiler) pack(l placedLaunch) error {
	classes, rest := c.classes(l)
	if len(classes) > 1 && len(rest) == 0 && l.Parts[0].IsMap() && fusablePrefix(l.Parts) == len(l.Parts) {
		classes, rest = nil, l.Parts
	}
	for _, k := range classes {
		if err := c.addSegments(k, l); err != nil {
			return err
		}
	}
	for len(rest) > 0 {
		n := fusablePrefix(rest)
		c.addFused(rest[:n], l)
		rest = rest[n:]
	}
	return nil
}

// classes returns what of the parts of a launch finds itself in tables, and the
// others.
func (c *entryCompiler) classes(l placedLaunch) (classes []*segmentClass, rest []sched.Part) {
	byKey := map[string]*segmentClass{}
	common := commonArgs(l.Parts)
	k := &segmentClass{}
	for i := range l.Parts {
		part := &l.Parts[i]
		ok := c.classify(k, part, common[part.Key], l.loops)
		known := byKey[string(k.key)]
		switch {
		case !ok || part.IsMap() && c.parts[part.Key] <= sched.MaxBeside:
			rest = append(rest, *part)
		case known != nil:
			known.parts = append(known.parts, *part)
		default:
			k.parts = append(k.parts, *part)
			byKey[string(k.key)] = k
			classes = append(classes, k)
			k = &segmentClass{}
		}
	}
	return classes, rest
}

// fusablePrefix is how many of some parts share a kernel though they differ.
func fusablePrefix(parts []sched.Part) int {
	if !parts[0].IsMap() {
		return 1
	}
	text := 0
	for i, part := range parts {
		if text += len(part.Key); i == sched.MaxBeside || i > 0 && text > maxFusedText {
			return i
		}
	}
	return len(parts)
}

// add adds a launch in the place of another one.
func (c *entryCompiler) add(launch sched.Launch, at placedLaunch) {
	at.Launch = launch
	c.launches = append(c.launches, at)
}

// addFused adds a launch of parts that differ. What cannot be bound is cut in two
// between parts, again and again: nothing goes from one to the other.
func (c *entryCompiler) addFused(parts []sched.Part, at placedLaunch) {
	l := c.cache.Beside(parts, c.target.Caps)
	if len(parts) == 1 || c.bindable(l.Args, at.loops) {
		c.add(l, at)
		return
	}
	c.addFused(parts[:len(parts)/2], at)
	c.addFused(parts[len(parts)/2:], at)
}

// commonArgs tells for each key which of their Args all parts have in common.
func commonArgs(parts []sched.Part) map[string][]bool {
	first, out := map[string][]*fusion.Tensor{}, map[string][]bool{}
	for _, part := range parts {
		if first[part.Key] == nil {
			first[part.Key] = part.Args
			out[part.Key] = slices.Repeat([]bool{true}, len(part.Args))
		}
		for i, t := range part.Args {
			out[part.Key][i] = out[part.Key][i] && t == first[part.Key][i]
		}
	}
	return out
}

// segmentClass are parts that do the same in the same arenas.
type segmentClass struct {
	key    []byte // the same for all of them
	parts  []sched.Part
	arenas []arena
	number []int // for each of a part's Args, which of the arenas
}

// arena is what a binding of a class reaches: what its parts need of a buffer, or
// one tensor there that all of them read.
type arena struct {
	buffer int
	tensor *fusion.Tensor
}

// classify makes k the class of a part, without any parts, common telling which of its
// Args are those of all such parts. It is false where the part cannot be bound by arenas:
// its tensors are not of words, lie in too many buffers, or change places.
func (c *entryCompiler) classify(k *segmentClass, part *sched.Part, common []bool, rounds []*enclosingLoop) bool {
	k.key, k.arenas, k.number = append(k.key[:0], part.Key...), k.arenas[:0], k.number[:0]
	written := map[int]bool{}
	for i, t := range part.Args {
		written[c.regions[t].buffer] = written[c.regions[t].buffer] || t != nil && part.Written[i]
	}
	bindings := 1 // the table
	for i, t := range part.Args {
		if t == nil {
			bindings++
			k.number = append(k.number, 0)
			continue
		}
		a := arena{buffer: c.regions[t].buffer}
		if loop.DeviceSize(t.DType) != WordBytes || c.plan.Buffers[a.buffer].Bytes/WordBytes > loop.MaxElements {
			return false
		}
		k.key = strconv.AppendInt(k.key, int64(a.buffer), 10)
		if common[i] && !written[a.buffer] {
			a.tensor = t
			k.key = append(k.key, t.Name...)
		}
		k.key = append(k.key, ' ')
		if !slices.Contains(k.arenas, a) {
			k.arenas = append(k.arenas, a)
		}
		k.number = append(k.number, slices.Index(k.arenas, a))
	}
	swaps := slices.ContainsFunc(rounds, func(r *enclosingLoop) bool { return len(r.swaps) > 0 })
	return !swaps && bindings+len(k.arenas) <= c.target.Limits.StorageBuffers
}

// addSegments adds the launch of a class, or several where it has more workgroups
// than a grid is long.
func (c *entryCompiler) addSegments(k *segmentClass, at placedLaunch) error {
	for len(k.parts) > 0 {
		n, groups := 0, 0
		for n < len(k.parts) && (n == 0 || groups+k.parts[n].Groups() <= c.target.Groups) {
			groups += k.parts[n].Groups()
			n++
		}
		launch, err := c.segments(k, k.parts[:n])
		if err != nil {
			return err
		}
		c.add(launch, at)
		k.parts = k.parts[n:]
	}
	return nil
}

// segments returns the launch of some parts of a class.
func (c *entryCompiler) segments(k *segmentClass, parts []sched.Part) (sched.Launch, error) {
	windows := c.windows(k, parts)
	first := make([][]int, len(parts))
	for i, part := range parts {
		for j, t := range part.Args {
			at := 0
			if t != nil {
				at = (c.regions[t].offset - windows[k.number[j]].offset) / WordBytes
			}
			first[i] = append(first[i], at)
		}
	}
	words, groups := sched.Table(parts, first)
	s, err := c.cache.Segments(&parts[0], k.number, groups, c.target.Caps)
	if err != nil {
		return sched.Launch{}, ir.Errorf(ir.ErrUnsupported, "%v", err)
	}
	l := sched.Launch{Kernel: s.Kernel, Parts: parts}
	for _, b := range s.Bindings {
		var t *fusion.Tensor
		switch b {
		case sched.StatusBinding:
		case sched.TableBinding:
			t = tableTensor(words)
			if err := c.placeFixedTensor(t); err != nil {
				return l, err
			}
		default:
			t = &fusion.Tensor{Name: "arena", DType: ir.U32}
			c.regions[t] = windows[b]
		}
		l.Args = append(l.Args, t)
	}
	return l, nil
}

// windows returns for each arena of a class what the tensors of some parts take of
// its buffer.
func (c *entryCompiler) windows(k *segmentClass, parts []sched.Part) []region {
	out := make([]region, len(k.arenas))
	for _, part := range parts {
		for j, t := range part.Args {
			if t == nil {
				continue
			}
			r, w := c.regions[t], &out[k.number[j]]
			if w.bytes == 0 {
				*w = r
				continue
			}
			from, to := min(w.offset, r.offset), max(w.offset+w.bytes, r.offset+r.bytes)
			*w = region{r.buffer, from, to - from}
		}
	}
	return out
}

// tableTensor returns a table as a constant.
func tableTensor(words []int32) *fusion.Tensor {
	t := &fusion.Tensor{Name: "segments", DType: ir.I32, Dims: []int{len(words)}}
	for _, w := range words {
		t.Constant = binary.LittleEndian.AppendUint32(t.Constant, uint32(w))
	}
	return t
}
