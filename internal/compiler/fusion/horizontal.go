package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Limits of horizontal fusion.
const (
	// partLaunches bounds the memory traffic of a part, in launches that take as long.
	// Fusing larger maps saves little and extends live ranges.
	partLaunches = 2
	// maxParts bounds the number of parts: the users of one part wait for all of them,
	// and all operands stay live.
	maxParts = 64
	// maxSmallParts bounds the number of parts without readers that together move at most
	// partLaunches.
	maxSmallParts = 1024
)

// fuseHorizontally fuses small independent maps horizontally: all maps without readers (the
// updates of an optimiser), and maps of one level. Such a group may bind more tensors than
// a kernel can, because it can be cut between any two parts.
func (f fuser) fuseHorizontally() {
	levels, maxBytes := f.levels(), partLaunches*f.partition.decided.traffic.LaunchBytes
	read := make([]bool, len(f.list))
	for _, g := range f.list {
		for _, q := range f.producers(g) {
			read[q.index] = true
		}
	}
	open := map[[2]int]*horizontalGroup{} // by level and phase
	for i, g := range f.list {
		if g.Kind != MapKind || g.bytes() > maxBytes {
			continue
		}
		key := [2]int{levels[i], f.phases.latest(g)}
		if !read[i] {
			key = [2]int{sink, 0}
		}
		a := open[key]
		if a == nil || !a.takes(g, !read[i], maxBytes) {
			open[key] = &horizontalGroup{g, g.bytes()}
			continue
		}
		if len(a.Parts) == 0 {
			first := a.Group
			a.Group = &Group{Kind: MapKind, partition: f.partition}
			f.addPart(a.Group, first)
		}
		f.addPart(a.Group, g)
		a.bytes += g.bytes()
	}
	f.list = f.topological(currentGroups(f.list))
}

// horizontalGroup is a group that others join, and the memory traffic of its parts.
type horizontalGroup struct {
	*Group
	bytes int
}

// takes reports whether a group can be a further part. Small parts without readers may be more
// numerous.
func (a *horizontalGroup) takes(g *Group, unread bool, maxBytes int) bool {
	parts := len(a.HorizontalParts())
	return parts < maxParts || unread && parts < maxSmallParts && a.bytes+g.bytes() <= maxBytes
}

// addPart appends a group to the parts of a horizontal fusion, which takes its place.
func (x *groupGraph) addPart(into, g *Group) {
	into.Parts, into.index = append(into.Parts, g), g.index
	into.footprint.weight += g.footprint.weight
	g.mergedInto = into
	for _, m := range g.Members {
		x.of[m.Node] = into
	}
}

// sink is the level of groups without readers.
const sink = -1

// bytes returns the memory traffic of a group.
func (g *Group) bytes() int {
	n := 0
	add := func(v ir.Value) {
		size, _ := v.Shape().Size().Const()
		n += size * loop.DeviceSize(v.DType())
	}
	for _, u := range g.footprint.reads {
		add(u.v)
	}
	for _, u := range g.footprint.keeps {
		add(u.v)
	}
	return n
}
