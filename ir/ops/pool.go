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
		NewAttrs:    func() ir.Attrs { return &PoolAttrs{} },
		Infer:       func(n *ir.Node) ([]ir.Type, error) { return inferPool(n, n.Attrs().(*PoolAttrs)) },
		NoTranspose: notLinear,
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
		NewAttrs:    func() ir.Attrs { return &AvgPoolAttrs{} },
		Infer:       func(n *ir.Node) ([]ir.Type, error) { return inferPool(n, &n.Attrs().(*AvgPoolAttrs).PoolAttrs) },
		NoTranspose: "taken of its body",
		Body:        avgPoolBody,
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
