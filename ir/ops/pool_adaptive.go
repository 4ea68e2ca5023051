package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Adaptive pools and pixel shuffles.
const (
	OpAdaptiveAvgPool ir.Op = "adaptive_avg_pool"
	OpAdaptiveMaxPool ir.Op = "adaptive_max_pool"
	OpPixelShuffle    ir.Op = "pixel_shuffle"
	OpPixelUnshuffle  ir.Op = "pixel_unshuffle"
)

// SizesAttrs are the sizes of a result along its spatial axes.
type SizesAttrs struct{ Sizes []int }

// Visit shows the attributes.
func (a *SizesAttrs) Visit(v ir.AttrVisitor) { v.Ints("sizes", &a.Sizes) }

// FactorAttrs hold an upscale factor.
type FactorAttrs struct{ Factor int }

// Visit shows the attributes.
func (a *FactorAttrs) Visit(v ir.AttrVisitor) { v.Int("factor", &a.Factor) }

func init() {
	for _, p := range []struct {
		op     ir.Op
		what   string
		fill   float64
		reduce func(b *ir.Builder, w ir.Value, axis int, counts ir.Value) ir.Value
	}{
		{OpAdaptiveAvgPool, "mean", 0, func(b *ir.Builder, w ir.Value, axis int, counts ir.Value) ir.Value {
			sum := ReduceSum(b, w, axis+1)
			return Div(b, sum, BroadcastInDim(b, Convert(b, counts, sum.DType()), sum.Shape(), []int{axis}))
		}},
		{OpAdaptiveMaxPool, "largest element", math.Inf(-1), func(b *ir.Builder, w ir.Value, axis int, _ ir.Value) ir.Value {
			return ReduceMax(b, w, axis+1)
		}},
	} {
		defineComposite(composite{
			op: p.op, types: floats, newAttrs: func() ir.Attrs { return &SizesAttrs{} },
			doc: "The " + p.what + " of windows that make the spatial axes of x, those between the first and the last, of the given sizes: window i of m over n elements " +
				"goes from ⌊i·n/m⌋ to ⌈(i+1)·n/m⌉, as in PyTorch.",
			constraints: []string{"x has rank 3 or more and constant spatial axes, not empty", "sizes has an entry for each of them, positive", "no spatial axis is longer than 2²⁰, before or after"},
			check: func(n *ir.Node) error {
				sizes, x := n.Attrs().(*SizesAttrs).Sizes, n.Input(0)
				if x.Rank() < 3 || len(sizes) != x.Rank()-2 {
					return ir.Shapef("%d sizes for the spatial axes of %s", len(sizes), x.Type())
				}
				for i, size := range sizes {
					if d, ok := x.Dim(i + 1).Const(); !ok || d == 0 || size < 1 {
						return ir.Shapef("axis %d of size %s cannot become %d", i+1, x.Dim(i+1), size)
					} else if d > maxAdaptive || size > maxAdaptive {
						return ir.Shapef("axis %d of size %s cannot become %d: neither may be above %d", i+1, x.Dim(i+1), size, maxAdaptive)
					}
				}
				return nil
			},
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				x := wide(b, in[0])
				for i, size := range n.Attrs().(*SizesAttrs).Sizes {
					w, counts := adaptiveWindows(b, x, i+1, size, p.fill)
					x = p.reduce(b, w, i+1, counts)
				}
				return Convert(b, x, in[0].DType())
			},
		})
	}
	const order = " Channel c·factor² + i·factor + j holds row i, column j of channel c, as in PyTorch."
	shuffle := composite{
		op: OpPixelShuffle, types: plain, newAttrs: func() ir.Attrs { return &FactorAttrs{2} },
		doc:         "Rearranges channels into pixels: [batch, height, width, channels·factor²] becomes [batch, height·factor, width·factor, channels] (Shi et al.)." + order,
		constraints: []string{"x has rank 4", "factor is positive, and its square divides the channels"}, check: checkFactor,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			s, f := in[0].Shape(), ir.N(n.Attrs().(*FactorAttrs).Factor)
			channels, err := s[3].Div(f.Mul(f))
			if err != nil {
				b.Failf(OpPixelShuffle, in, ir.Shapef("%s channels do not divide by the square of factor, %s", s[3], f))
				return ir.Value{}
			}
			x := Transpose(b, Reshape(b, in[0], s[0], s[1], s[2], channels, f, f), 0, 1, 4, 2, 5, 3)
			return Reshape(b, x, s[0], s[1].Mul(f), s[2].Mul(f), channels)
		},
	}
	defineComposite(shuffle)
	shuffle.op = OpPixelUnshuffle
	shuffle.doc = "Rearranges pixels into channels, the inverse of pixel_shuffle: [batch, height·factor, width·factor, channels] becomes [batch, height, width, channels·factor²]." + order
	shuffle.constraints = []string{"x has rank 4", "factor is positive and divides height and width"}
	shuffle.body = func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
		s, f := in[0].Shape(), ir.N(n.Attrs().(*FactorAttrs).Factor)
		h, err := s[1].Div(f)
		w, also := s[2].Div(f)
		if err != nil || also != nil {
			b.Failf(OpPixelUnshuffle, in, ir.Shapef("%s times %s places do not divide by factor, %s", s[1], s[2], f))
			return ir.Value{}
		}
		x := Transpose(b, Reshape(b, in[0], s[0], h, f, w, f, s[3]), 0, 1, 3, 5, 2, 4)
		return Reshape(b, x, s[0], h, w, s[3].Mul(f).Mul(f))
	}
	defineComposite(shuffle)
}

func checkFactor(n *ir.Node) error {
	if n.Input(0).Rank() != 4 {
		return ir.Shapef("%s is no [batch, height, width, channels]", n.Input(0).Type())
	}
	if f := n.Attrs().(*FactorAttrs).Factor; f < 1 {
		return ir.Attrf("factor is %d, less than 1", f)
	}
	return nil
}

// maxAdaptive bounds the axes of adaptive pools: their windows are a literal in the graph.
const maxAdaptive = 1 << 20

// adaptiveWindows splits an axis of x into window positions and window elements, with fill
// past the end of the shorter windows, and returns the number of elements of each window.
func adaptiveWindows(b *ir.Builder, x ir.Value, axis, size int, fill float64) (windows, counts ir.Value) {
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	d, _ := x.Dim(axis).Const()
	if !fitsTable(b, size+d) { // the windows have fewer than 2·(size+d) elements
		return ir.Value{}, ir.Value{}
	}
	longest, count := 0, ir.NewArray(ir.I32, size)
	from := make([]int, size)
	for i := range size {
		from[i] = i * d / size
		count.I[i] = int64(((i+1)*d+size-1)/size - from[i])
		longest = max(longest, int(count.I[i]))
	}
	places := ir.NewArray(ir.I32, size, longest, 1)
	for i := range size {
		for k := range longest {
			places.I[i*longest+k] = -1
			if int64(k) < count.I[i] {
				places.I[i*longest+k] = int64(from[i] + k)
			}
		}
	}
	y := Gather(b, x, Literal(b, places), GatherAttrs{IndexedAxes: IndexedAxes{Axes: []int{axis}}, Fill: fill})
	return Transpose(b, y, slices.Concat(counting(2, axis), []int{0, 1}, counting(2+axis, x.Rank()-1-axis))...), Literal(b, count)
}

// AdaptiveAvgPool returns the means of windows that bring the spatial axes of x, [batch,
// spatial axes..., channels], to the given sizes, as in PyTorch: window i of m over n
// elements is [⌊i·n/m⌋, ⌈(i+1)·n/m⌉). The spatial axes are constant.
func AdaptiveAvgPool(b *ir.Builder, x ir.Value, sizes ...int) ir.Value {
	return b.Add1(OpAdaptiveAvgPool, &SizesAttrs{slices.Clone(sizes)}, x)
}

// AdaptiveMaxPool is [AdaptiveAvgPool] with the maxima of the windows.
func AdaptiveMaxPool(b *ir.Builder, x ir.Value, sizes ...int) ir.Value {
	return b.Add1(OpAdaptiveMaxPool, &SizesAttrs{slices.Clone(sizes)}, x)
}

// PixelShuffle rearranges [batch, height, width, channels·factor²] into [batch,
// height·factor, width·factor, channels], in PyTorch's channel order (Shi et al.).
func PixelShuffle(b *ir.Builder, x ir.Value, factor int) ir.Value {
	return b.Add1(OpPixelShuffle, &FactorAttrs{factor}, x)
}

// PixelUnshuffle is the inverse of [PixelShuffle].
func PixelUnshuffle(b *ir.Builder, x ir.Value, factor int) ir.Value {
	return b.Add1(OpPixelUnshuffle, &FactorAttrs{factor}, x)
}
