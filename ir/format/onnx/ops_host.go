package onnx

import (
	"cmp"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// The results of these ops have a size that the operands decide, which must be known at import.
func init() {
	add("NonZero", single(nonZero))
	add("Compress", single(compress))
	add("Unique", unique)
	add("NonMaxSuppression", single(suppress))
}

func nonZero(c *call) ir.Value {
	a := c.known(0)
	if a == nil {
		return ir.Value{}
	}
	rank := max(len(a.Dims), 1)
	lists := make([][]int64, rank)
	n := 0
	for i := range a.Len() {
		if a.Float(i) == 0 {
			continue
		}
		n++
		rest := i
		for axis := rank - 1; axis >= 0; axis-- {
			size := 1
			if axis < len(a.Dims) {
				size = a.Dims[axis]
			}
			lists[axis] = append(lists[axis], int64(rest%size))
			rest /= size
		}
	}
	return ops.Literal(c.b, ir.Ints(ir.I64, slices.Concat(lists...), rank, n))
}

func compress(c *call) ir.Value {
	x, chosen := c.x(0), c.known(1)
	if chosen == nil {
		return ir.Value{}
	}
	axis := 0
	if c.hasAttr("axis") {
		axis = c.axis("axis", 0, x.Rank())
	} else {
		x = ops.Reshape(c.b, x, x.Shape().Size())
	}
	var at []int64
	for i, on := range chosen.I {
		if on != 0 {
			at = append(at, int64(i))
		}
	}
	return ops.Take(c.b, x, ops.Literal(c.b, ir.Ints(ir.I64, at, len(at))), axis, ops.OutsideClip)
}

// unique returns the distinct slices along an axis, or elements, with the index of the first of each,
// the index of each slice among them, and their counts.
func unique(c *call) []ir.Value {
	a := c.known(0)
	if a == nil {
		return nil
	}
	if a.Len() > foldElements { // the time is that of all pairs
		c.failf("the operand has %d elements: it must have at most %d", a.Len(), foldElements)
		return nil
	}
	axis, count, inner := 0, a.Len(), 1
	outer := 1
	if c.hasAttr("axis") {
		axis = c.axis("axis", 0, len(a.Dims))
		if c.err != nil || len(a.Dims) == 0 {
			return nil
		}
		count, inner, outer = a.Dims[axis], 1, 1
		for _, d := range a.Dims[axis+1:] {
			inner *= d
		}
		for _, d := range a.Dims[:axis] {
			outer *= d
		}
	}
	first, inverse, counts := distinct(count, c.int("sorted", 1) != 0, func(i, k int) int {
		for o := range outer {
			for n := range inner {
				if r := cmp.Compare(a.Float((o*count+i)*inner+n), a.Float((o*count+k)*inner+n)); r != 0 {
					return r
				}
			}
		}
		return 0
	})
	x := c.x(0)
	if !c.hasAttr("axis") {
		x = ops.Reshape(c.b, x, x.Shape().Size())
	}
	literal := func(list []int64) ir.Value { return ops.Literal(c.b, ir.Ints(ir.I64, list, len(list))) }
	at := literal(first)
	return []ir.Value{ops.Take(c.b, x, at, axis, ops.OutsideClip), at, literal(inverse), literal(counts)}
}

// distinct returns the first of each set of equal items among n, in their order or sorted; for each item
// the index of its set; and the size of each set. Its time is that of all pairs.
func distinct(n int, sorted bool, compare func(i, k int) int) (first, inverse, counts []int64) {
	order := all(n)
	slices.SortStableFunc(order, compare)
	for i, at := range order {
		if i == 0 || compare(order[i-1], at) != 0 {
			first = append(first, int64(at))
		}
	}
	if !sorted {
		slices.Sort(first)
	}
	inverse, counts = make([]int64, n), make([]int64, len(first))
	for i := range n {
		k := max(slices.IndexFunc(first, func(at int64) bool { return compare(int(at), i) == 0 }), 0)
		inverse[i] = int64(k)
		counts[k]++
	}
	return first, inverse, counts
}

// corners returns the lower and upper corner of a box.
func corners(box []float64, centred bool) (y1, x1, y2, x2 float64) {
	if centred {
		return box[1] - box[3]/2, box[0] - box[2]/2, box[1] + box[3]/2, box[0] + box[2]/2
	}
	return min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])
}

// overlap returns the area that two boxes share divided by the area of both.
func overlap(a, b []float64, centred bool) float64 {
	ay1, ax1, ay2, ax2 := corners(a, centred)
	by1, bx1, by2, bx2 := corners(b, centred)
	shared := max(min(ay2, by2)-max(ay1, by1), 0) * max(min(ax2, bx2)-max(ax1, bx1), 0)
	if shared == 0 {
		return 0
	}
	return shared / ((ay2-ay1)*(ax2-ax1) + (by2-by1)*(bx2-bx1) - shared)
}

// suppress picks for each batch and class the boxes of the highest scores that overlap none picked
// before by more than a threshold.
func suppress(c *call) ir.Value {
	boxes, scores := c.known(0), c.known(1)
	if boxes == nil || scores == nil {
		return ir.Value{}
	}
	if len(boxes.Dims) != 3 || len(scores.Dims) != 3 || boxes.Dims[2] != 4 || scores.Dims[0] != boxes.Dims[0] || scores.Dims[2] != boxes.Dims[1] {
		c.fail(ir.Shapef("boxes are %v and scores %v: they must be [batch, boxes, 4] and [batch, classes, boxes]", boxes.Dims, scores.Dims))
		return ir.Value{}
	}
	if boxes.Len() > 4*foldElements {
		c.failf("there are %d boxes: there must be at most %d", boxes.Len()/4, foldElements)
		return ir.Value{}
	}
	limit := c.knownInt(2, 0)
	threshold := func(i int) (float64, bool) {
		if !c.has(i) {
			return 0, false
		}
		list := c.knownFloats(i)
		if len(list) != 1 {
			return 0, false
		}
		return list[0], true
	}
	maxOverlap, _ := threshold(3)
	minScore, bounded := threshold(4)
	n, classes := boxes.Dims[1], scores.Dims[1]
	box := func(batch, i int) []float64 { return boxes.F[(batch*n+i)*4:][:4] }
	var out []int64
	for batch := range boxes.Dims[0] {
		for class := range classes {
			score := scores.F[(batch*classes+class)*n:][:n]
			order := all(n)
			slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(score[k], score[i]) })
			var picked []int
			for _, i := range order {
				disjoint := !slices.ContainsFunc(picked, func(k int) bool {
					return overlap(box(batch, i), box(batch, k), c.bool("center_point_box")) > maxOverlap
				})
				if len(picked) < limit && disjoint && (!bounded || score[i] > minScore) {
					picked = append(picked, i)
					out = append(out, int64(batch), int64(class), int64(i))
				}
			}
		}
	}
	return ops.Literal(c.b, ir.Ints(ir.I64, out, len(out)/3, 3))
}
