package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// OpResize is the interpolation of images.
const OpResize ir.Op = "resize"

// Interpolation modes of resize.
const (
	ResizeNearest = "nearest"
	ResizeLinear  = "linear"
	ResizeCubic   = "cubic"
)

// ResizeAttrs hold the sizes of the spatial axes, those between the first and the last,
// and the mode.
type ResizeAttrs struct {
	Sizes []int
	Mode  string
	// AlignCorners aligns the centres of the corner elements; otherwise their outer edges
	// are aligned (half-pixel centres).
	AlignCorners bool
}

// Visit shows the attributes.
func (a *ResizeAttrs) Visit(v ir.AttrVisitor) {
	v.Ints("sizes", &a.Sizes)
	v.Text("mode", &a.Mode)
	v.Bool("align_corners", &a.AlignCorners)
}

func init() {
	defineComposite(composite{
		op: OpResize, doc: "Images resampled to another size, channels last: by the nearest element (PyTorch's nearest-exact), or by linear or cubic " +
			"interpolation along each axis (Keys, Cubic Convolution Interpolation, with a = −3/4), with the edge elements repeated beyond the " +
			"edges. Without align_corners, coordinates are ONNX's half_pixel. It is computed in f32 for narrower types, and does not " +
			"antialias when downsampling.",
		types: floats, newAttrs: func() ir.Attrs { return &ResizeAttrs{Mode: ResizeNearest} },
		constraints: []string{
			"x has rank 3 or more: a batch, spatial axes, channels; spatial axes are not symbolic and not empty, unless the result is",
			`sizes has an entry for each spatial axis, none negative or above 2²⁰; mode is "nearest", "linear" or "cubic"`,
		},
		check: checkResize,
		body:  resize,
	})
}

// maxResized bounds the spatial axes of a result: source indices are a literal in the
// graph.
const maxResized = 1 << 20

func checkResize(n *ir.Node) error {
	a, x := n.Attrs().(*ResizeAttrs), n.Input(0).Shape()
	if len(x) < 3 || len(a.Sizes) != len(x)-2 {
		return ir.Attrf("sizes has %d entries, not one for each axis of %s but the batch and the channels", len(a.Sizes), x)
	}
	if a.Mode != ResizeNearest && a.Mode != ResizeLinear && a.Mode != ResizeCubic {
		return ir.Attrf("mode is %q, not one of %q, %q and %q", a.Mode, ResizeNearest, ResizeLinear, ResizeCubic)
	}
	for i, size := range a.Sizes {
		from, ok := x[i+1].Const()
		if size > maxResized {
			return ir.Attrf("sizes has %d for axis %d, more than %d", size, i+1, maxResized)
		}
		if size < 0 || !ok || from == 0 && size > 0 {
			return ir.Shapef("axis %d of size %s cannot be resized to %d", i+1, x[i+1], size)
		}
	}
	return nil
}

func resize(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a, x := n.Attrs().(*ResizeAttrs), wide(b, in[0])
	for i, to := range a.Sizes {
		from, _ := x.Dim(i + 1).Const()
		if from != to {
			x = resizeAxis(b, x, i+1, resizeTaps(a, from, to))
		}
	}
	return Convert(b, x, in[0].DType())
}

// tap is one element of x for each element of the result, and its weight.
type tap struct {
	index   []int64
	weights []float64 // nil: all 1
}

func resizeAxis(b *ir.Builder, x ir.Value, axis int, taps []tap) ir.Value {
	var sum ir.Value
	for _, t := range taps {
		y := Take(b, x, Literal(b, ir.Ints(ir.I32, t.index)), axis, OutsideClip)
		if t.weights != nil && b.Err() == nil {
			w := Literal(b, ir.Floats(x.DType(), t.weights))
			y = Mul(b, y, BroadcastInDim(b, w, y.Shape(), []int{axis}))
		}
		sum = addTangents(b, sum, y)
	}
	return sum
}

// resizeTaps returns the source elements of the result along an axis.
func resizeTaps(a *ResizeAttrs, from, to int) []tap {
	position := func(i int) float64 {
		switch {
		case !a.AlignCorners:
			return (float64(i)+0.5)*float64(from)/float64(to) - 0.5
		case to == 1:
			return 0
		}
		return float64(i) * float64(from-1) / float64(to-1)
	}
	index := func(i float64) int64 { return int64(max(0, min(i, float64(from-1)))) }
	if a.Mode == ResizeNearest {
		t := tap{index: make([]int64, to)}
		for i := range to {
			t.index[i] = index(math.Floor(position(i) + 0.5))
		}
		return []tap{t}
	}
	first, weight := 0, func(d float64) float64 { return 1 - d }
	if a.Mode == ResizeCubic {
		first, weight = -1, cubicWeight
	}
	taps := make([]tap, 2-2*first)
	for k := range taps {
		taps[k] = tap{make([]int64, to), make([]float64, to)}
		for i := range to {
			base := math.Floor(position(i))
			at := base + float64(first+k)
			taps[k].index[i], taps[k].weights[i] = index(at), weight(math.Abs(position(i)-at))
		}
	}
	return taps
}

// cubicWeight returns the weight of an element at a distance below 2.
func cubicWeight(d float64) float64 {
	const a = -0.75
	if d <= 1 {
		return ((a+2)*d-(a+3))*d*d + 1
	}
	return ((a*d-5*a)*d+8*a)*d - 4*a
}

// Resize returns images, [batch, spatial axes..., channels], resampled to the spatial
// sizes a.Sizes. An empty mode means [ResizeNearest].
func Resize(b *ir.Builder, x ir.Value, a ResizeAttrs) ir.Value {
	if a.Mode == "" {
		a.Mode = ResizeNearest
	}
	return b.Add1(OpResize, &a, x)
}
