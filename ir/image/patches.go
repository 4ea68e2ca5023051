package image

import (
	"slices"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// PatchOptions are the options of [Unfold] and [Fold]. Lists have an entry for each spatial axis; one
// entry means all axes.
type PatchOptions struct {
	// Stride is the step of the window, Dilation the step within it; nil means 1.
	Stride, Dilation []int
	// Pad is the number of zeros on both sides; nil means 0.
	Pad []int
}

// Unfold returns the patches of x, [batch, spatial axes..., channels], below each position of a window
// of the given sizes: [batch, positions, channels·elements of the window], as torch.nn.functional.unfold with
// the last two axes exchanged. The channel is the slower index within a patch.
func Unfold(b *ir.Builder, x ir.Value, window []int, o ...PatchOptions) ir.Value {
	c, ok := argument.Of(b, "image.unfold", x)
	if !ok {
		return ir.Value{}
	}
	p := patchesOf(c, spatial(c, x), window, o)
	if b.Err() != nil {
		return ir.Value{}
	}
	x = ops.Pad(b, x, ops.Zeros(b, x.DType()), around(p.pad), around(p.pad), nil)
	w := ops.Windows(b, x, ops.WindowsAttrs{Axes: p.axes(), Sizes: p.window, Strides: p.stride, Dilations: p.dilation})
	return ops.Reshape(b, w, x.Dim(0), ir.N(p.positions), x.Dim(-1).Mul(ir.N(product(p.window))))
}

// Fold adds up patches, [batch, positions, channels·elements of the window], where [Unfold] takes them
// from: [batch, sizes..., channels], as torch.nn.functional.fold with the patches' last two axes exchanged. It
// is the transpose of Unfold.
func Fold(b *ir.Builder, x ir.Value, sizes, window []int, o ...PatchOptions) ir.Value {
	c, ok := argument.Of(b, "image.fold", x)
	if !ok || !c.Floats() {
		return ir.Value{}
	}
	c.Attr(len(sizes) > 0 && slices.Min(append([]int{1}, sizes...)) == 1, "sizes is %v: there must be one or more, each 1 or more", sizes)
	p := patchesOf(c, sizes, window, o)
	if b.Err() != nil {
		return ir.Value{}
	}
	channels, err := x.Dim(-1).Div(ir.N(product(p.window)))
	if !c.Shape(err == nil && x.Rank() == 3 && x.Dim(1).Is(p.positions), "x is %s: it must be [batch, %d, channels·%d]", x.Type(), p.positions, product(p.window)) {
		return ir.Value{}
	}
	shape := slices.Concat(ir.Shape{x.Dim(0)}, ir.Dims(p.counts...), ir.Shape{channels}, ir.Dims(p.window...))
	dims := make([]ir.Dim, len(sizes))
	for i, n := range sizes {
		dims[i] = ir.N(n + 2*p.pad[i])
	}
	y := ops.OverlapAdd(b, ops.Reshape(b, x, shape...), ops.OverlapAddAttrs{Axes: p.axes(), Strides: p.stride, Dilations: p.dilation, Dims: dims})
	for i, n := range sizes {
		y = ops.SliceAxis(b, y, i+1, ir.N(p.pad[i]), ir.N(n))
	}
	return y
}

// patches are the windows over some axes.
type patches struct {
	window, stride, dilation, pad []int
	counts                        []int // positions along each axis
	positions                     int
}

// patchesOf completes and checks the options for axes of the given sizes.
func patchesOf(c argument.Check, sizes, window []int, o []PatchOptions) patches {
	opts, axes := argument.Option(c, o), len(sizes)
	if c.Err() != nil {
		return patches{}
	}
	p := patches{
		window: perAxis(c, "window", window, 1, 1, axes), stride: perAxis(c, "Stride", opts.Stride, 1, 1, axes),
		dilation: perAxis(c, "Dilation", opts.Dilation, 1, 1, axes), pad: perAxis(c, "Pad", opts.Pad, 0, 0, axes), positions: 1,
	}
	c.Attr(len(window) > 0, "window is empty: it must have one size, or one for each of %d axes", axes)
	if c.Err() != nil {
		return p
	}
	for i, n := range sizes {
		rest := n + 2*p.pad[i] - (p.window[i]-1)*p.dilation[i] - 1
		c.Shape(rest >= 0, "the window of size %d, dilated by %d, is longer than axis %d of %d elements, padded by %d", p.window[i], p.dilation[i], i+1, n, p.pad[i])
		p.counts = append(p.counts, rest/p.stride[i]+1)
		p.positions *= p.counts[i]
	}
	return p
}

// axes are the spatial axes.
func (p patches) axes() []int { return permute.Counting(1, len(p.window)) }

// perAxis returns a list with one entry for each axis: usual if the list is empty, or its single entry
// repeated.
func perAxis(c argument.Check, what string, list []int, usual, least, axes int) []int {
	switch len(list) {
	case 0:
		list = slices.Repeat([]int{usual}, axes)
	case 1:
		list = slices.Repeat(list, axes)
	}
	c.Attr(len(list) == axes, "%s has %d entries: it must have one, or one for each of %d axes", what, len(list), axes)
	c.Attr(slices.Min(append([]int{least}, list...)) == least, "%s is %v: each entry must be %d or more", what, list, least)
	return list
}

// around puts zeros for the batch and the channels around a list.
func around(list []int) []int { return slices.Concat([]int{0}, list, []int{0}) }

func product(list []int) int {
	n := 1
	for _, x := range list {
		n *= x
	}
	return n
}
