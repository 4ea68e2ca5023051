package padding

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// part is a part of an axis in a reshape.
type part struct {
	size  ir.Dim
	equal bool // all elements along it are equal
}

// reshape regroups the parts of axes. An axis that is split or merged within the padding of a part has
// true elements at other positions than the padded array has them.
func reshape(p *ir.Padding) error {
	if p.Node.Types()[0].Shape.Size().Is(0) {
		p.Out = [][]ir.Extent{p.Extents(p.Node.Types()[0].Shape)}
		return nil
	}
	var parts []part
	for axis, e := range p.In[0] {
		for _, d := range p.At(0, axis) {
			if !d.Is(1) {
				parts = append(parts, part{d, e == nil})
			}
		}
	}
	shape := p.Node.Types()[0].Shape
	out := make([]ir.Extent, len(shape))
	for axis, want := range shape {
		var taken []part
		var err error
		if taken, parts, err = take(p, parts, want); err != nil {
			return err
		}
		out[axis] = extentOf(p, taken, want)
	}
	p.Out = [][]ir.Extent{out}
	return nil
}

// take returns the parts that make an axis of a size, and the rest.
func take(p *ir.Padding, parts []part, want ir.Dim) (taken, rest []part, err error) {
	for left := want; !left.Is(1); {
		if len(parts) == 0 {
			return nil, nil, refuse("axes are divided within their padding: no parts are left for size %s", want)
		}
		next := parts[0]
		if q, err := left.Div(next.size); err == nil {
			taken, parts, left = append(taken, next), parts[1:], q
			continue
		}
		inner, err := next.size.Div(left)
		if err != nil && len(parts) > 1 && !p.Open(next.size) && !p.Open(parts[1].size) { // parts without padding are one
			both := part{next.size.Mul(parts[1].size), next.equal && parts[1].equal}
			parts = slices.Concat([]part{both}, parts[2:])
			continue
		}
		if _, constant := inner.Const(); err != nil || p.Open(next.size) && !constant && !next.equal {
			return nil, nil, refuse("an axis of size %s is divided within its padding, for one of size %s", next.size, want)
		}
		taken = append(taken, part{left, next.equal})
		parts = slices.Concat([]part{{inner, next.equal}}, parts[1:])
		left = ir.N(1)
	}
	return taken, parts, nil
}

// extentOf returns the extent of an axis of some parts. A part is one with constant parts after it.
func extentOf(p *ir.Padding, parts []part, size ir.Dim) ir.Extent {
	if len(parts) > 0 && !slices.ContainsFunc(parts, func(x part) bool { return !x.equal }) {
		return nil
	}
	var e ir.Extent
	for _, x := range parts {
		if n := len(e); n > 0 && !p.Open(x.size) {
			e[n-1] = e[n-1].Mul(x.size)
			continue
		}
		e = append(e, x.size)
	}
	if len(e) == 0 {
		return ir.ExtentOf(size)
	}
	return e
}

func transpose(p *ir.Padding) error {
	var out []ir.Extent
	for _, axis := range p.Node.Attrs().(*ops.TransposeAttrs).Perm {
		out = append(out, p.In[0][axis])
	}
	p.Out = [][]ir.Extent{out}
	return nil
}

// broadcast makes axes along which all elements are equal.
func broadcast(p *ir.Padding) error {
	a := p.Node.Attrs().(*ops.BroadcastAttrs)
	out := make([]ir.Extent, len(a.Shape))
	for i, axis := range a.Axes {
		if !p.Node.Input(0).Dim(i).Is(1) || a.Shape[axis].Is(1) {
			out[axis] = p.In[0][i]
		}
	}
	p.Out = [][]ir.Extent{out}
	return nil
}
