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
		Eval:  reference(OpDFT),
		JVP: func(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
			moved := []ir.Value{orZeros(b, t[0], in[0])}
			if len(t) > 1 && t[1].Valid() {
				moved = append(moved, t[1])
			}
			return b.Add(OpDFT, n.Attrs(), moved...)
		},
		Transpose: transposeDFT,
		Batch:     batchFirst,
		Body:      dftBody,
		Lower:     &ir.KernelsLowering{Kernels: dftKernels},
	})
}

// DFT returns the real and imaginary parts of the unnormalised Fourier transform of re +
// im·i along the last axis, of constant size, for f32 or f64. im may be left out (the zero
// Value) for real numbers.
func DFT(b *ir.Builder, re, im ir.Value, inverse bool) (outRe, outIm ir.Value) {
	return two(b.Add(OpDFT, &DFTAttrs{inverse}, given(re, im)...))
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

// dft builds transforms. Numbers are pairs along a last axis, which has size 1 for real
// numbers: a stage is then one contraction, over positions and parts at once, and the
// twiddle factors fuse into the loads of the next stage.
type dft struct {
	b    *ir.Builder
	d    ir.DType
	sign float64
}

// maxRadix is the maximum length of a transform that is one matrix product.
const maxRadix = 32

// transform returns [..., n, 2] for [..., n, parts]: with n = r·m, position
// m·j₁ + j₂ and frequency k₁ + r·k₂, transforms over j₁ are followed by the
// factors of j₂·k₁ and by transforms over j₂ (Cooley and Tukey, "An algorithm for
// the machine calculation of complex Fourier series", 1965).
func (t *dft) transform(z ir.Value, n int) ir.Value {
	if n <= maxRadix {
		at := z.Rank() - 2
		return DotGeneral(t.b, z, t.matrix(n, parts(z)), DotAttrs{LhsContract: []int{at, at + 1}, RhsContract: []int{0, 1}})
	}
	r := radix(n)
	if r == 1 {
		return t.chirp(z, n)
	}
	b, m, at := t.b, n/r, z.Rank()-2
	z = splitAxis(b, z, at, ir.N(r)) // [..., r, m, parts]
	z = DotGeneral(b, z, t.matrix(r, parts(z)), DotAttrs{LhsContract: []int{at, at + 2}, RhsContract: []int{0, 1}})
	z = SwapAxes(b, z, at, at+1) // [..., r, m, 2]
	z = t.transform(t.times(z, t.twiddles(r, m)), m)
	return mergeAxes(b, SwapAxes(b, z, at, at+1), at)
}

// parts returns 1 for real numbers and 2 for pairs.
func parts(z ir.Value) int {
	if !z.Valid() {
		return 1
	}
	n, _ := z.Dim(-1).Const()
	return n
}

// matrix returns exp(sign·2πi·jk/n) as [n, parts, n, 2]: the contribution of each part of
// number j to each part of frequency k.
func (t *dft) matrix(n, parts int) ir.Value {
	a := ir.NewArray(t.d, n, parts, n, 2)
	for j := range n {
		for k := range n {
			w := cmplx.Rect(1, t.sign*2*math.Pi*float64(j*k%n)/float64(n))
			for p := range parts {
				at := ((j*parts+p)*n + k) * 2
				a.F[at], a.F[at+1] = real(w), imag(w)
				w *= 1i
			}
		}
	}
	a.Round()
	return Literal(t.b, a)
}

// twiddles returns exp(sign·2πi·jk/(r·m)) as [r, m, 2], from angles of at most π, whose
// rounding error is that of the sine.
func (t *dft) twiddles(r, m int) ir.Value {
	b, n := t.b, r*m
	shape := ir.Dims(r, m)
	turn := Mul(b, Iota(b, ir.I32, 0, shape...), Iota(b, ir.I32, 1, shape...))
	turn = Select(b, Gt(b, turn, int32Like(b, turn, n/2)), Sub(b, turn, int32Like(b, turn, n)), turn)
	angle := Convert(b, turn, t.d)
	angle = Mul(b, angle, ConstLike(b, angle, t.sign*2*math.Pi/float64(n)))
	return Stack(b, -1, Cos(b, angle), Sin(b, angle))
}

// times multiplies complex numbers given as pairs.
func (t *dft) times(x, y ir.Value) ir.Value {
	b := t.b
	a, c, d, e := halfOf(b, x, 0), halfOf(b, x, 1), halfOf(b, y, 0), halfOf(b, y, 1)
	return Stack(b, -1, Sub(b, Mul(b, a, d), Mul(b, c, e)), Add(b, Mul(b, a, e), Mul(b, c, d)))
}

// chirp transforms n numbers, where n has a large prime factor, by a convolution of
// power-of-two length: jk is (j² + k² - (k-j)²)/2 (Bluestein, "A linear filtering approach
// to the computation of discrete Fourier transform", 1970).
func (t *dft) chirp(z ir.Value, n int) ir.Value {
	b := t.b
	if parts(z) == 1 {
		z = Concatenate(b, -1, z, ZerosLike(b, z))
	}
	if n > maxChirp {
		b.Fail(ir.Errorf(ir.ErrUnsupported, "the length %d has a large prime factor: up to %d are supported", n, maxChirp))
		return ir.Value{}
	}
	long := 1
	for long < 2*n-1 {
		long *= 2
	}
	chirp, filter := t.chirps(n, long)
	whole := func(z ir.Value, inverse bool) ir.Value {
		re, im := DFT(b, halfOf(b, z, 0), halfOf(b, z, 1), inverse)
		return Stack(b, -1, re, im)
	}
	z = padMatrix(b, t.times(z, chirp), long, 2)
	y := whole(t.times(whole(z, false), whole(filter, false)), true)
	y = SliceAxis(b, y, -2, ir.N(0), ir.N(n))
	y = Mul(b, y, ConstLike(b, y, 1/float64(long)))
	return t.times(y, chirp)
}

// maxChirp is the maximum length that chirp transforms: sums of squares are i32. maxChirpTable is the maximum length
// of a convolution whose filter is stored in the graph; longer ones are computed.
const (
	maxChirp      = 1 << 25
	maxChirpTable = 1 << 17
)

// chirps returns exp(sign·πi·j²/n) for j from 0 to n-1 as [n, 2], and their conjugates at j and -j, modulo long, as [long, 2].
func (t *dft) chirps(n, long int) (chirp, filter ir.Value) {
	b := t.b
	if long > maxChirpTable {
		angle := Convert(b, t.squares(n), t.d)
		angle = Mul(b, angle, ConstLike(b, angle, t.sign*math.Pi/float64(n)))
		re, im := Cos(b, angle), Sin(b, angle)
		half := Stack(b, -1, re, Neg(b, im))
		back := Reverse(b, SliceAxis(b, half, 0, ir.N(1), ir.N(n-1)), 0)
		return Stack(b, -1, re, im), Concatenate(b, 0, padMatrix(b, half, long-n+1, 2), back)
	}
	w, v := ir.NewArray(t.d, n, 2), ir.NewArray(t.d, long, 2)
	for j := range n {
		x := cmplx.Rect(1, t.sign*math.Pi*float64(int64(j)*int64(j)%int64(2*n))/float64(n))
		w.F[2*j], w.F[2*j+1] = real(x), imag(x)
		for _, at := range []int{j, (long - j) % long} {
			v.F[2*at], v.F[2*at+1] = real(x), -imag(x)
		}
	}
	w.Round()
	v.Round()
	return Literal(b, w), Literal(b, v)
}

// squares returns j² modulo 2n for j from 0 to n-1, from -n to n: the digits of one factor, of three bits each, are
// multiplied with the other from the highest on, so that no number exceeds i32.
func (t *dft) squares(n int) ir.Value {
	b, j := t.b, Iota(t.b, ir.I32, 0, ir.N(n))
	i32 := func(v int) ir.Value { return int32Like(b, j, v) }
	sum := i32(0)
	low := 0
	for n>>(low+3) > 0 {
		low += 3
	}
	for ; low >= 0; low -= 3 {
		digit := And(b, ShiftRight(b, j, i32(low)), i32(7))
		sum = Rem(b, Add(b, Mul(b, sum, i32(8)), Mul(b, j, digit)), i32(2*n))
	}
	return Select(b, Gt(b, sum, i32(n)), Sub(b, sum, i32(2*n)), sum)
}

// radix returns the radix of the first stage for n numbers, 1 if there is none.
func radix(n int) int {
	r, _ := cheapest(n, map[int][2]int{})
	return r
}

// stageCost is the memory round trip of a stage, in multiplications for each number.
const stageCost = 16

// cheapest returns the radix of the first stage and the total cost.
func cheapest(n int, known map[int][2]int) (radix, cost int) {
	if n <= maxRadix {
		return n, n + stageCost
	}
	if k, ok := known[n]; ok {
		return k[0], k[1]
	}
	radix, cost = 1, 1<<20 // Bluestein: a longer transform and its inverse
	for r := 2; r <= maxRadix; r++ {
		if n%r != 0 {
			continue
		}
		if _, rest := cheapest(n/r, known); r+stageCost+rest < cost {
			radix, cost = r, r+stageCost+rest
		}
	}
	known[n] = [2]int{radix, cost}
	return radix, cost
}
