package forms

import (
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

// moves emits reshapes and transposes, and omits those that change nothing. Shapes are those of the
// graph, of any rank; tensors have the folded ones.
type moves struct {
	*mil.Builder
	before map[string]mil.Ref // from the name of a reshaped tensor to its source
}

// Whole returns a value broadcast to its full shape.
func (m *moves) Whole(v Value) mil.Ref {
	if slices.Equal(v.Ref.Type.Dims, v.Dims) || m.Err() != nil {
		return v.Ref
	}
	small := slices.Concat(slices.Repeat([]int{1}, len(v.Dims)-len(v.Ref.Type.Dims)), v.Ref.Type.Dims)
	reps := make([]int, len(small))
	for i, d := range v.Dims {
		reps[i] = d / small[i]
	}
	return m.tile(m.reshape(v.Ref, small), reps)
}

// value returns a tensor with a value's shape in the graph.
func (m *moves) value(r mil.Ref, dims []int) Value {
	folded := fold(dims)
	return Value{m.reshape(r, folded), folded}
}

// reshape changes the shape of a tensor. It returns the source if that had this shape, and reshapes
// constants at once.
func (m *moves) reshape(r mil.Ref, dims []int) mil.Ref {
	if before, ok := m.before[r.Name]; ok {
		r = before
	}
	switch {
	case slices.Equal(r.Type.Dims, dims) || m.Err() != nil:
		return r
	case r.Value != nil:
		return m.Const(r.Value.Reshaped(dims))
	}
	y := m.Op("reshape", mil.Args{"x": r, "shape": dims})
	if m.before == nil {
		m.before = map[string]mil.Ref{}
	}
	m.before[y.Name] = r
	return y
}

func (m *moves) tile(r mil.Ref, reps []int) mil.Ref {
	if !slices.ContainsFunc(reps, func(n int) bool { return n != 1 }) {
		return r
	}
	return m.Op("tile", mil.Args{"x": r, "reps": reps})
}

// transpose permutes the axes of a tensor with the given shape and returns it with its new, folded
// shape. Axes that stay adjacent move as one.
func (m *moves) transpose(r mil.Ref, dims, perm []int) (mil.Ref, []int) {
	out := permute.Pick(dims, perm)
	runs := neighbours(dims, perm)
	if len(runs) > 1 {
		first := make([]int, len(runs)) // of each run, in the order of the result
		for i, run := range runs {
			first[i] = run[0]
		}
		order := slices.Sorted(slices.Values(first))
		merged, moved := make([]int, len(runs)), make([]int, len(runs))
		for i, run := range runs {
			at := slices.Index(order, run[0])
			moved[i] = at
			for _, axis := range run {
				merged[at] = max(merged[at], 1) * dims[axis]
			}
		}
		if len(runs) > maxRank {
			m.Fail(ir.Errorf(ir.ErrUnsupported, "a transpose moves %d axes; Core ML has tensors of up to five", len(runs)))
			return mil.Ref{}, out
		}
		r = m.permute(m.reshape(r, merged), moved)
	}
	return m.reshape(r, fold(out)), out
}

// permute moves the axes of a tensor; constants are moved here.
func (m *moves) permute(r mil.Ref, perm []int) mil.Ref {
	switch {
	case slices.IsSorted(perm) || m.Err() != nil:
		return r
	case r.Value != nil:
		return m.Const(r.Value.Transposed(perm))
	}
	return m.Op("transpose", mil.Args{"x": r, "perm": perm})
}

// neighbours cuts a permutation into runs of axes that follow each other before
// and after it. Axes of size 1 are left out.
func neighbours(dims, perm []int) [][]int {
	var runs [][]int
	next := -1
	for _, axis := range perm {
		if dims[axis] == 1 {
			continue
		}
		if axis != next || len(runs) == 0 {
			runs = append(runs, nil)
		}
		last := len(runs) - 1
		runs[last] = append(runs[last], axis)
		for next = axis + 1; next < len(dims) && dims[next] == 1; next++ {
		}
	}
	return runs
}

// around reshapes a tensor to three axes: those before an axis, the axis, and those after
// it.
func (m *moves) around(r mil.Ref, dims []int, axis int) mil.Ref {
	return m.reshape(r, []int{product(dims[:axis]), dims[axis], product(dims[axis+1:])})
}

// along returns a tensor to work on along an axis, and the number of that axis in it:
// the tensor itself where its rank is not too large for Core ML.
func (m *moves) along(r mil.Ref, dims []int, axis int) (mil.Ref, int) {
	if len(dims) <= maxRank {
		return r, axis
	}
	return m.around(r, dims, axis), 1
}

// cut returns the elements of an axis from start to end by steps.
func (m *moves) cut(r mil.Ref, dims []int, axis, start, end, step int) (mil.Ref, []int) {
	if start == 0 && end == dims[axis] && step == 1 {
		return r, dims
	}
	out := slices.Clone(dims)
	out[axis] = (end - start + step - 1) / step
	x, axis := m.along(r, dims, axis)
	rank := len(x.Type.Dims)
	begin, stop, stride := make([]int, rank), slices.Clone(x.Type.Dims), slices.Repeat([]int{1}, rank)
	begin[axis], stop[axis], stride[axis] = start, end, step
	x = m.Op("slice_by_index", mil.Args{"x": x, "begin": begin, "end": stop, "stride": stride})
	return m.reshape(x, fold(out)), out
}

// join lays tensors side by side along an axis, given the sizes of each.
func (m *moves) join(parts []mil.Ref, dims [][]int, axis int) (mil.Ref, []int) {
	out := slices.Clone(dims[0])
	out[axis] = 0
	values := make([]mil.Ref, len(parts))
	for i, p := range parts {
		out[axis] += dims[i][axis]
		if values[i] = p; len(out) > maxRank {
			values[i] = m.around(p, dims[i], axis)
		}
	}
	if len(parts) == 1 {
		return parts[0], out
	}
	at := axis
	if len(out) > maxRank {
		at = 1
	}
	r := m.Op("concat", mil.Args{"values": values, "axis": at, "interleave": false})
	return m.reshape(r, fold(out)), out
}

// filled returns a tensor of the given sizes whose elements are all a number,
// given as a tensor of one element.
func (m *moves) filled(number mil.Ref, dims []int) mil.Ref {
	return m.Whole(Value{number, fold(dims)})
}

// extend adds elements with a value before and after those of an axis.
func (m *moves) extend(r mil.Ref, dims []int, axis, low, high int, with mil.Ref) (mil.Ref, []int) {
	if low == 0 && high == 0 {
		return r, dims
	}
	out := slices.Clone(dims)
	out[axis] += low + high
	if r.Type.DType.IsFloat() && with.Value != nil && with.Value.Type.Len() == 1 {
		x, at := m.along(r, dims, axis)
		pad := make([]int, 2*len(x.Type.Dims))
		pad[2*at], pad[2*at+1] = low, high
		x = m.Op("pad", mil.Args{"x": x, "pad": pad, "mode": "constant", "constant_val": with.Value.Number(0)})
		return m.reshape(x, fold(out)), out
	}
	var parts []mil.Ref
	var sizes [][]int
	block := func(size int) {
		if size > 0 {
			part := slices.Clone(dims)
			part[axis] = size
			parts, sizes = append(parts, m.filled(with, part)), append(sizes, part)
		}
	}
	block(low)
	parts, sizes = append(parts, r), append(sizes, dims)
	block(high)
	return m.join(parts, sizes, axis)
}

// spread lays a number of elements with a value between those of an axis.
func (m *moves) spread(r mil.Ref, dims []int, axis, between int, with mil.Ref) (mil.Ref, []int) {
	if between == 0 || dims[axis] == 1 {
		return r, dims
	}
	n := dims[axis]
	view := []int{product(dims[:axis]) * n, 1, product(dims[axis+1:])}
	x, _ := m.extend(m.reshape(r, view), view, 1, 0, between, with)
	out := slices.Clone(dims)
	out[axis] = n * (between + 1)
	return m.cut(m.reshape(x, fold(out)), out, axis, 0, out[axis]-between, 1)
}
