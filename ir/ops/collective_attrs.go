package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// MeshAttrs name an axis of a device mesh and hold the number of devices along it. Every
// device runs the same graph with its own values; its index is in [0, Devices).
type MeshAttrs struct {
	MeshAxis string
	Devices  int
}

// Visit shows the attributes.
func (a *MeshAttrs) Visit(v ir.AttrVisitor) {
	v.Text("mesh_axis", &a.MeshAxis)
	v.Int("devices", &a.Devices)
}

func (a *MeshAttrs) mesh() *MeshAttrs { return a }

// meshed is implemented by the attributes of all collectives.
type meshed interface {
	ir.Attrs
	mesh() *MeshAttrs
}

// The reductions of [AllReduce].
const (
	AllReduceSum  = "sum"
	AllReduceMean = "mean"
	AllReduceMax  = "max"
	AllReduceMin  = "min"
)

// AllReduceAttrs describe an all_reduce: Reduction is [AllReduceSum], [AllReduceMean],
// [AllReduceMax] or [AllReduceMin].
type AllReduceAttrs struct {
	MeshAttrs
	Reduction string
}

// Visit shows the attributes.
func (a *AllReduceAttrs) Visit(v ir.AttrVisitor) {
	a.MeshAttrs.Visit(v)
	v.Text("reduction", &a.Reduction)
}

// AlongAttrs describe an all_gather or reduce_scatter: Axis is the concatenated or split
// axis.
type AlongAttrs struct {
	MeshAttrs
	Axis int
}

// Visit shows the attributes.
func (a *AlongAttrs) Visit(v ir.AttrVisitor) {
	a.MeshAttrs.Visit(v)
	v.Int("axis", &a.Axis)
}

func (a *AlongAttrs) batched() ir.Attrs { return &AlongAttrs{a.MeshAttrs, a.Axis + 1} }

// AllToAllAttrs describe an all_to_all: values are split along SplitAxis and concatenated
// along ConcatAxis.
type AllToAllAttrs struct {
	MeshAttrs
	SplitAxis, ConcatAxis int
}

// Visit shows the attributes.
func (a *AllToAllAttrs) Visit(v ir.AttrVisitor) {
	a.MeshAttrs.Visit(v)
	v.Int("split_axis", &a.SplitAxis)
	v.Int("concat_axis", &a.ConcatAxis)
}

func (a *AllToAllAttrs) batched() ir.Attrs {
	return &AllToAllAttrs{a.MeshAttrs, a.SplitAxis + 1, a.ConcatAxis + 1}
}

// PermuteAttrs describe a collective_permute: device Sources[i] sends to device
// Targets[i].
type PermuteAttrs struct {
	MeshAttrs
	Sources, Targets []int
}

// Visit shows the attributes.
func (a *PermuteAttrs) Visit(v ir.AttrVisitor) {
	a.MeshAttrs.Visit(v)
	v.Ints("sources", &a.Sources)
	v.Ints("targets", &a.Targets)
}

func (a *PermuteAttrs) check() error {
	if len(a.Sources) != len(a.Targets) {
		return ir.Attrf("sources and targets have %d and %d entries, not as many", len(a.Sources), len(a.Targets))
	}
	for _, list := range [][]int{a.Sources, a.Targets} {
		for i, device := range list {
			if device < 0 || device >= a.Devices || slices.Contains(list[:i], device) {
				return ir.Attrf("sources or targets is %v: device %d is there twice, or not in [0, %d)", list, device, a.Devices)
			}
		}
	}
	return nil
}

// RootAttrs describe a collective_broadcast: Root is the sending device.
type RootAttrs struct {
	MeshAttrs
	Root int
}

// Visit shows the attributes.
func (a *RootAttrs) Visit(v ir.AttrVisitor) {
	a.MeshAttrs.Visit(v)
	v.Int("root", &a.Root)
}
