package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/elementwise"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// Cache memoises the kernels of groups: equal groups, such as those of equal layers, are
// lowered once and share their kernels. Partitions that are compiled together share a cache. It
// is not safe for concurrent use.
type Cache struct {
	launches map[string][]canonicalLaunch
	parts    map[string]canonicalPart
	forms    map[string]variants // by the text without literal values
	canons   *fusion.Canons
	learned  map[*fusion.Group]*fusion.Canon
	tuned    Tuned
	targets  []loop.Caps // in order of first use
	text     []byte      // scratch for keys: the number of a target and the text
}

// NewCache returns an empty cache. tuned holds schedules that replace the default, nil for
// none.
func NewCache(tuned Tuned) *Cache {
	return &Cache{
		launches: map[string][]canonicalLaunch{}, parts: map[string]canonicalPart{},
		forms: map[string]variants{}, canons: fusion.NewCanons(), learned: map[*fusion.Group]*fusion.Canon{}, tuned: tuned,
	}
}

// key sets c.text to the key of a text on a target.
func (c *Cache) key(caps loop.Caps, text string) {
	target := slices.Index(c.targets, caps)
	if target < 0 {
		target = len(c.targets)
		c.targets = append(c.targets, caps)
	}
	c.text = append(strconv.AppendInt(c.text[:0], int64(target), 10), text...)
}

// Schedule returns the launches of a group, in order, by its tuned schedule or the default.
// Horizontally fused maps, and maps that only update states, are returned as [emit.Part]s, from
// which a [Fuser] makes kernels. The errors are those of [Emit].
func (c *Cache) Schedule(g *fusion.Group, caps loop.Caps) (launches []emit.Launch, err error) {
	defer recovered(g, &err)
	aside := len(g.Parts) > 0 || elementwise.Updates(g)
	if aside && caps.Invocations > 1 {
		return emit.PartsLaunch(c.mapParts(g, caps)), nil
	}
	canon := c.canonicalForm(g)
	if aside || g.Kind == fusion.TotalKind {
		return c.emit(g, canon, caps)
	}
	which := c.liftedLiterals(g, canon, caps)
	words := canon.Words(which)
	c.keyOf(canon, caps, which)
	if known, ok := c.launches[string(c.text)]; ok {
		return recall(known, canon, g.Partition()), nil
	}
	words.Read(func() { launches, err = c.emit(g, canon, caps) })
	if err == nil {
		c.launches[string(c.text)] = remember(launches, canon)
	}
	return launches, err
}

// emit lowers a group that is not cached.
func (c *Cache) emit(g *fusion.Group, canon *fusion.Canon, caps loop.Caps) ([]emit.Launch, error) {
	w, err := spaceOf(g, caps)
	if err != nil {
		return nil, err
	}
	var s emit.Schedule
	known := false
	if len(c.tuned) > 0 {
		s, known = c.tuned[keyOf(canon, caps)]
	}
	if !known || !w.Fits(s) {
		s = w.Rule()
	}
	return uncontracted(g, w.Emit(s)), nil
}

// canonicalLaunch is a launch with its tensors named by their position in the group.
type canonicalLaunch struct {
	kernel, draft *loop.Kernel
	routine       routine.Routine
	args          []canonicalArg
}

// canonicalArg is the binding of a storage array: an operand of the group by number, scratch
// memory between the group's kernels, or the status words.
type canonicalArg struct {
	kind   argKind
	number int
	dtype  ir.DType // dtype, dims and name are those of scratch memory
	dims   []int
	name   string
}

type argKind uint8

const (
	operandArg argKind = iota
	scratchArg
	statusArg
)

// remember returns launches with their tensors named by position.
func remember(launches []emit.Launch, c *fusion.Canon) []canonicalLaunch {
	out := make([]canonicalLaunch, len(launches))
	scratch := map[*fusion.Tensor]int{}
	for i, l := range launches {
		out[i] = canonicalLaunch{l.Kernel, l.Draft, l.Routine, rememberArgs(l.Args, c, scratch)}
	}
	return out
}

func rememberArgs(args []*fusion.Tensor, c *fusion.Canon, scratch map[*fusion.Tensor]int) []canonicalArg {
	out := make([]canonicalArg, len(args))
	for i, t := range args {
		out[i] = canonicalArg{kind: statusArg}
		if n, ok := c.Operand(t); ok {
			out[i] = canonicalArg{kind: operandArg, number: n}
		} else if t != nil {
			if _, known := scratch[t]; !known {
				scratch[t] = len(scratch)
			}
			out[i] = canonicalArg{scratchArg, scratch[t], t.DType, t.Dims, t.Name}
		}
	}
	return out
}

// recall returns remembered launches for the group of c, with new scratch memory.
func recall(launches []canonicalLaunch, c *fusion.Canon, p *fusion.Partition) []emit.Launch {
	out := make([]emit.Launch, len(launches))
	var scratch []*fusion.Tensor
	for i, l := range launches {
		out[i] = emit.Launch{Kernel: l.kernel, Draft: l.draft, Routine: l.routine, Args: recallArgs(l.args, c, p, &scratch)}
	}
	return out
}

func recallArgs(args []canonicalArg, c *fusion.Canon, p *fusion.Partition, scratch *[]*fusion.Tensor) []*fusion.Tensor {
	out := make([]*fusion.Tensor, len(args))
	for i, arg := range args {
		switch arg.kind {
		case operandArg:
			out[i] = c.Operands[arg.number]
		case scratchArg:
			if arg.number == len(*scratch) { // numbered in order of first use
				*scratch = append(*scratch, p.Scratch(arg.name, arg.dtype, arg.dims...))
			}
			out[i] = (*scratch)[arg.number]
		}
	}
	return out
}

// canonicalPart is the key that equal [emit.Part]s share.
type canonicalPart struct {
	key     string
	written []bool
	args    []canonicalArg
}

// mapParts returns the parts of horizontally fused maps, each with the words that it reads.
// Equal parts are lowered once.
func (c *Cache) mapParts(g *fusion.Group, caps loop.Caps) []emit.Part {
	parts := g.HorizontalParts()
	out := make([]emit.Part, 0, len(parts))
	for _, g := range parts {
		n := fusion.Product(g.Outer)
		if n == 0 {
			continue
		}
		canon, x := c.canonicalForm(g), elementwise.Work{Group: g}
		which := c.liftedLiterals(g, canon, caps)
		x.Words = canon.Words(which)
		c.keyOf(canon, caps, which)
		known, ok := c.parts[string(c.text)]
		if !ok {
			part := emit.NewPart(x, n, g.Partition(), caps)
			c.parts[string(c.text)] = canonicalPart{part.Key, part.Written, rememberArgs(part.Args, canon, nil)}
			out = append(out, part)
			continue
		}
		out = append(out, emit.Part{
			Key: known.key, Written: known.written, Args: recallArgs(known.args, canon, g.Partition(), nil),
			First: make([]int, len(known.args)), Len: n, Work: x, Partition: g.Partition(),
		})
	}
	return out
}
