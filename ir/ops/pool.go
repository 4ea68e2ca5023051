package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// Pooling: reductions over sliding windows.
const (
	OpMaxPool ir.Op = "max_pool"
	OpAvgPool ir.Op = "avg_pool"
)

// PoolAttrs describe a pool over the spatial axes of x, those between the first (the
// batch) and the last (the channels). The lists have one entry for each of them.
type PoolAttrs struct {
	Sizes, Strides, Dilations []int // nil strides: the sizes; nil dilations: 1
	PadLo, PadHi              []int // nil: 0
}

// Visit shows the attributes.
func (a *PoolAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("sizes", &a.Sizes)
	v.Ints("strides", &a.Strides)
	v.Ints("dilations", &a.Dilations)
	v.Ints("pad_lo", &a.PadLo)
	v.Ints("pad_hi", &a.PadHi)
}

// AvgPoolAttrs add whether padding counts as elements.
type AvgPoolAttrs struct {
	PoolAttrs
	CountIncludePad bool
}

// Visit shows the attributes.
func (a *AvgPoolAttrs) Visit(v ir.AttrVisitor) {
	a.PoolAttrs.Visit(v)
	v.Bool("count_include_pad", &a.CountIncludePad)
}

func init() {
	constraints := numbered(
		"x is of a float type and has rank 3 or more: batch, spatial axes, channels",
		"sizes, strides and dilations are at least 1, padding is not negative",
		"padding is smaller than the dilated window, which is no longer than the padded axis",
		"along a symbolic axis windows leave no remainder",
	)
	define(&ir.Def{
		Op: OpMaxPool,
		Doc: "The largest element of each window, ignoring padding. Tied elements share the " +
			"gradient equally.",
		Constraints: constraints, Operands: []string{"x"},
		NewAttrs: func() ir.Attrs { return &PoolAttrs{} },
		Infer:    func(n *ir.Node) ([]ir.Type, error) { return inferPool(n, n.Attrs().(*PoolAttrs)) },
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			w, inner := poolWindows(b, in[0], n.Attrs().(*PoolAttrs), math.Inf(-1))
			return []ir.Value{ReduceMax(b, w, inner...)}
		},
	})
	define(&ir.Def{
		Op: OpAvgPool,
		Doc: "The mean of each window: of all its elements with count_include_pad, with padding as zeros, and otherwise of " +
			"those that are not padding.",
		Constraints: constraints, Operands: []string{"x"},
		NewAttrs: func() ir.Attrs { return &AvgPoolAttrs{} },
		Infer:    func(n *ir.Node) ([]ir.Type, error) { return inferPool(n, &n.Attrs().(*AvgPoolAttrs).PoolAttrs) },
		Body:     avgPoolBody,
	})
}

// MaxPool returns the largest element of each window of x, [batch, spatial axes...,
// channels] of a float type, ignoring padding. Strides are the window sizes and dilations
// 1 by default.
func MaxPool(b *ir.Builder, x ir.Value, a PoolAttrs) ir.Value {
	a.complete()
	return b.Add1(OpMaxPool, &a, x)
}

// AvgPool returns the mean of each window of x, [batch, spatial axes..., channels] of a
// float type, over the elements that are not padding, or over all with a.CountIncludePad.
// Strides are the window sizes and dilations 1 by default.
func AvgPool(b *ir.Builder, x ir.Value, a AvgPoolAttrs) ir.Value {
	a.complete()
	return b.Add1(OpAvgPool, &a, x)
}

// complete sets the defaults.
func (a *PoolAttrs) complete() {
	fillNil(a.Sizes, &a.Strides)
	fillNil(repeatInt(1, len(a.Sizes)), &a.Dilations)
	fillNil(repeatInt(0, len(a.Sizes)), &a.PadLo, &a.PadHi)
}

func inferPool(n *ir.Node, a *PoolAttrs) ([]ir.Type, error) {
	x := n.Input(0).Type()
	if err := floats.check(x.DType); err != nil {
		return nil, err
	}
	spatial := len(x.Shape) - 2
	if spatial < 1 {
		return nil, ir.Shapef("%s has no axis between the batch and the channels", x)
	}
	if len(a.Sizes) != spatial || len(a.PadLo) != spatial || len(a.PadHi) != spatial {
		return nil, ir.Attrf("sizes, pad_lo and pad_hi have %d, %d and %d entries, not one for each of %d spatial axes", len(a.Sizes), len(a.PadLo), len(a.PadHi), spatial)
	}
	if err := checkWindows(a.windows(), len(x.Shape)); err != nil {
		return nil, err
	}
	out := x.Shape.Clone()
	for i, size := range a.Sizes {
		extent := (size-1)*a.Dilations[i] + 1
		if lo, hi := a.PadLo[i], a.PadHi[i]; lo < 0 || hi < 0 || lo >= extent || hi >= extent {
			return nil, ir.Attrf("pad_lo is %d and pad_hi %d, not in [0, %d), the extent of a window", lo, hi, extent)
		}
		padded := out[i+1].Add(ir.N(a.PadLo[i] + a.PadHi[i]))
		count, err := windowCount(padded, ir.N(extent), a.Strides[i])
		if err != nil {
			return nil, err
		}
		if count.Is(0) {
			return nil, ir.Shapef("sizes and dilations make a window of %d, longer than %s elements padded by %d and %d", extent, out[i+1], a.PadLo[i], a.PadHi[i])
		}
		out[i+1] = count
	}
	return []ir.Type{{DType: x.DType, Shape: out}}, nil
}

// windows returns the attributes of the windows op in the body.
func (a *PoolAttrs) windows() *WindowsAttrs {
	return &WindowsAttrs{Axes: counting(1, len(a.Sizes)), Sizes: a.Sizes, Strides: a.Strides, Dilations: a.Dilations}
}

// poolWindows returns the windows of x, padded, and the axes of their elements.
func poolWindows(b *ir.Builder, x ir.Value, a *PoolAttrs, padding float64) (ir.Value, []int) {
	lo, hi := slices.Concat([]int{0}, a.PadLo, []int{0}), slices.Concat([]int{0}, a.PadHi, []int{0})
	rank := x.Rank()
	if slices.Max(lo) > 0 || slices.Max(hi) > 0 {
		x = Pad(b, x, Const(b, x.DType(), padding), lo, hi, nil)
	}
	return Windows(b, x, *a.windows()), counting(rank, len(a.Sizes))
}

func avgPoolBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	a := n.Attrs().(*AvgPoolAttrs)
	w, inner := poolWindows(b, in[0], &a.PoolAttrs, 0)
	sum := ReduceSum(b, w, inner...)
	if a.CountIncludePad || slices.Max(a.PadLo) == 0 && slices.Max(a.PadHi) == 0 {
		return []ir.Value{Div(b, sum, ConstLike(b, sum, float64(product(a.Sizes))))}
	}
	ones := slices.Clone(in[0].Shape())
	ones[0], ones[len(ones)-1] = ir.N(1), ir.N(1)
	w, inner = poolWindows(b, Ones(b, in[0].DType(), ones...), &a.PoolAttrs, 0)
	return []ir.Value{Div(b, sum, ReduceSum(b, w, inner...))}
}

func product(sizes []int) int {
	n := 1
	for _, s := range sizes {
		n *= s
	}
	return n
}

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
	defineAdaptivePools()
	defineShuffles()
}

func defineAdaptivePools() {
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
					return ir.Shapef("sizes has %d entries, not one for each axis of x, %s, but the first and the last", len(sizes), x.Type())
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
}

// defineShuffles defines the moves between channels and pixels.
func defineShuffles() {
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
