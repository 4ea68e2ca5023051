package plan

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/horizontal"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// maxFusedText bounds the total text of different parts in one fused kernel, in bytes.
const maxFusedText = 16 << 10

// fuser is the second phase of scheduling an entry: it replaces launches of parts, whose tensors
// are placed by now, by launches of kernels.
type fuser struct {
	*entryCompiler
	count map[string]int // the number of parts of the entry by key
	out   []placedLaunch
}

// fuseParts runs the second phase of scheduling, if any launch has parts.
func (c *entryCompiler) fuseParts() error {
	f := &fuser{entryCompiler: c, count: map[string]int{}}
	for i := range c.launches {
		for j := range c.launches[i].Parts {
			f.count[c.launches[i].Parts[j].Key]++
		}
	}
	if len(f.count) == 0 {
		return nil
	}
	f.out = make([]placedLaunch, 0, len(c.launches))
	for _, l := range c.launches {
		if len(l.Parts) == 0 {
			f.out = append(f.out, l)
		} else if err := f.pack(l); err != nil {
			return err
		}
	}
	c.launches = f.out
	return nil
}

// pack fuses the independent parts of a bundle horizontally, now that their tensors are
// placed. Parts that compute the same in the same buffers become one segmented launch,
// which reads the offsets of its segments from a table. The others are fused a few at a
// time, and so are all parts where one fused kernel is enough.
func (f *fuser) pack(l placedLaunch) error {
	classes, rest := f.classes(l)
	if len(classes) > 1 && len(rest) == 0 && l.Parts[0].IsMap() && fusablePrefix(l.Parts) == len(l.Parts) {
		classes, rest = nil, l.Parts
	}
	for _, k := range classes {
		if err := f.addSegments(k, l); err != nil {
			return err
		}
	}
	for len(rest) > 0 {
		n := fusablePrefix(rest)
		f.addFused(rest[:n], l)
		rest = rest[n:]
	}
	return nil
}

// classes groups the parts of a launch that can be segments of one launch, and returns
// the rest.
func (f *fuser) classes(l placedLaunch) (classes []*segmentClass, rest []emit.Part) {
	byKey := map[string]*segmentClass{}
	common := commonArgs(l.Parts)
	k := &segmentClass{}
	for i := range l.Parts {
		part := &l.Parts[i]
		ok := f.classify(k, part, common[part.Key], l.loops)
		known := byKey[string(k.key)]
		switch {
		case !ok || part.IsMap() && f.count[part.Key] <= horizontal.MaxFused:
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

// fusablePrefix returns how many of the first parts share a fused kernel.
func fusablePrefix(parts []emit.Part) int {
	if !parts[0].IsMap() {
		return 1
	}
	text := 0
	for i, part := range parts {
		if text += len(part.Key); i == horizontal.MaxFused || i > 0 && text > maxFusedText {
			return i
		}
	}
	return len(parts)
}

// add adds a launch with the loops and guard of at.
func (f *fuser) add(launch emit.Launch, at placedLaunch) {
	at.Launch = launch
	f.out = append(f.out, at)
}

// addFused adds a fused launch of different parts. It splits the parts in halves,
// recursively, until their tensors fit the bindings; the parts are independent.
func (f *fuser) addFused(parts []emit.Part, at placedLaunch) {
	l := f.fuser.FuseMaps(parts)
	if len(parts) == 1 || f.bindable(l.Args, at.loops) {
		f.add(l, at)
		return
	}
	f.addFused(parts[:len(parts)/2], at)
	f.addFused(parts[len(parts)/2:], at)
}

// commonArgs returns, by key, which Args are the same tensor for all parts of that key.
func commonArgs(parts []emit.Part) map[string][]bool {
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

// segmentClass is a set of parts that compute the same in the same arenas.
type segmentClass struct {
	key    []byte // equal for all parts
	parts  []emit.Part
	arenas []arena
	number []int // the arena of each of a part's Args
}

// arena is a binding of a class: the part of a buffer that its parts access, or
// one tensor there that all of them read.
type arena struct {
	buffer int
	tensor *fusion.Tensor
}

// classify sets the key and arenas of k to those of a part. common marks the Args that
// all parts of its key share. It returns false where the part cannot be a segment: its
// elements do not have 32 bits, it needs too many buffers, or a loop swaps tensors.
func (f *fuser) classify(k *segmentClass, part *emit.Part, common []bool, loops []*enclosingLoop) bool {
	k.key, k.arenas, k.number = append(k.key[:0], part.Key...), k.arenas[:0], k.number[:0]
	written := map[int]bool{}
	for i, t := range part.Args {
		written[f.regions[t].buffer] = written[f.regions[t].buffer] || t != nil && part.Written[i]
	}
	bindings := 1 // the table
	for i, t := range part.Args {
		if t == nil {
			bindings++
			k.number = append(k.number, 0)
			continue
		}
		a := arena{buffer: f.regions[t].buffer}
		if loop.DeviceSize(t.DType) != WordBytes || f.plan.Buffers[a.buffer].Bytes/WordBytes > loop.MaxElements {
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
	swaps := slices.ContainsFunc(loops, func(r *enclosingLoop) bool { return len(r.swaps) > 0 })
	return !swaps && bindings+len(k.arenas) <= f.target.Limits.StorageBuffers
}

// addSegments adds the segmented launch of a class, or several where it has more
// workgroups than a grid axis allows.
func (f *fuser) addSegments(k *segmentClass, at placedLaunch) error {
	for len(k.parts) > 0 {
		n, groups := 0, 0
		for n < len(k.parts) && (n == 0 || groups+k.parts[n].Groups() <= f.target.Groups) {
			groups += k.parts[n].Groups()
			n++
		}
		launch, err := f.segments(k, k.parts[:n])
		if err != nil {
			return err
		}
		f.add(launch, at)
		k.parts = k.parts[n:]
	}
	return nil
}

// segments returns the segmented launch of some parts of a class.
func (f *fuser) segments(k *segmentClass, parts []emit.Part) (emit.Launch, error) {
	windows := f.windows(k, parts)
	first := make([][]int, len(parts))
	for i, part := range parts {
		for j, t := range part.Args {
			at := 0
			if t != nil {
				at = (f.regions[t].offset - windows[k.number[j]].offset) / WordBytes
			}
			first[i] = append(first[i], at)
		}
	}
	words, groups := horizontal.Table(parts, first)
	s, err := f.fuser.Segments(&parts[0], k.number, groups)
	if err != nil {
		return emit.Launch{}, ir.Errorf(ir.ErrUnsupported, "%v", err)
	}
	l := emit.Launch{Kernel: s.Kernel, Parts: parts}
	for _, b := range s.Bindings {
		var t *fusion.Tensor
		switch b {
		case horizontal.StatusBinding:
		case horizontal.TableBinding:
			t = tableTensor(words)
			if err := (memoryPhase{f.entryCompiler}).placeFixedTensor(t); err != nil {
				return l, err
			}
		default:
			t = &fusion.Tensor{Name: "arena", DType: ir.U32}
			f.regions[t] = windows[b]
		}
		l.Args = append(l.Args, t)
	}
	return l, nil
}

// windows returns for each arena of a class the window that spans the tensors of parts.
func (f *fuser) windows(k *segmentClass, parts []emit.Part) []region {
	out := make([]region, len(k.arenas))
	for _, part := range parts {
		for j, t := range part.Args {
			if t == nil {
				continue
			}
			r, w := f.regions[t], &out[k.number[j]]
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

// tableTensor returns a segment table as a constant tensor.
func tableTensor(words []int32) *fusion.Tensor {
	t := &fusion.Tensor{Name: "segments", DType: ir.I32, Dims: []int{len(words)}}
	for _, w := range words {
		t.Constant = binary.LittleEndian.AppendUint32(t.Constant, uint32(w))
	}
	return t
}
