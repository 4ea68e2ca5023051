package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Collective ops of devices that run the same graph.
const (
	OpAllReduce           ir.Op = "all_reduce"
	OpAllGather           ir.Op = "all_gather"
	OpReduceScatter       ir.Op = "reduce_scatter"
	OpAllToAll            ir.Op = "all_to_all"
	OpCollectivePermute   ir.Op = "collective_permute"
	OpCollectiveBroadcast ir.Op = "collective_broadcast"
	OpAxisIndex           ir.Op = "axis_index"
)

// collective describes an op on one value of each device. Its derivatives are collectives
// too, for any number of devices: the transpose gives each device the sum of the
// cotangents that the results of all devices pass to its value.
type collective struct {
	op          ir.Op
	doc         string
	constraints []string
	newAttrs    func() ir.Attrs
	// infer returns the type of the result.
	infer     func(n *ir.Node, x ir.Type) (ir.Type, error)
	jvp       jvpRule // nil: that of a linear op
	transpose func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value
}

func init() {
	for _, c := range collectives() {
		defineCollective(c)
	}
	defineAxisIndex()
}

func defineCollective(c collective) {
	jvp := c.jvp
	if jvp == nil {
		jvp = linearJVP
	}
	define(&ir.Def{
		Op: c.op, Doc: c.doc + oneDeviceDoc, Operands: []string{"x"}, NewAttrs: c.newAttrs,
		Constraints: numbered(append([]string{meshConstraint}, c.constraints...)...),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			if err := checkMesh(n); err != nil {
				return nil, err
			}
			t, err := c.infer(n, n.Input(0).Type())
			return []ir.Type{t}, err
		},
		JVP: jvp,
		Transpose: transposeEach(func(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return c.transpose(b, n, ct)
		}),
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
			attrs := n.Attrs()
			if a, ok := attrs.(interface{ batched() ir.Attrs }); ok {
				attrs = a.batched()
			}
			return b.Add(n.Op(), attrs, MoveAxis(b, in[0], axes[0], 0)), []int{0}
		},
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			if v := contiguous(b, n, in[0]); v.Valid() {
				return []ir.Value{v}
			}
			return aloneBody(b, n, in)
		},
		Lower: &ir.RoutineLowering{Calls: collectiveCalls},
	})
}

const (
	meshConstraint = "mesh_axis is named, and devices is at least 1"
	oneDeviceDoc   = " One device is supported everywhere; a graph compiled without a mesh of several refuses them."
)

// MeshOf returns the mesh axis of a collective or an axis_index; ok is false for any other node.
func MeshOf(n *ir.Node) (mesh MeshAttrs, ok bool) {
	a, ok := n.Attrs().(meshed)
	if !ok {
		return MeshAttrs{}, false
	}
	return *a.mesh(), true
}

// IsCollective reports whether a node moves data between several devices.
func IsCollective(n *ir.Node) bool {
	mesh, ok := MeshOf(n)
	return ok && mesh.Devices > 1 && n.Op() != OpAxisIndex
}

// IsContiguous reports whether a collective sends and receives whole arrays in row-major order and
// only reduces by a sum or an extremum, as libraries of collectives do. The body of any other
// collective of several devices consists of such ones and views.
func IsContiguous(n *ir.Node) bool {
	switch a := n.Attrs().(type) {
	case *AllReduceAttrs:
		return a.Reduction != AllReduceMean
	case *AlongAttrs:
		return a.Axis == 0
	case *AllToAllAttrs:
		return a.SplitAxis == 0 && a.ConcatAxis == 0
	}
	return true
}

// contiguous expresses a collective of several devices by one that [IsContiguous] accepts, and is
// an invalid Value if it is one, or of one device.
func contiguous(b *ir.Builder, n *ir.Node, x ir.Value) ir.Value {
	if !IsCollective(n) || IsContiguous(n) {
		return ir.Value{}
	}
	switch a := n.Attrs().(type) {
	case *AllReduceAttrs:
		sum := AllReduce(b, x, a.MeshAttrs, AllReduceSum)
		return Div(b, sum, ConstLike(b, sum, float64(a.Devices)))
	case *AlongAttrs:
		y := b.Add1(n.Op(), &AlongAttrs{MeshAttrs: a.MeshAttrs}, MoveAxis(b, x, a.Axis, 0))
		return MoveAxis(b, y, 0, a.Axis)
	case *AllToAllAttrs:
		return frontToAll(b, x, a)
	}
	return ir.Value{}
}

// frontToAll is an all_to_all by one along the first axis, whose result has a block of each device
// there.
func frontToAll(b *ir.Builder, x ir.Value, a *AllToAllAttrs) ir.Value {
	y := b.Add1(OpAllToAll, &AllToAllAttrs{MeshAttrs: a.MeshAttrs}, MoveAxis(b, x, a.SplitAxis, 0))
	if b.Err() != nil {
		return ir.Value{}
	}
	shape := y.Shape()
	part, err := shape[0].Div(ir.N(a.Devices))
	if err != nil {
		b.Fail(err)
		return ir.Value{}
	}
	blocks := Reshape(b, y, slices.Concat(ir.Shape{ir.N(a.Devices), part}, shape[1:])...)
	blocks = MoveAxis(b, blocks, 1, a.SplitAxis+1)
	shape = blocks.Shape()[1:].Clone()
	shape[a.ConcatAxis] = shape[a.ConcatAxis].Mul(ir.N(a.Devices))
	return Reshape(b, MoveAxis(b, blocks, 0, a.ConcatAxis), shape...)
}

func checkMesh(n *ir.Node) error {
	if m := n.Attrs().(meshed).mesh(); m.MeshAxis == "" || m.Devices < 1 {
		return ir.Attrf("devices is %d and mesh_axis %q: devices must be 1 or more, and mesh_axis not empty", m.Devices, m.MeshAxis)
	}
	return nil
}

// aloneBody is the body for one device: the identity, or zeros if no device sends to it.
func aloneBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	if !isAlone(b, n, in) {
		return []ir.Value{{}}
	}
	if a, ok := n.Attrs().(*PermuteAttrs); ok && len(a.Sources) == 0 {
		return []ir.Value{ZerosLike(b, in[0])}
	}
	return in
}

func isAlone(b *ir.Builder, n *ir.Node, in []ir.Value) bool {
	m := n.Attrs().(meshed).mesh()
	if m.Devices > 1 {
		b.Failf(n.Op(), in, ir.Errorf(ir.ErrUnsupported, "%d devices along %q, where the graph runs on one", m.Devices, m.MeshAxis))
	}
	return m.Devices == 1
}

func defineAxisIndex() {
	define(&ir.Def{
		Op: OpAxisIndex, NewAttrs: func() ir.Attrs { return &MeshAttrs{Devices: 1} },
		Doc:         "The index of the device along a mesh axis, an i32 (JAX's axis_index)." + oneDeviceDoc,
		Constraints: numbered(meshConstraint),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			return []ir.Type{ir.TypeOf(ir.I32)}, checkMesh(n)
		},
		NoGrad: noOperands, NoBatch: noOperands,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			if !isAlone(b, n, in) {
				return []ir.Value{{}}
			}
			return []ir.Value{Const(b, ir.I32, 0)}
		},
		Lower: &ir.RoutineLowering{Calls: collectiveCalls},
	})
}

// jvpAllReduce is linear except for extrema, where devices that attain the extremum share
// the derivative equally.
func jvpAllReduce(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
	a := n.Attrs().(*AllReduceAttrs)
	if a.Reduction == AllReduceSum || a.Reduction == AllReduceMean {
		return linearJVP(b, n, in, out, t)
	}
	attained := Select(b, Eq(b, in[0], out[0]), OnesLike(b, in[0]), ZerosLike(b, in[0]))
	part := Div(b, attained, AllReduce(b, attained, a.MeshAttrs, AllReduceSum))
	return []ir.Value{AllReduce(b, scale(b, t[0], part), a.MeshAttrs, AllReduceSum)}
}

// transposeRoot gives the root the sum of all cotangents and the other devices 0.
func transposeRoot(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
	a := n.Attrs().(*RootAttrs)
	total := AllReduce(b, ct, a.MeshAttrs, AllReduceSum)
	isRoot := Eq(b, AxisIndex(b, a.MeshAttrs), Const(b, ir.I32, float64(a.Root)))
	return Select(b, isRoot, total, ZerosLike(b, total))
}

// AllReduce returns the reduction of x over all devices, on each of them: [AllReduceSum],
// [AllReduceMean], [AllReduceMax] or [AllReduceMin] (JAX's psum, pmean, pmax and pmin).
func AllReduce(b *ir.Builder, x ir.Value, mesh MeshAttrs, reduction string) ir.Value {
	return b.Add1(OpAllReduce, &AllReduceAttrs{mesh, reduction}, x)
}

// AllGather returns the concatenation of x of all devices along axis, on each of them
// (JAX's all_gather, tiled). A negative axis counts from the last.
func AllGather(b *ir.Builder, x ir.Value, mesh MeshAttrs, axis int) ir.Value {
	return b.Add1(OpAllGather, &AlongAttrs{mesh, fromFront([]int{axis}, x.Rank())[0]}, x)
}

// ReduceScatter returns on each device its slice, along axis, of the sum of x over all
// devices (JAX's psum_scatter, tiled). The axis is a multiple of the devices; a negative
// one counts from the last.
func ReduceScatter(b *ir.Builder, x ir.Value, mesh MeshAttrs, axis int) ir.Value {
	return b.Add1(OpReduceScatter, &AlongAttrs{mesh, fromFront([]int{axis}, x.Rank())[0]}, x)
}

// AllToAll splits x along one axis into a slice for each device and returns the slices
// that this device receives, concatenated along the other (JAX's all_to_all, tiled).
// Negative axes count from the last.
func AllToAll(b *ir.Builder, x ir.Value, mesh MeshAttrs, split, concat int) ir.Value {
	axes := fromFront([]int{split, concat}, x.Rank())
	return b.Add1(OpAllToAll, &AllToAllAttrs{mesh, axes[0], axes[1]}, x)
}

// CollectivePermute returns x of the device that sends to this one, zeros if none does:
// device sources[i] sends to device targets[i] (JAX's ppermute).
func CollectivePermute(b *ir.Builder, x ir.Value, mesh MeshAttrs, sources, targets []int) ir.Value {
	return b.Add1(OpCollectivePermute, &PermuteAttrs{mesh, slices.Clone(sources), slices.Clone(targets)}, x)
}

// CollectiveBroadcast returns x of device root, on all devices (JAX's pbroadcast).
func CollectiveBroadcast(b *ir.Builder, x ir.Value, mesh MeshAttrs, root int) ir.Value {
	return b.Add1(OpCollectiveBroadcast, &RootAttrs{mesh, root}, x)
}

// AxisIndex returns the index of this device along a mesh axis, i32[], in [0,
// mesh.Devices).
func AxisIndex(b *ir.Builder, mesh MeshAttrs) ir.Value { return b.Add1(OpAxisIndex, &mesh) }

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

func (a *RootAttrs) check() error {
	if a.Root < 0 || a.Root >= a.Devices {
		return ir.Attrf("root is %d, not in [0, %d), the devices", a.Root, a.Devices)
	}
	return nil
}

// collectives are the ops of one operand.
func collectives() []collective {
	return []collective{
		{
			op:          OpAllReduce,
			doc:         "The sum, mean, maximum or minimum over all devices along a mesh axis, on each of them (JAX's psum, pmean, pmax and pmin). Devices that attain an extremum share its derivative equally.",
			constraints: []string{`reduction is "sum" of numbers, "mean" of float or complex ones, or "max" or "min" of real ones`},
			newAttrs:    func() ir.Attrs { return &AllReduceAttrs{MeshAttrs{Devices: 1}, AllReduceSum} },
			infer:       inferAllReduce,
			jvp:         jvpAllReduce,
			transpose:   func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value { return b.Add1(OpAllReduce, n.Attrs(), ct) },
		},
		{
			op:          OpAllGather,
			doc:         "The concatenation along an axis of the values of all devices along a mesh axis, on each of them (JAX's all_gather, tiled).",
			constraints: []string{"axis is an axis of x"},
			newAttrs:    newAlongAttrs,
			infer:       inferAllGather,
			transpose:   func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value { return b.Add1(OpReduceScatter, n.Attrs(), ct) },
		},
		{
			op:          OpReduceScatter,
			doc:         "The sum over all devices along a mesh axis, split along an axis: device i gets slice i (JAX's psum_scatter, tiled).",
			constraints: []string{"axis is an axis of x, whose size is a multiple of devices", "the element type of x is " + numbers.String()},
			newAttrs:    newAlongAttrs,
			infer:       inferReduceScatter,
			transpose:   func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value { return b.Add1(OpAllGather, n.Attrs(), ct) },
		},
		{
			op:          OpAllToAll,
			doc:         "The exchange of slices between the devices along a mesh axis: each splits its value along split_axis, sends slice i to device i, and concatenates the received slices along concat_axis (JAX's all_to_all, tiled).",
			constraints: []string{"split_axis and concat_axis are axes of x; the size of split_axis is a multiple of devices"},
			newAttrs:    func() ir.Attrs { return &AllToAllAttrs{MeshAttrs: MeshAttrs{Devices: 1}} },
			infer:       inferAllToAll,
			transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
				a := n.Attrs().(*AllToAllAttrs)
				return b.Add1(OpAllToAll, &AllToAllAttrs{a.MeshAttrs, a.ConcatAxis, a.SplitAxis}, ct)
			},
		},
		{
			op:          OpCollectivePermute,
			doc:         "The value of the sending device: sources[i] sends to targets[i]. A device that receives none gets zeros (JAX's ppermute).",
			constraints: []string{"sources and targets are lists of one length of distinct device indices"},
			newAttrs:    func() ir.Attrs { return &PermuteAttrs{MeshAttrs: MeshAttrs{Devices: 1}} },
			infer:       func(n *ir.Node, x ir.Type) (ir.Type, error) { return x, n.Attrs().(*PermuteAttrs).check() },
			transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
				a := n.Attrs().(*PermuteAttrs)
				return CollectivePermute(b, ct, a.MeshAttrs, a.Targets, a.Sources)
			},
		},
		{
			op:          OpCollectiveBroadcast,
			doc:         "The value of one device along a mesh axis, on each of them (JAX's pbroadcast).",
			constraints: []string{"root is a device index"},
			newAttrs:    func() ir.Attrs { return &RootAttrs{MeshAttrs: MeshAttrs{Devices: 1}} },
			infer:       func(n *ir.Node, x ir.Type) (ir.Type, error) { return x, n.Attrs().(*RootAttrs).check() },
			transpose:   transposeRoot,
		},
	}
}

func inferAllReduce(n *ir.Node, x ir.Type) (ir.Type, error) {
	a := n.Attrs().(*AllReduceAttrs)
	types, ok := map[string]domain{AllReduceSum: numbers, AllReduceMean: floats | complexes, AllReduceMax: reals, AllReduceMin: reals}[a.Reduction]
	if !ok {
		return x, ir.Attrf("reduction is %q, not one of %q", a.Reduction, []string{AllReduceSum, AllReduceMean, AllReduceMax, AllReduceMin})
	}
	return x, types.check(x.DType)
}

func inferAllGather(n *ir.Node, x ir.Type) (ir.Type, error) {
	return alongDevices(n, x, func(size, devices ir.Dim) (ir.Dim, error) { return size.Mul(devices), nil })
}

func inferReduceScatter(n *ir.Node, x ir.Type) (ir.Type, error) {
	if err := numbers.check(x.DType); err != nil {
		return x, err
	}
	return alongDevices(n, x, ir.Dim.Div)
}

func newAlongAttrs() ir.Attrs { return &AlongAttrs{MeshAttrs: MeshAttrs{Devices: 1}} }

// alongDevices resizes the axis along which the values of devices are concatenated or
// split.
func alongDevices(n *ir.Node, x ir.Type, resize func(size, devices ir.Dim) (ir.Dim, error)) (ir.Type, error) {
	a := n.Attrs().(*AlongAttrs)
	if err := checkAxes([]int{a.Axis}, len(x.Shape)); err != nil {
		return x, err
	}
	size, err := resize(x.Shape[a.Axis], ir.N(a.Devices))
	if err != nil {
		return x, ir.Shapef("axis %d of size %s does not divide into %d parts", a.Axis, x.Shape[a.Axis], a.Devices)
	}
	x.Shape = x.Shape.Clone()
	x.Shape[a.Axis] = size
	return x, nil
}

func inferAllToAll(n *ir.Node, x ir.Type) (ir.Type, error) {
	a := n.Attrs().(*AllToAllAttrs)
	for _, axis := range []int{a.SplitAxis, a.ConcatAxis} {
		if err := checkAxes([]int{axis}, len(x.Shape)); err != nil {
			return x, err
		}
	}
	part, err := x.Shape[a.SplitAxis].Div(ir.N(a.Devices))
	if err != nil {
		return x, ir.Shapef("axis %d of size %s does not divide into %d parts", a.SplitAxis, x.Shape[a.SplitAxis], a.Devices)
	}
	x.Shape = x.Shape.Clone()
	x.Shape[a.SplitAxis] = part
	x.Shape[a.ConcatAxis] = x.Shape[a.ConcatAxis].Mul(ir.N(a.Devices))
	return x, nil
}
