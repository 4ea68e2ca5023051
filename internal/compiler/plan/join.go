package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// joined is a kernel of two, nil where they do not fit together, and same what [loop.JoinGrids] takes.
type joined struct {
	a, b, kernel *loop.Kernel
	same         []int
}

// joiner makes one launch of adjacent ones that are independent and so short that a dispatch takes longer than their
// work: products of one row with several matrices, and updates of several caches. A dispatch in WebGPU waits for all
// before it: one less saves 3.3 µs on an H200. It is done where subgroups are those of a warp, which language models ask
// for; the plans of other targets keep more kernels in common, which drivers compile sooner.
type joiner struct {
	target Target
	known  []joined
}

// prologueTensors is the number of tensors that a kernel of cached attention with [fusion.Options.Prologues] binds: caches and their
// new rows, queries, tables of angles, positions and partial results.
const prologueTensors = 11

// joinsLaunches reports whether launches of the target take longer than what they save where they are apart.
func (t Target) joinsLaunches() bool { return t.Dialect == dtype.WGSL && t.Lanes() == loop.Warp }

// joinLaunches returns the launches of a target, those that can be joined as one.
func joinLaunches(launches []placedLaunch, t Target) []placedLaunch {
	if !t.joinsLaunches() {
		return launches
	}
	j := joiner{target: t}
	out := launches[:0]
	for _, l := range launches {
		if len(out) > 0 {
			if one, ok := j.join(out[len(out)-1], l); ok {
				out[len(out)-1].Launch = one
				continue
			}
		}
		out = append(out, l)
	}
	return out
}

// join returns the launch of two. It is false where they stay two.
func (x *joiner) join(a, b placedLaunch) (one emit.Launch, ok bool) {
	plain := func(l placedLaunch) bool {
		return l.Kernel != nil && l.Draft == nil && len(l.loops) == 0 && l.guard == nil && l.gate == nil
	}
	if !plain(a) || !plain(b) || !independent(a.Launch, b.Launch) {
		return one, false
	}
	groups := a.Kernel.Groups[0] + b.Kernel.Groups[0]
	if groups > x.target.Groups || groups*a.Kernel.Threads() > x.target.Profile().Resident() {
		return one, false
	}
	same := sameArrays(a.Launch, b.Launch)
	one.Args = slices.Clone(a.Args)
	for j, i := range same {
		if i < 0 {
			one.Args = append(one.Args, b.Args[j])
		}
	}
	if len(one.Args) > x.target.StorageBuffers {
		return one, false
	}
	for _, j := range x.known {
		if j.a == a.Kernel && j.b == b.Kernel && slices.Equal(j.same, same) {
			one.Kernel = j.kernel
			return one, one.Kernel != nil
		}
	}
	one.Kernel, ok = loop.JoinGrids(a.Kernel, b.Kernel, same)
	x.known = append(x.known, joined{a.Kernel, b.Kernel, one.Kernel, same})
	return one, ok
}

// independent reports whether no launch of two writes what the other accesses.
func independent(a, b emit.Launch) bool {
	for i, t := range a.Args {
		for j, u := range b.Args {
			if shareMemory(t, u) && (a.Kernel.Arrays[i].Access != loop.Read || b.Kernel.Arrays[j].Access != loop.Read) {
				return false
			}
		}
	}
	return true
}

// shareMemory reports whether tensors have memory in common; nil is the status words.
func shareMemory(t, u *fusion.Tensor) bool {
	if t == nil || u == nil {
		return t == u
	}
	t, u = t.Root(), u.Root()
	return t == u || t.Persistent() && u.Persistent() && t.Name == u.Name
}

// sameArrays returns for each storage array of b the number of the one of a that is bound to the same tensor, read alike, or -1.
func sameArrays(a, b emit.Launch) []int {
	same := make([]int, len(b.Args))
	for j, u := range b.Args {
		same[j] = slices.IndexFunc(a.Args, func(t *fusion.Tensor) bool { return t == u })
		if i := same[j]; i >= 0 && (a.Kernel.Arrays[i].DType != b.Kernel.Arrays[j].DType || a.Kernel.Arrays[i].Width != b.Kernel.Arrays[j].Width) {
			same[j] = -1
		}
	}
	return same
}
