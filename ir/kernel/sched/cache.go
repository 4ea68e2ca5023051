package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/kernel/routine"
)

// Cache remembers the kernels of groups, so that equal groups, such as those of
// equal layers, are scheduled once and share their kernels. Programs that are
// compiled together share a cache; it must not be used by two goroutines at
// once.
type Cache struct {
	launches map[cacheKey][]canonicalLaunch
	forms    map[cacheKey]variants // by the text without the values of literals
	canons   map[*group.Group]*group.Canon
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{map[cacheKey][]canonicalLaunch{}, map[cacheKey]variants{}, map[*group.Group]*group.Canon{}}
}

// cacheKey is all that the kernels of a group depend on.
type cacheKey struct {
	caps  loop.Caps
	group string // the text of its canonical form
}

// Schedule is [Schedule] for a group that may be equal to one before.
func (c *Cache) Schedule(g *group.Group, caps loop.Caps) (launches []Launch, err error) {
	defer recovered(g, &err)
	switch {
	case inParts(g, caps):
		return bundle(mapParts(g, caps, c.partWords)), nil
	case g.Kind == group.ControlKind || g.Kind == group.TotalKind || len(g.Parts) > 0 || updates(g):
		return Schedule(g, caps)
	}
	canon := c.canonOf(g)
	which := c.words(g, canon, caps)
	key := cacheKey{caps, textOf(canon, which)}
	if which == nil {
		return c.schedule(g, canon, key)
	}
	canon.Words(which).Read(func() { launches, err = c.schedule(g, canon, key) })
	return launches, err
}

func (c *Cache) schedule(g *group.Group, canon *group.Canon, key cacheKey) (launches []Launch, err error) {
	if known, ok := c.launches[key]; ok {
		return recall(known, canon, g.Program()), nil
	}
	if launches, err = Schedule(g, key.caps); err == nil {
		c.launches[key] = remember(launches, canon)
	}
	return launches, err
}

// canonicalLaunch is a launch with its tensors named by their place in the group.
type canonicalLaunch struct {
	kernel  *loop.Kernel
	routine routine.Routine
	args    []canonicalArg
}

// canonicalArg is what a storage array is bound to: an operand of the group by
// its number, scratch memory between the group's kernels, or the status words.
type canonicalArg struct {
	kind   argKind
	number int
	dtype  ir.DType // of scratch memory, as are its sizes and name
	dims   []int
	name   string
}

type argKind uint8

const (
	operandArg argKind = iota
	scratchArg
	statusArg
)

// remember returns launches with their tensors named by their place.
func remember(launches []Launch, c *group.Canon) []canonicalLaunch {
	out := make([]canonicalLaunch, len(launches))
	scratch := map[*group.Tensor]int{}
	for i, l := range launches {
		out[i].kernel, out[i].routine = l.Kernel, l.Routine
		for _, t := range l.Args {
			arg := canonicalArg{kind: statusArg}
			if n, ok := c.Operand(t); ok {
				arg = canonicalArg{kind: operandArg, number: n}
			} else if t != nil {
				if _, known := scratch[t]; !known {
					scratch[t] = len(scratch)
				}
				arg = canonicalArg{scratchArg, scratch[t], t.DType, t.Dims, t.Name}
			}
			out[i].args = append(out[i].args, arg)
		}
	}
	return out
}

// recall returns remembered launches for the group of c, with scratch memory of
// its own.
func recall(launches []canonicalLaunch, c *group.Canon, p *group.Program) []Launch {
	out := make([]Launch, len(launches))
	scratch := map[int]*group.Tensor{}
	for i, l := range launches {
		out[i] = Launch{Kernel: l.kernel, Routine: l.routine, Args: make([]*group.Tensor, len(l.args))}
		for j, arg := range l.args {
			switch arg.kind {
			case operandArg:
				out[i].Args[j] = c.Operands[arg.number]
			case scratchArg:
				if scratch[arg.number] == nil {
					scratch[arg.number] = p.Scratch(arg.name, arg.dtype, arg.dims...)
				}
				out[i].Args[j] = scratch[arg.number]
			}
		}
	}
	return out
}
