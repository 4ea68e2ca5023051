package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Ops that cut and join along axes.
const (
	OpSlice       ir.Op = "slice"
	OpPad         ir.Op = "pad"
	OpConcatenate ir.Op = "concatenate"
	OpReverse     ir.Op = "reverse"
)

// SliceAttrs say for each axis which elements are taken: Size of them, from
// Start on, Stride apart.
type SliceAttrs struct {
	Start, Size []ir.Dim
	Stride      []int
}

// Visit shows the attributes.
func (a *SliceAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("start", &a.Start)
	v.Dims("size", &a.Size)
	v.Ints("stride", &a.Stride)
}

// PadAttrs say for each axis how many elements are put before, after, and
// between any two of those of x.
type PadAttrs struct {
	Low, High []ir.Dim
	Interior  []int
}

// Visit shows the attributes.
func (a *PadAttrs) Visit(v ir.AttrVisitor) {
	v.Dims("low", &a.Low)
	v.Dims("high", &a.High)
	v.Ints("interior", &a.Interior)
}

func init() {
	defineSlice()
	definePad()
	defineConcatenate()
	defineReverse()
}

func defineSlice() {
	defineMove(move{
		op: OpSlice, doc: "Part of x: element k of an axis of the result is element start + k·stride of that axis of x.",
		constraints: []string{
			"start, size and stride have an entry for each axis of x; strides are positive",
			"the last element taken lies inside x; a symbolic axis is checked once its symbols are bound",
		},
		newAttrs: func() ir.Attrs { return &SliceAttrs{} },
		shape:    sliceShape,
		source: func(n *ir.Node, at, from []int) []int {
			a := n.Attrs().(*SliceAttrs)
			for i, first := range sizes(a.Start) {
				from[i] = first + at[i]*a.Stride[i]
			}
			return from
		},
		index: func(n *ir.Node, at ir.Index) ir.Index {
			a := n.Attrs().(*SliceAttrs)
			out := make(ir.Index, len(at))
			for i, first := range sizes(a.Start) {
				out[i] = scalar.Add(scalar.Mul(at[i], int32Const(a.Stride[i])), int32Const(first))
			}
			return out
		},
		transpose: transposeSlice,
		batch: func(b *ir.Builder, n *ir.Node, x ir.Value, size ir.Dim) ir.Value {
			a := n.Attrs().(*SliceAttrs)
			return Slice(b, x, slices.Insert(slices.Clone(a.Start), 0, ir.N(0)),
				slices.Insert(slices.Clone(a.Size), 0, size), slices.Insert(slices.Clone(a.Stride), 0, 1))
		},
		samples: sliceSamples,
	})
}

func sliceShape(n *ir.Node) (ir.Shape, error) {
	a, x := n.Attrs().(*SliceAttrs), n.Input(0).Shape()
	if len(a.Start) != len(x) || len(a.Size) != len(x) || len(a.Stride) != len(x) {
		return nil, ir.Attrf("start, size and stride have %d, %d and %d entries for %d axes", len(a.Start), len(a.Size), len(a.Stride), len(x))
	}
	for i, d := range x {
		if a.Stride[i] < 1 {
			return nil, ir.Attrf("the stride of axis %d is %d", i, a.Stride[i])
		}
		if !a.Start[i].Valid() || !a.Size[i].Valid() {
			return nil, ir.Attrf("start or size of axis %d is negative", i)
		}
		end := a.Start[i].Add(dilated(a.Size[i], a.Stride[i]))
		if !d.Sub(end).Valid() {
			return nil, ir.Shapef("axis %d of size %s ends before element %s, of which a slice needs all", i, d, end)
		}
	}
	return a.Size, nil
}

func transposeSlice(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value {
	a, x := n.Attrs().(*SliceAttrs), n.Input(0).Shape()
	high, interior := make([]ir.Dim, len(x)), make([]int, len(x))
	for i, d := range x {
		high[i] = d.Sub(a.Start[i]).Sub(dilated(a.Size[i], a.Stride[i]))
		interior[i] = a.Stride[i] - 1
	}
	return PadDims(b, ct, Zeros(b, ct.DType()), a.Start, high, interior)
}

func sliceSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ dims, start, size, stride []int }{
		{[]int{}, []int{}, []int{}, []int{}},
		{[]int{5}, []int{1}, []int{3}, []int{1}},
		{[]int{5}, []int{5}, []int{0}, []int{2}},
		{[]int{0, 3}, []int{0, 1}, []int{0, 2}, []int{1, 1}},
		{[]int{1, 1}, []int{0, 0}, []int{1, 1}, []int{1, 3}},
		{[]int{67, 131}, []int{2, 1}, []int{22, 65}, []int{3, 2}},
		{[]int{2, 9, 2}, []int{0, 0, 1}, []int{2, 3, 1}, []int{1, 4, 1}},
	} {
		out = append(out, ir.Sample{
			Name:  shapeName(c.dims),
			Attrs: &SliceAttrs{ir.Dims(c.start...), ir.Dims(c.size...), c.stride},
			In:    []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...)},
		})
	}
	return append(out, ofTypes(&SliceAttrs{ir.Dims(1), ir.Dims(2), []int{3}}, 5)...)
}

func definePad() {
	define(&ir.Def{
		Op: OpPad, Doc: "x with copies of a value put before, after and between its elements, along each axis.",
		Operands: []string{"x", "value"}, NewAttrs: func() ir.Attrs { return &PadAttrs{} },
		Constraints: numbered(
			"x and value have one element type, which is "+plain.String()+"; value has rank 0",
			"low, high and interior have an entry for each axis of x, none negative",
			"an axis of size n becomes low + n + (n − 1)·interior + high long, low + high for n = 0; a symbolic n with interior padding is taken not to be 0",
		),
		Infer:     inferPad,
		Eval:      evalPad,
		JVP:       jvpPad,
		Transpose: transposeEach(transposePad),
		Batch:     batchPad,
		Lower:     &ir.MapLowering{Element: padElement},
		Samples:   samples(padSamples),
	})
}

func inferPad(n *ir.Node) ([]ir.Type, error) {
	a, x, value := n.Attrs().(*PadAttrs), n.Input(0).Type(), n.Input(1).Type()
	if err := plain.check(x.DType); err != nil {
		return nil, err
	}
	if value.DType != x.DType {
		return nil, ir.DTypef("%s is padded with %s", x.DType, value.DType)
	}
	if value.Shape.Rank() != 0 {
		return nil, ir.Shapef("the padding value has shape %s", value.Shape)
	}
	rank := len(x.Shape)
	if len(a.Low) != rank || len(a.High) != rank || len(a.Interior) != rank {
		return nil, ir.Attrf("low, high and interior have %d, %d and %d entries for %d axes", len(a.Low), len(a.High), len(a.Interior), rank)
	}
	shape := make(ir.Shape, rank)
	for i, d := range x.Shape {
		if !a.Low[i].Valid() || !a.High[i].Valid() || a.Interior[i] < 0 {
			return nil, ir.Attrf("the padding of axis %d is negative", i)
		}
		shape[i] = a.Low[i].Add(dilated(d, a.Interior[i]+1)).Add(a.High[i])
	}
	return []ir.Type{{DType: x.DType, Shape: shape}}, nil
}

func evalPad(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	for i := range out.Len() {
		copyElement(out, i, in[1], 0)
	}
	a := n.Attrs().(*PadAttrs)
	low := sizes(a.Low)
	to := make([]int, len(out.Dims))
	positions(in[0].Dims, func(i int, at []int) {
		for axis, p := range at {
			to[axis] = low[axis] + p*(a.Interior[axis]+1)
		}
		copyElement(out, offset(out.Dims, to), in[0], i)
	})
	return []*ir.Array{out}, nil
}

func jvpPad(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
	if !t[0].Valid() && !t[1].Valid() {
		return []ir.Value{{}}
	}
	return b.Add(OpPad, n.Attrs(), orZeros(b, t[0], in[0]), orZeros(b, t[1], in[1]))
}

// transposePad takes back what fell on x, or sums all that fell beside it.
func transposePad(b *ir.Builder, n *ir.Node, operand int, _ []ir.Value, ct ir.Value) ir.Value {
	a, x := n.Attrs().(*PadAttrs), n.Input(0).Shape()
	if operand == 0 {
		stride := make([]int, len(x))
		for i, between := range a.Interior {
			stride[i] = between + 1
		}
		return Slice(b, ct, a.Low, x, stride)
	}
	beside := PadDims(b, Zeros(b, ir.Bool, x...), Ones(b, ir.Bool), a.Low, a.High, a.Interior)
	return sumOver(b, Select(b, beside, ct, ZerosLike(b, ct)), counting(0, ct.Rank()))
}

// batchPad pads along all axes but the batch axis. Where it is the value that
// is batched, the padding differs from example to example: it is chosen
// element by element.
func batchPad(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
	a := n.Attrs().(*PadAttrs)
	x := batchAt(b, in[0], axes[0], 0, size)
	low, high := slices.Insert(slices.Clone(a.Low), 0, ir.N(0)), slices.Insert(slices.Clone(a.High), 0, ir.N(0))
	interior := slices.Insert(slices.Clone(a.Interior), 0, 0)
	if axes[1] < 0 {
		return []ir.Value{PadDims(b, x, in[1], low, high, interior)}, []int{0}
	}
	beside := PadDims(b, Zeros(b, ir.Bool, x.Shape()...), Ones(b, ir.Bool), low, high, interior)
	padded := PadDims(b, x, Zeros(b, x.DType()), low, high, interior)
	value := BroadcastInDim(b, in[1], padded.Shape(), []int{0})
	return []ir.Value{Select(b, beside, value, padded)}, []int{0}
}

func padElement(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
	a := n.Attrs().(*PadAttrs)
	dims, all := sizes(n.Input(0).Shape()), sizes(n.Types()[0].Shape)
	from := make(ir.Index, len(at))
	var inside scalar.Expr
	for i, low := range sizes(a.Low) {
		var valid scalar.Expr
		from[i], valid = strided(scalar.Sub(at[i], int32Const(low)), a.Interior[i]+1, dims[i], -low, all[i]-1-low)
		inside = both(inside, valid)
	}
	if slices.Contains(dims, 0) {
		return load(1, nil)
	}
	if inside == nil {
		return load(0, from)
	}
	return scalar.Select(inside, load(0, from), load(1, nil))
}

func padSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct{ dims, low, high, interior []int }{
		{[]int{}, []int{}, []int{}, []int{}},
		{[]int{3}, []int{1}, []int{2}, []int{0}},
		{[]int{0}, []int{2}, []int{1}, []int{3}},
		{[]int{0, 2}, []int{0, 1}, []int{0, 0}, []int{0, 0}},
		{[]int{1, 1}, []int{0, 2}, []int{1, 0}, []int{5, 5}},
		{[]int{67, 43}, []int{3, 1}, []int{0, 4}, []int{0, 2}},
		{[]int{2, 3, 2}, []int{0, 0, 0}, []int{0, 0, 0}, []int{1, 0, 2}},
	} {
		out = append(out, ir.Sample{
			Name:  shapeName(c.dims),
			Attrs: &PadAttrs{ir.Dims(c.low...), ir.Dims(c.high...), c.interior},
			In:    []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...), draw(2, ir.F32, -2, 2)},
		})
	}
	for _, d := range []ir.DType{ir.Bool, ir.I32, ir.U8, ir.U64, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), Attrs: &PadAttrs{ir.Dims(1), ir.Dims(2), []int{1}}, In: []*ir.Array{draw(1, d, -9, 9, 4), draw(2, d, -9, 9)}})
	}
	return out
}

func defineConcatenate() {
	define(&ir.Def{
		Op: OpConcatenate, Doc: "The operands one after the other along an axis.",
		Operands: []string{"operands..."}, NewAttrs: func() ir.Attrs { return &AxisAttrs{} },
		Constraints: numbered(
			"there is at least one operand, of rank 1 or more; all have one element type, which is "+plain.String(),
			"the operands have one shape but for the axis; along it, the result is as long as all of them",
		),
		Infer: inferConcatenate,
		Eval:  evalConcatenate,
		JVP: func(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
			if !slices.ContainsFunc(t, ir.Value.Valid) {
				return []ir.Value{{}}
			}
			full := make([]ir.Value, len(t))
			for i := range t {
				full[i] = orZeros(b, t[i], in[i])
			}
			return b.Add(OpConcatenate, n.Attrs(), full...)
		},
		Transpose: transposeEach(func(b *ir.Builder, n *ir.Node, operand int, _ []ir.Value, ct ir.Value) ir.Value {
			axis, start := n.Attrs().(*AxisAttrs).Axis, ir.N(0)
			for _, v := range n.Inputs()[:operand] {
				start = start.Add(v.Dim(axis))
			}
			return SliceAxis(b, ct, axis, start, n.Input(operand).Dim(axis))
		}),
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
			front := make([]ir.Value, len(in))
			for i, x := range in {
				front[i] = batchAt(b, x, axes[i], 0, size)
			}
			return []ir.Value{Concatenate(b, n.Attrs().(*AxisAttrs).Axis+1, front...)}, []int{0}
		},
		Lower:   &ir.MapLowering{Element: concatenateElement},
		Samples: samples(concatenateSamples),
	})
}

func inferConcatenate(n *ir.Node) ([]ir.Type, error) {
	axis := n.Attrs().(*AxisAttrs).Axis
	if len(n.Inputs()) == 0 {
		return nil, ir.Shapef("there is nothing to concatenate")
	}
	first := n.Input(0).Type()
	if err := plain.check(first.DType); err != nil {
		return nil, err
	}
	if err := checkAxes([]int{axis}, first.Shape.Rank()); err != nil {
		return nil, err
	}
	shape := first.Shape.Clone()
	shape[axis] = ir.N(0)
	for i, v := range n.Inputs() {
		if v.DType() != first.DType {
			return nil, ir.DTypef("operand %d is %s, operand 0 is %s", i, v.DType(), first.DType)
		}
		if v.Rank() != len(shape) {
			return nil, ir.Shapef("operand %d is %s, operand 0 is %s", i, v.Type(), first)
		}
		for a, d := range v.Shape() {
			if a != axis && d != shape[a] {
				return nil, ir.Shapef("operand %d is %s, operand 0 is %s: they differ along axis %d", i, v.Type(), first, a)
			}
		}
		shape[axis] = shape[axis].Add(v.Dim(axis))
	}
	return []ir.Type{{DType: first.DType, Shape: shape}}, nil
}

func evalConcatenate(_ *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	axis, start := n.Attrs().(*AxisAttrs).Axis, 0
	for _, x := range in {
		positions(x.Dims, func(i int, at []int) {
			at[axis] += start
			copyElement(out, offset(out.Dims, at), x, i)
			at[axis] -= start
		})
		start += x.Dims[axis]
	}
	return []*ir.Array{out}, nil
}

// concatenateElement chooses among one load from each operand; those that are
// not chosen are kept inside their operand.
func concatenateElement(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
	axis := n.Attrs().(*AxisAttrs).Axis
	end, _ := n.Types()[0].Shape[axis].Const()
	var chosen scalar.Expr
	for k := len(n.Inputs()) - 1; k >= 0; k-- {
		size, _ := n.Input(k).Dim(axis).Const()
		start := end - size
		if size > 0 {
			from := slices.Clone(at)
			from[axis] = scalar.Clamp(scalar.Sub(at[axis], int32Const(start)), int32Const(0), int32Const(size-1))
			element := load(k, from)
			if chosen != nil {
				element = scalar.Select(scalar.Lt(at[axis], int32Const(end)), element, chosen)
			}
			chosen = element
		}
		end = start
	}
	if chosen == nil {
		return scalar.Const(n.Types()[0].DType, 0) // of an empty result
	}
	return chosen
}

func concatenateSamples() []ir.Sample {
	var out []ir.Sample
	for _, c := range []struct {
		axis int
		dims [][]int
	}{
		{0, [][]int{{3}}}, {0, [][]int{{0}, {0}}}, {0, [][]int{{2}, {0}, {3}}}, {1, [][]int{{1, 1}, {1, 1}}},
		{1, [][]int{{67, 30}, {67, 1}, {67, 100}}}, {0, [][]int{{2, 3}, {1, 3}}}, {1, [][]int{{0, 2}, {0, 1}}},
	} {
		s := ir.Sample{Name: shapeName(c.dims[0]), Attrs: &AxisAttrs{c.axis}}
		for i, dims := range c.dims {
			s.In = append(s.In, draw(uint64(i), ir.F32, -2, 2, dims...))
		}
		out = append(out, s)
	}
	for _, d := range []ir.DType{ir.Bool, ir.I32, ir.U8, ir.U64, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), Attrs: &AxisAttrs{0}, In: []*ir.Array{draw(1, d, -9, 9, 3), draw(2, d, -9, 9, 2)}})
	}
	return out
}

func defineReverse() {
	defineMove(move{
		op: OpReverse, doc: "x with the order of its elements turned round along some axes.",
		constraints: []string{"the axes are distinct axes of x"},
		newAttrs:    func() ir.Attrs { return &AxesAttrs{} },
		shape: func(n *ir.Node) (ir.Shape, error) {
			return n.Input(0).Shape(), checkAxes(axesOf(n), n.Input(0).Rank())
		},
		source: func(n *ir.Node, at, from []int) []int {
			copy(from, at)
			for _, a := range axesOf(n) {
				d, _ := n.Input(0).Dim(a).Const()
				from[a] = d - 1 - at[a]
			}
			return from
		},
		index: func(n *ir.Node, at ir.Index) ir.Index {
			out := slices.Clone(at)
			for _, a := range axesOf(n) {
				d, _ := n.Input(0).Dim(a).Const()
				out[a] = scalar.Sub(int32Const(d-1), at[a])
			}
			return out
		},
		transpose: func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value { return b.Add1(OpReverse, n.Attrs(), ct) },
		batch: func(b *ir.Builder, n *ir.Node, x ir.Value, _ ir.Dim) ir.Value {
			return b.Add1(OpReverse, &AxesAttrs{shifted(axesOf(n), 0)}, x)
		},
		samples: func() []ir.Sample {
			var out []ir.Sample
			for _, c := range []struct{ dims, axes []int }{
				{[]int{}, []int{}}, {[]int{5}, []int{0}}, {[]int{0, 2}, []int{0, 1}}, {[]int{1, 1}, []int{0}},
				{[]int{67, 131}, []int{1}}, {[]int{2, 3, 4}, []int{0, 2}},
			} {
				out = append(out, ir.Sample{Name: shapeName(c.dims), Attrs: &AxesAttrs{c.axes}, In: []*ir.Array{draw(1, ir.F32, -2, 2, c.dims...)}})
			}
			return append(out, ofTypes(&AxesAttrs{[]int{1}}, 2, 3)...)
		},
	})
}

// Slice returns part of x: for each axis, size elements from start on, stride
// apart; a nil stride stands for 1 everywhere. Sizes, not ends, are given, so
// that the shape of the result stays exact with symbolic axes.
func Slice(b *ir.Builder, x ir.Value, start, size []ir.Dim, stride []int) ir.Value {
	if stride == nil {
		stride = repeatInt(1, x.Rank())
	}
	return b.Add1(OpSlice, &SliceAttrs{slices.Clone(start), slices.Clone(size), slices.Clone(stride)}, x)
}

// SliceAxis returns size elements of one axis from start on, and all of the
// others; x itself where those are all there are.
func SliceAxis(b *ir.Builder, x ir.Value, axis int, start, size ir.Dim) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	axis = fromFront([]int{axis}, x.Rank())[0]
	if err := checkAxes([]int{axis}, x.Rank()); err != nil {
		b.Failf(OpSlice, []ir.Value{x}, err)
		return ir.Value{}
	}
	if start.Is(0) && size == x.Dim(axis) {
		return x
	}
	from, to := ir.Dims(repeatInt(0, x.Rank())...), x.Shape().Clone()
	from[axis], to[axis] = start, size
	return Slice(b, x, from, to, nil)
}

// Pad returns x with copies of a value of rank 0 put, along each axis, before,
// after and between its elements. Negative low and high cut elements off, after
// the padding in between; a nil interior stands for 0 everywhere. Cutting off
// needs no more than a whole axis.
func Pad(b *ir.Builder, x, value ir.Value, low, high, interior []int) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	if interior == nil {
		interior = repeatInt(0, x.Rank())
	}
	if len(low) != x.Rank() || len(high) != x.Rank() {
		b.Failf(OpPad, []ir.Value{x, value}, ir.Attrf("low and high have %d and %d entries for %d axes", len(low), len(high), x.Rank()))
		return ir.Value{}
	}
	grow := [2]ir.Shape{make(ir.Shape, x.Rank()), make(ir.Shape, x.Rank())}
	cut := [2]ir.Shape{make(ir.Shape, x.Rank()), make(ir.Shape, x.Rank())}
	for side, by := range [2][]int{low, high} {
		for i, d := range by {
			grow[side][i], cut[side][i] = ir.N(max(d, 0)), ir.N(max(-d, 0))
		}
	}
	y := PadDims(b, x, value, grow[0], grow[1], interior)
	if b.Err() != nil || slices.Min(append([]int{0}, slices.Concat(low, high)...)) == 0 {
		return y
	}
	size := y.Shape().Clone()
	for i, d := range size {
		if size[i] = d.Sub(cut[0][i]).Sub(cut[1][i]); !size[i].Valid() {
			b.Failf(OpPad, []ir.Value{x, value}, ir.Shapef("axis %d, of size %s once padded, is cut by more than that", i, d))
			return ir.Value{}
		}
	}
	return Slice(b, y, cut[0], size, nil)
}

// PadDims is [Pad] with sizes that may be symbolic, and none negative.
func PadDims(b *ir.Builder, x, value ir.Value, low, high []ir.Dim, interior []int) ir.Value {
	return b.Add1(OpPad, &PadAttrs{slices.Clone(low), slices.Clone(high), slices.Clone(interior)}, x, value)
}

// Concatenate returns the operands one after the other along an axis.
func Concatenate(b *ir.Builder, axis int, in ...ir.Value) ir.Value {
	if len(in) > 0 {
		axis = fromFront([]int{axis}, in[0].Rank())[0]
	}
	return b.Add1(OpConcatenate, &AxisAttrs{axis}, in...)
}

// Reverse returns x with the order of its elements turned round along some
// axes.
func Reverse(b *ir.Builder, x ir.Value, axes ...int) ir.Value {
	return b.Add1(OpReverse, &AxesAttrs{fromFront(axes, x.Rank())}, x)
}
