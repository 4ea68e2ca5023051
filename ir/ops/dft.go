package ops

import (
	"math"
	"math/cmplx"

	"github.com/rlx-go/rlx/ir"
)

// OpDFT is the discrete Fourier transform of numbers given as real and imaginary parts.
const OpDFT ir.Op = "dft"

// DFTAttrs hold the direction.
type DFTAttrs struct{ Inverse bool }

// Visit shows the attributes.
func (a *DFTAttrs) Visit(v ir.AttrVisitor) { v.Bool("inverse", &a.Inverse) }

func init() {
	define(&ir.Def{
		Op: OpDFT, Operands: []string{"re", "im"}, Optional: 1, NewAttrs: func() ir.Attrs { return &DFTAttrs{} },
		Doc: "The discrete Fourier transform along the last axis of numbers re + im·i as real and imaginary parts, unnormalised: " +
			"Σⱼ xⱼ·exp(∓2πi·jk/n), with + for the inverse. Without im the numbers are real. Any length is transformed in O(n·log n) operations. " +
			"The body of fft uses it, for devices without complex numbers.",
		Constraints: numbered(
			"re and im have one type, whose elements are f32 or f64",
			"the last axis has no symbolic size",
		),
		Infer: inferDFT,
		Eval:  evalDFT(),
		JVP: func(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
			moved := []ir.Value{orZeros(b, t[0], in[0])}
			if len(t) > 1 && t[1].Valid() {
				moved = append(moved, t[1])
			}
			return b.Add(OpDFT, n.Attrs(), moved...)
		},
		Transpose: transposeDFT,
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
			wide := make([]ir.Value, len(in))
			for i, x := range in {
				wide[i] = BatchAt(b, x, axes[i], 0, size)
			}
			return b.Add(OpDFT, n.Attrs(), wide...), []int{0, 0}
		},
		Body:  dftBody,
		Lower: &ir.KernelsLowering{Kernels: dftKernels},
	})
}

// DFT returns the real and imaginary parts of the unnormalised Fourier transform of re +
// im·i along the last axis, of constant size, for f32 or f64. im may be left out (the zero
// Value) for real numbers.
func DFT(b *ir.Builder, re, im ir.Value, inverse bool) (outRe, outIm ir.Value) {
	out := several(2, b.Add(OpDFT, &DFTAttrs{inverse}, given(re, im)...))
	return out[0], out[1]
}

func inferDFT(n *ir.Node) ([]ir.Type, error) {
	t, err := sameTypes(n, floats)
	switch {
	case err != nil:
	case t.DType.Size() < 4:
		err = ir.DTypef("the operand is %s, not f32 or f64", t.DType)
	case len(t.Shape) == 0:
		err = ir.Shapef("%s has no axis", t)
	default:
		if size, ok := t.Shape[len(t.Shape)-1].Const(); !ok {
			err = ir.Shapef("the last axis of %s has a symbolic size", t)
		} else if size == 0 {
			err = ir.Shapef("the last axis of %s has no elements", t)
		}
	}
	return []ir.Type{t, t}, err
}

// evalDFT computes the defining sum.
func evalDFT() func(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	if !withReferences {
		return nil
	}
	return func(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
		re, im := in[0].Clone(), in[0].Clone()
		size := re.Dims[len(re.Dims)-1]
		sign := -2 * math.Pi
		if n.Attrs().(*DFTAttrs).Inverse {
			sign = -sign
		}
		for at := range re.F {
			first, k := at/size*size, at%size
			sum := complex(0, 0)
			for j := range size {
				x := complex(in[0].F[first+j], 0)
				if len(in) > 1 {
					x += complex(0, in[1].F[first+j])
				}
				sum += x * cmplx.Rect(1, sign*float64(j*k%size)/float64(size))
			}
			re.F[at], im.F[at] = real(sum), imag(sum)
		}
		return []*ir.Array{c.Round(re), c.Round(im)}, nil
	}
}

// transposeDFT: the matrix C ∓ i·S is symmetric; as a real map of pairs its transpose is
// the transform in the other direction.
func transposeDFT(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
	out := make([]ir.Value, len(linear))
	if !ct[0].Valid() && !ct[1].Valid() {
		return out
	}
	like := ct[0]
	if !like.Valid() {
		like = ct[1]
	}
	back := several(2, b.Add(OpDFT, &DFTAttrs{!n.Attrs().(*DFTAttrs).Inverse}, orZeros(b, ct[0], like), orZeros(b, ct[1], like)))
	for i, lin := range linear {
		if lin {
			out[i] = back[i]
		}
	}
	return out
}

func dftBody(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
	size, _ := in[0].Dim(-1).Const()
	t := &dft{b: b, d: in[0].DType(), sign: -1}
	if n.Attrs().(*DFTAttrs).Inverse {
		t.sign = 1
	}
	z := t.transform(Stack(b, -1, in...), size)
	return []ir.Value{halfOf(b, z, 0), halfOf(b, z, 1)}
}

// halfOf returns the real (0) or imaginary (1) parts of pairs along the last axis.
func halfOf(b *ir.Builder, z ir.Value, which int) ir.Value {
	return Squeeze(b, SliceAxis(b, z, -1, ir.N(which), ir.N(1)), -1)
}
