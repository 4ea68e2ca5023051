package ops

import "github.com/rlx-go/rlx/ir"

// collectives are the ops of one operand.
func collectives() []collective {
	return []collective{
		{
			op:          OpAllReduce,
			doc:         "The sum, mean, maximum or minimum over all devices along a mesh axis, on each of them (JAX's psum, pmean, pmax and pmin). Devices that attain an extremum share its derivative equally.",
			constraints: []string{`reduction is "sum" of numbers, "mean" of float or complex ones, or "max" or "min" of real ones`},
			newAttrs:    func() ir.Attrs { return &AllReduceAttrs{MeshAttrs{Devices: 1}, AllReduceSum} },
			infer: func(n *ir.Node, x ir.Type) (ir.Type, error) {
				a := n.Attrs().(*AllReduceAttrs)
				types, ok := map[string]domain{AllReduceSum: numbers, AllReduceMean: floats | complexes, AllReduceMax: reals, AllReduceMin: reals}[a.Reduction]
				if !ok {
					return x, ir.Attrf("reduction is %q, not one of %q", a.Reduction, []string{AllReduceSum, AllReduceMean, AllReduceMax, AllReduceMin})
				}
				return x, types.check(x.DType)
			},
			jvp: jvpAllReduce,
			transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
				return b.Add1(OpAllReduce, n.Attrs(), ct)
			},
		},
		{
			op:          OpAllGather,
			doc:         "The concatenation along an axis of the values of all devices along a mesh axis, on each of them (JAX's all_gather, tiled).",
			constraints: []string{"axis is an axis of x"},
			newAttrs:    newAlongAttrs,
			infer: func(n *ir.Node, x ir.Type) (ir.Type, error) {
				return alongDevices(n, x, func(size, devices ir.Dim) (ir.Dim, error) { return size.Mul(devices), nil })
			},
			transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value { return b.Add1(OpReduceScatter, n.Attrs(), ct) },
		},
		{
			op:          OpReduceScatter,
			doc:         "The sum over all devices along a mesh axis, split along an axis: device i gets slice i (JAX's psum_scatter, tiled).",
			constraints: []string{"axis is an axis of x, whose size is a multiple of devices", "the element type of x is " + numbers.String()},
			newAttrs:    newAlongAttrs,
			infer: func(n *ir.Node, x ir.Type) (ir.Type, error) {
				if err := numbers.check(x.DType); err != nil {
					return x, err
				}
				return alongDevices(n, x, ir.Dim.Div)
			},
			transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value { return b.Add1(OpAllGather, n.Attrs(), ct) },
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
			infer: func(n *ir.Node, x ir.Type) (ir.Type, error) {
				return x, n.Attrs().(*PermuteAttrs).check()
			},
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
			infer: func(n *ir.Node, x ir.Type) (ir.Type, error) {
				if a := n.Attrs().(*RootAttrs); a.Root < 0 || a.Root >= a.Devices {
					return x, ir.Attrf("root is %d, not in [0, %d), the devices", a.Root, a.Devices)
				}
				return x, nil
			},
			transpose: transposeRoot,
		},
	}
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
