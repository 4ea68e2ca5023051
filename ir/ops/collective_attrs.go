package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// MeshAttrs name an axis of a mesh of devices, and say how many devices lie along it.
// Every device runs the same graph with values of its own; its place is from 0 to
// Devices − 1.
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

// meshed is what the attributes of all collectives have.
type meshed interface {
	ir.Attrs
	mesh() *MeshAttrs
}

// What [AllReduce] makes of the values of the devices.
const (
	AcrossSum  = "sum"
	AcrossMean = "mean"
	AcrossMax  = "max"
	AcrossMin  = "min"
)

// AllReduceAttrs are those of all_reduce: Reduction is [AcrossSum], [AcrossMean],
// [AcrossMax] or [AcrossMin].
type AllReduceAttrs struct {
	MeshAttrs
	Reduction string
}

// Visit shows the attributes.
func (a *AllReduceAttrs) Visit(v ir.AttrVisitor) {
	a.MeshAttrs.Visit(v)
	v.Text("reduction", &a.Reduction)
}

// AlongAttrs are those of all_gather and reduce_scatter: Axis is that of the values
// along which those of the devices follow each other.
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

// AllToAllAttrs are those of all_to_all: each device cuts its value along SplitAxis
// and puts together what it gets along ConcatAxis.
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

// PermuteAttrs are those of collective_permute: device Sources[i] sends its value to
// device Targets[i].
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

// RootAttrs are those of collective_broadcast: Root is the device whose value all get.
type RootAttrs struct {
	MeshAttrs
	Root int
}

// Visit shows the attributes.
func (a *RootAttrs) Visit(v ir.AttrVisitor) {
	a.MeshAttrs.Visit(v)
	v.Int("root", &a.Root)
}
