package padding

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// reverse reads the elements of an open axis from its true end.
func reverse(p *ir.Padding) error {
	axes := p.Node.Attrs().(*ops.AxesAttrs).Axes
	p.Out = [][]ir.Extent{slices.Clone(p.In[0])}
	var open, closed []int
	for _, axis := range axes {
		e, err := p.Plain(0, axis)
		if err != nil {
			return err
		}
		if p.In[0][axis] != nil && p.IsOpen(e) {
			open = append(open, axis)
		} else {
			closed = append(closed, axis)
		}
	}
	if len(open) == 0 {
		return nil
	}
	p.Emit = func(e ir.PadEmitter, in []ir.Value) []ir.Value {
		b, x := e.Builder(), in[0]
		if len(closed) > 0 {
			x = ops.Reverse(b, x, closed...)
		}
		for _, axis := range open {
			last := ops.Sub(b, e.Size(p.Node.Input(0).Dim(axis)), ops.Const(b, ir.I32, 1))
			x = window(b, x, axis, ops.Sub(b, last, ops.Iota(b, ir.I32, 0, x.Dim(axis))))
		}
		return []ir.Value{x}
	}
	return nil
}

// window returns the elements of x along an axis at the given positions, i32 of rank 1. Positions
// outside are clamped.
func window(b *ir.Builder, x ir.Value, axis int, places ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	out := ops.Gather(b, x, ops.ExpandDims(b, places, -1), ops.GatherAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{axis}, Outside: ops.OutsideClip}})
	perm := make([]int, x.Rank()) // the gathered axis comes first
	for i := range perm {
		switch {
		case i < axis:
			perm[i] = i + 1
		case i > axis:
			perm[i] = i
		}
	}
	return ops.Transpose(b, out, perm...)
}

// slice reads from constant positions, or from true sizes.
func slice(p *ir.Padding) error {
	a, x := p.Node.Attrs().(*ops.SliceAttrs), p.Node.Input(0).Shape()
	out := slices.Clone(p.In[0])
	moves := make([]bool, len(x))
	for axis, d := range x {
		if a.Start[axis].Is(0) && a.Stride[axis] == 1 && a.Size[axis] == d {
			continue
		}
		if _, err := p.Plain(0, axis); err != nil {
			return err
		}
		if p.In[0][axis] != nil {
			out[axis] = ir.ExtentOf(a.Size[axis])
		}
		last := a.Start[axis].Add(a.Size[axis].Sub(ir.N(1)).Mul(ir.N(a.Stride[axis]))).Add(ir.N(1))
		p.NonNegative = append(p.NonNegative, d.Sub(last))
		moves[axis] = p.Open(a.Start[axis]) || p.Open(a.Size[axis]) && !p.Open(d)
	}
	p.Out = [][]ir.Extent{out}
	if !slices.Contains(moves, true) {
		return nil
	}
	p.Emit = func(e ir.PadEmitter, in []ir.Value) []ir.Value {
		b, y := e.Builder(), in[0]
		start, size, stride := make([]ir.Dim, len(x)), make([]ir.Dim, len(x)), slices.Clone(a.Stride)
		for axis, d := range x {
			start[axis], size[axis] = ir.N(e.Bound(a.Start[axis])), ir.N(e.Bound(a.Size[axis]))
			if moves[axis] {
				start[axis], size[axis], stride[axis] = ir.N(0), ir.N(e.Bound(d)), 1
			}
		}
		y = ops.Slice(b, y, start, size, stride)
		for axis := range x {
			if moves[axis] {
				step := ops.Const(b, ir.I32, float64(a.Stride[axis]))
				places := ops.Mul(b, ops.Iota(b, ir.I32, 0, ir.N(e.Bound(a.Size[axis]))), step)
				y = window(b, y, axis, ops.Add(b, places, e.Size(a.Start[axis])))
			}
		}
		return []ir.Value{y}
	}
	return nil
}

// pad writes after the true end.
func pad(p *ir.Padding) error {
	a, x := p.Node.Attrs().(*ops.PadAttrs), p.Node.Input(0).Shape()
	out := slices.Clone(p.In[0])
	shape := p.Node.Types()[0].Shape
	var masked []int
	moved, emits := make([]bool, len(x)), false
	for axis := range x {
		if a.Low[axis].Is(0) && a.High[axis].Is(0) && a.Interior[axis] == 0 {
			continue
		}
		e, err := p.Plain(0, axis)
		if err != nil {
			return err
		}
		out[axis] = ir.ExtentOf(shape[axis])
		p.NonNegative = append(p.NonNegative, a.Low[axis], a.High[axis])
		if p.IsOpen(e) {
			masked = append(masked, axis)
			if a.Interior[axis] > 0 {
				p.NonNegative = append(p.NonNegative, x[axis].Sub(ir.N(1)))
			}
		}
		if moved[axis] = p.Open(a.Low[axis]); moved[axis] && a.Interior[axis] > 0 {
			return refuse("axis %d has open padding before it, and padding between its elements", axis)
		}
		emits = emits || p.IsOpen(e) || moved[axis] || p.Open(a.High[axis])
	}
	p.Out = [][]ir.Extent{out}
	if !emits {
		return nil
	}
	p.Emit = func(e ir.PadEmitter, in []ir.Value) []ir.Value {
		for _, axis := range masked {
			in[0] = e.Mask(in[0], axis, p.At(0, axis), in[1])
		}
		return []ir.Value{paddedTo(e, a, shape, moved, in)}
	}
	return nil
}

// paddedTo pads x to a shape, or crops it where its own padding is longer. Along moved axes x is padded by
// the bound size of the low padding, and then shifted back by the difference to the true size.
func paddedTo(e ir.PadEmitter, a *ops.PadAttrs, shape ir.Shape, moved []bool, in []ir.Value) ir.Value {
	b := e.Builder()
	low, high, zero, size := make([]ir.Dim, len(shape)), make([]ir.Dim, len(shape)), make([]ir.Dim, len(shape)), make([]ir.Dim, len(shape))
	for axis, d := range shape {
		before, all := e.Bound(a.Low[axis]), e.Bound(d)
		length := before + max(0, (bound(in[0].Dim(axis))-1)*(a.Interior[axis]+1)+1)
		low[axis], high[axis] = ir.N(before), ir.N(max(0, all-length))
		if zero[axis], size[axis] = ir.N(0), ir.N(all); moved[axis] {
			size[axis] = ir.N(max(all, length))
		}
	}
	y := ops.Slice(b, ops.PadDims(b, in[0], in[1], low, high, a.Interior), zero, size, nil)
	for axis, d := range shape {
		if moved[axis] {
			less := ops.Sub(b, ops.Const(b, ir.I32, float64(bound(low[axis]))), e.Size(a.Low[axis]))
			places := ops.Iota(b, ir.I32, 0, ir.N(e.Bound(d)))
			y = filledWindow(b, y, axis, ops.Add(b, places, ops.BroadcastTo(b, less, places.Shape())), in[1])
		}
	}
	return y
}

// filledWindow is [window] with a value where positions are outside.
func filledWindow(b *ir.Builder, x ir.Value, axis int, places, value ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	inside := ops.Lt(b, places, ops.ConstLike(b, places, float64(bound(x.Dim(axis)))))
	y := window(b, x, axis, places)
	return ops.Select(b, ops.BroadcastInDim(b, inside, y.Shape(), []int{axis}), y, ops.BroadcastTo(b, value, y.Shape()))
}

func bound(d ir.Dim) int {
	n, _ := d.Const()
	return n
}

// concatenate puts each operand at the true end of those before it.
func concatenate(p *ir.Padding) error {
	axis := p.Node.Attrs().(*ops.AxisAttrs).Axis
	out := slices.Clone(p.In[0])
	for i := range p.In {
		for other, e := range p.In[i] {
			var err error
			if other == axis {
				_, err = p.Plain(i, axis)
			} else {
				out[other], err = p.Unify(out[other], e)
			}
			if err != nil {
				return err
			}
		}
	}
	out[axis] = ir.ExtentOf(p.Node.Types()[0].Shape[axis])
	p.Out = [][]ir.Extent{out}
	open := func(v ir.Value) bool { return p.Open(v.Dim(axis)) }
	first := slices.IndexFunc(p.Node.Inputs(), open)
	if first < 0 || first == len(p.In)-1 {
		return nil
	}
	p.Emit = func(e ir.PadEmitter, in []ir.Value) []ir.Value {
		b := e.Builder()
		whole := e.Copy(in...)[0]
		places := ops.Iota(b, ir.I32, 0, whole.Dim(axis))
		source, at, from := places, ir.N(0), 0
		for i, v := range p.Node.Inputs() { // from the true position at on, elements are those from position from on
			if i > first {
				shift := ops.Sub(b, ops.Const(b, ir.I32, float64(from)), e.Size(at))
				shifted := ops.Add(b, places, ops.BroadcastTo(b, shift, places.Shape()))
				source = ops.Select(b, ops.Ge(b, places, ops.BroadcastTo(b, e.Size(at), places.Shape())), shifted, source)
			}
			at, from = at.Add(v.Dim(axis)), from+e.Bound(v.Dim(axis))
		}
		return []ir.Value{window(b, whole, axis, source)}
	}
	return nil
}

// windows of true elements come first.
func windows(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.WindowsAttrs)
	shape := p.Node.Types()[0].Shape
	out := p.Extents(shape)
	for axis, e := range p.In[0] {
		out[axis] = e
		if slices.Contains(a.Axes, axis) {
			if _, err := p.Plain(0, axis); err != nil {
				return err
			}
			out[axis] = ir.ExtentOf(shape[axis])
		}
	}
	p.Out = [][]ir.Extent{out}
	return nil
}

// overlapAdd must not add windows of padding.
func overlapAdd(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.OverlapAddAttrs)
	shape := p.Node.Types()[0].Shape
	out := slices.Clone(p.In[0][:len(shape)])
	for _, axis := range a.Axes {
		e, err := p.Plain(0, axis)
		if err != nil {
			return err
		}
		p.Fill(0, axis, e, zeros(p.Node.Input(0).DType()))
		out[axis] = ir.ExtentOf(shape[axis])
	}
	p.Out = [][]ir.Extent{out}
	return nil
}

// indexed checks the axes of a gather or a scatter and returns the extents of its positions and windows.
func indexed(p *ir.Padding, a *ops.IndexedAxes) (positions, windows []ir.Extent, err error) {
	for _, axis := range a.Axes {
		if _, err := p.Plain(0, axis); err != nil {
			return nil, nil, err
		}
	}
	positions = slices.Clone(p.In[1][:len(p.In[1])-1])
	for i, axis := range a.OperandBatch {
		at := a.IndexBatch[i]
		if positions[at], err = p.Unify(positions[at], p.In[0][axis]); err != nil {
			return nil, nil, err
		}
	}
	for axis, e := range p.In[0] {
		if !slices.Contains(a.Axes, axis) && !slices.Contains(a.OperandBatch, axis) {
			windows = append(windows, e)
		}
	}
	return positions, windows, nil
}

// opensAny reports whether an indexed axis is open.
func opensAny(p *ir.Padding, a *ops.IndexedAxes) bool {
	return slices.ContainsFunc(a.Axes, func(axis int) bool { return p.IsOpen(p.At(0, axis)) })
}

// gather treats padding as out of range.
func gather(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.GatherAttrs)
	positions, windows, err := indexed(p, &a.IndexedAxes)
	if err != nil {
		return err
	}
	p.Out = [][]ir.Extent{slices.Concat(positions, windows)}
	if !opensAny(p, &a.IndexedAxes) {
		return nil
	}
	if a.Outside == ops.OutsideFill {
		for _, axis := range a.Axes {
			p.Fill(0, axis, p.At(0, axis), scalar.Const(p.Node.Input(0).DType(), a.Fill))
		}
		return nil
	}
	p.NonNegative = lastOf(p, a.Axes)
	p.Emit = func(e ir.PadEmitter, in []ir.Value) []ir.Value {
		return e.Copy(in[0], clamped(e, p.Node.Input(0).Shape(), a.Axes, in[1]))
	}
	return nil
}

// lastOf returns the last positions along axes of the first operand.
func lastOf(p *ir.Padding, axes []int) []ir.Dim {
	var out []ir.Dim
	for _, axis := range axes {
		out = append(out, p.Node.Input(0).Dim(axis).Sub(ir.N(1)))
	}
	return out
}

// clamped returns index tuples clamped to the true sizes of some axes, in 32 or 64 bits.
func clamped(e ir.PadEmitter, x ir.Shape, axes []int, indices ir.Value) ir.Value {
	b := e.Builder()
	if b.Err() != nil {
		return ir.Value{}
	}
	if indices.DType().Size() < 4 {
		indices = ops.Convert(b, indices, ir.I32)
	}
	last := make([]ir.Value, len(axes))
	for i, axis := range axes {
		last[i] = ops.Reshape(b, ops.Convert(b, ops.Sub(b, e.Size(x[axis]), ops.Const(b, ir.I32, 1)), indices.DType()), ir.N(1))
	}
	limit := ops.BroadcastTo(b, ops.Concatenate(b, 0, last...), indices.Shape())
	return ops.Max(b, ops.Min(b, indices, limit), ops.ZerosLike(b, indices))
}

// scatter drops updates that are padding. Indices beyond the true size change padding only.
func scatter(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.ScatterAttrs)
	positions, windows, err := indexed(p, &a.IndexedAxes)
	if err != nil {
		return err
	}
	update := slices.Concat(positions, windows)
	for axis := range update {
		if update[axis], err = p.Unify(update[axis], p.In[2][axis]); err != nil {
			return err
		}
	}
	out, k := slices.Clone(p.In[0]), len(positions)
	for axis := range out {
		switch {
		case slices.Contains(a.Axes, axis):
			out[axis] = p.At(0, axis)
		case slices.Contains(a.OperandBatch, axis):
			out[axis] = update[a.IndexBatch[slices.Index(a.OperandBatch, axis)]]
		default:
			out[axis], k = update[k], k+1
		}
	}
	p.Out = [][]ir.Extent{out}
	return scatterPositions(p, a, update[:len(positions)])
}

// scatterPositions has padding among the positions point outside, and clamps to true sizes.
func scatterPositions(p *ir.Padding, a *ops.ScatterAttrs, positions []ir.Extent) error {
	clamps := a.Outside == ops.OutsideClip
	var open []int
	for axis, e := range positions {
		if e == nil {
			positions[axis] = p.At(1, axis)
		}
		if p.IsOpen(positions[axis]) && !slices.Contains(a.IndexBatch, axis) {
			open = append(open, axis)
		}
	}
	if len(open) == 0 && !(clamps && opensAny(p, &a.IndexedAxes)) {
		return nil
	}
	if len(open) > 0 && len(a.Axes) == 0 {
		return refuse("updates of the whole operand have open positions")
	}
	if d := p.Node.Input(1).DType(); isUnsigned(d) && d.Size() < 4 {
		return refuse("indices of type %s have no value that is always out of range", d)
	}
	if clamps {
		p.NonNegative = lastOf(p, a.Axes)
	}
	p.Emit = func(e ir.PadEmitter, in []ir.Value) []ir.Value {
		if clamps {
			in[1] = clamped(e, p.Node.Input(0).Shape(), a.Axes, in[1])
		}
		if len(open) == 0 {
			return e.Copy(in...)
		}
		value := literal(e.Builder(), outside(in[1].DType()))
		for _, axis := range open {
			in[1] = e.Mask(in[1], axis, positions[axis], value)
		}
		drops := *a
		drops.Outside = ops.OutsideDrop
		drops.Sorted = a.Sorted && len(positions) == 1 // otherwise padding lies between the positions
		return e.Builder().Add(p.Node.Op(), &drops, in...)
	}
	return nil
}

func isUnsigned(d ir.DType) bool {
	lowest, _ := scalar.Extreme(d, -1).Value()
	return lowest.I == 0
}

// outside returns an index that is outside of every axis.
func outside(d ir.DType) scalar.Expr {
	if isUnsigned(d) {
		return highest(d)
	}
	return scalar.ConstI(d, -1)
}
