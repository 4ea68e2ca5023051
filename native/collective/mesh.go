package collective

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// Axis is a named axis of a mesh and the number of ranks along it.
type Axis struct {
	Name string
	Size int
}

// Mesh arranges the ranks of a group along named axes, the last axis fastest: on axes of sizes 2
// and 4, rank 5 is at 1 and 1. A collective along an axis is among the ranks that differ in that
// coordinate alone.
type Mesh struct {
	world *Group
	axes  []Axis
	along []*Group // for each axis, this rank's group
}

// NewMesh arranges the ranks of a group. All ranks call it with the same axes. The error is of kind
// [ir.ErrAttr] if the sizes do not multiply to that of the group, or a name is empty or there
// twice.
func NewMesh(ctx context.Context, g *Group, axes ...Axis) (*Mesh, error) {
	if err := g.given(); err != nil {
		return nil, err
	}
	ranks := 1
	for i, a := range axes {
		if a.Name == "" || a.Size < 1 || slices.ContainsFunc(axes[:i], func(b Axis) bool { return a.Name == b.Name }) {
			return nil, ir.Attrf("axis %d of the mesh is %q of size %d; names must differ and not be empty, and sizes be 1 or more", i, a.Name, a.Size)
		}
		ranks *= a.Size
	}
	if ranks != g.Size() {
		return nil, ir.Attrf("the mesh %s has %d ranks; the group has %d", formatAxes(axes), ranks, g.Size())
	}
	m := &Mesh{world: g, axes: slices.Clone(axes)}
	inner := ranks
	for _, a := range axes {
		if a.Size == ranks {
			m.along = append(m.along, g)
			continue
		}
		inner /= a.Size
		at := g.Rank() / inner % a.Size
		sub, err := g.Split(ctx, g.Rank()-at*inner, at)
		if err != nil {
			return nil, fmt.Errorf("mesh axis %q: %w", a.Name, err)
		}
		m.along = append(m.along, sub)
	}
	return m, nil
}

// World returns the group of all ranks.
func (m *Mesh) World() *Group { return m.world }

// Axes returns the axes.
func (m *Mesh) Axes() []Axis { return slices.Clone(m.axes) }

// Along returns the group of the ranks along an axis, nil if there is no such axis.
func (m *Mesh) Along(axis string) *Group {
	for i, a := range m.axes {
		if a.Name == axis {
			return m.along[i]
		}
	}
	return nil
}

// String returns "data=2 model=4".
func (m *Mesh) String() string { return formatAxes(m.axes) }

func formatAxes(axes []Axis) string {
	var sb strings.Builder
	for i, a := range axes {
		if i > 0 {
			sb.WriteByte(' ')
		}
		fmt.Fprintf(&sb, "%s=%d", a.Name, a.Size)
	}
	return sb.String()
}
