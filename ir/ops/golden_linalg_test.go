package ops_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// matrixCase is a function of matrices with the digests of it and of its
// derivatives of orders 1 to 3.
type matrixCase struct {
	in    shapes
	build func(b *ir.Builder, in values) ir.Value
	want  [4]float64
}

// spd makes positive definite matrices of others: x·xᵀ + diag(2, 3, …).
func spd(b *ir.Builder, x ir.Value) ir.Value {
	square := ops.MatMul(b, x, ops.SwapAxes(b, x, -2, -1))
	d := ops.Iota(b, ir.F64, 0, x.Dim(-2))
	return ops.Add(b, square, ops.Diag(b, ops.Add(b, d, ops.ConstLike(b, d, 2)), 0))
}

// heavy adds 3 to the diagonal.
func heavy(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Add(b, x, ops.Diag(b, ops.Const(b, ir.F64, 3, x.Dim(-1)), 0))
}

// result picks one of three results.
func result(i int) func(x, y, z ir.Value) ir.Value {
	return func(x, y, z ir.Value) ir.Value { return values{x, y, z}[i] }
}

// matrixCases are by JAX 0.10.2 in float64: testdata/linalg.py prints them.
var matrixCases = map[string]matrixCase{
	"cholesky": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Cholesky(b, spd(b, in[0]))
		},
		[4]float64{0.4926102720853054, -2.8499622454708806, 3.5322580471624674, 4.919900776000477},
	},
	"triangular_solve": {
		shapes{{3, 3}, {3, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.TriangularSolve(b, heavy(b, in[0]), in[1], ops.TriangularAttrs{LeftSide: true, Lower: true})
		},
		[4]float64{-0.755968169761273, 2.9300738677539417, -1.2190519113137837, 4.234304477957833},
	},
	"triangular_solve, transposed": {
		shapes{{3, 3}, {3, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.TriangularSolve(b, in[0], in[1], ops.TriangularAttrs{LeftSide: true, TransposeA: true, UnitDiagonal: true})
		},
		[4]float64{1.6328125, 18.4375, 26.9375, 33.75},
	},
	"solve": {
		shapes{{3, 3}, {3, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Solve(b, heavy(b, in[0]), in[1], ops.SolveAttrs{})
		},
		[4]float64{-0.48777024551117626, 3.814540608646648, 1.3822969192929613, 6.7663708150537065},
	},
	"inv": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Inv(b, heavy(b, in[0]))
		},
		[4]float64{-0.7532063026749725, -2.770637256475077, -3.4305366948457836, -9.846915685126808},
	},
	"lu": {
		shapes{{3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return result(0)(ops.LU(b, in[0]))
		},
		[4]float64{-5.4446022727272725, 16.7694666838843, 10.762182452103675, 282.232043015974},
	},
	"lu of more rows": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return result(0)(ops.LU(b, in[0]))
		},
		[4]float64{-1.870535714285714, 24.462866015971606, -25.172852265399797, 639.0983645651261},
	},
	"det": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Det(b, in[0])
		},
		[4]float64{0.673828125, 1.212890625, -3.7734375, 0.0},
	},
	"slogdet": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			_, y := ops.Slogdet(b, in[0])
			return y
		},
		[4]float64{0.08032360166727529, -1.3499999999999994, 6.629999999999997, -31.427999999999976},
	},
	"q": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value {
			q, _ := ops.QR(b, in[0], false)
			return q
		},
		[4]float64{-0.693433803783163, -0.1688059477674757, 28.464743241723127, -101.1857567244804},
	},
	"r": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value {
			_, r := ops.QR(b, in[0], false)
			return r
		},
		[4]float64{-7.312733575556218, -9.575463484141006, -27.676489866185367, 129.30921855107678},
	},
	"eigenvalues": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			w, _ := ops.Eigh(b, spd(b, in[0]))
			return w
		},
		[4]float64{-4.17276602300609, -8.41492681830752, 18.665419351283717, 429.563912764739},
	},
	"eigenvectors": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			_, v := ops.Eigh(b, spd(b, in[0]))
			return v
		},
		[4]float64{-3.1538425795353477, 7.347108637158616, 38.31235632689307, 110.07275151484643},
	},
	"u": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return result(0)(ops.SVD(b, in[0], false))
		},
		[4]float64{-2.7677821649241423, 0.06620732545128893, 38.994973084687985, -178.64536380948755},
	},
	"singular values": {
		shapes{{3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return result(1)(ops.SVD(b, in[0], false))
		},
		[4]float64{-3.9016011533864297, -2.8402498908768457, -9.583117590726706, 28.146976104444054},
	},
	"vt": {
		shapes{{3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return result(2)(ops.SVD(b, in[0], false))
		},
		[4]float64{2.5645907320472405, 2.4495307244502786, -19.570291535736256, -255.52950285908912},
	},
	"pinv": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Pinv(b, in[0], -1)
		},
		[4]float64{2.021739130434782, 0.5411625708884713, -10.12005424508914, 207.47267249884737},
	},
	"lstsq": {
		shapes{{4, 3}, {4, 2}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Lstsq(b, in[0], in[1], -1)
		},
		[4]float64{-0.6250000000000011, 5.82880434782609, -37.457778827977336, 109.52795406632679},
	},
	"expm": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Expm(b, in[0])
		},
		[4]float64{1.4663044161175824, 14.605975973221167, 8.994733440536137, 48.50328452375997},
	},
	"expm, squared": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.Expm(b, ops.Mul(b, spd(b, in[0]), ops.Const(b, ir.F64, -4)))
		},
		[4]float64{-4.086667296884089e-07, 1.1608963249405197e-06, -1.1736381470469683e-05, 0.00015503802289119044},
	},
	"matrix_power": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.MatrixPower(b, in[0], 5)
		},
		[4]float64{11.103424072265625, 72.03175354003906, 359.67919921875, 1603.2451171875},
	},
	"spd_sqrtm": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.SPDSqrtm(b, spd(b, in[0]))
		},
		[4]float64{-0.8349658129204736, -4.9054373082865235, 1.8048488260073619, 11.682167020214358},
	},
	"spd_logm": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.SPDLogm(b, spd(b, in[0]))
		},
		[4]float64{-0.6245191954456581, -3.991834347574698, 4.56542664158572, 14.376026659939535},
	},
	"nuclear norm": {
		shapes{{3, 4}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.MatrixNorm(b, in[0], ops.NormNuclear)
		},
		[4]float64{-3.0733357729823787, 0.7337119363516165, -5.7780102217115665, -25.969035143280745},
	},
	"spectral norm": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.MatrixNorm(b, in[0], ops.NormSpectral)
		},
		[4]float64{-1.761644038117904, -0.674843407066703, -5.202911639154667, -5.577344275118887},
	},
	"norm of rows": {
		shapes{{4, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.MatrixNorm(b, in[0], ops.NormRows)
		},
		[4]float64{-1.78125, -1.6875, 0.0, 0.0},
	},
	"cond_number": {
		shapes{{3, 3}},
		func(b *ir.Builder, in values) ir.Value {
			return ops.CondNumber(b, in[0], ops.NormSpectral)
		},
		[4]float64{-4.362116779802981, 0.4219235369068759, -66.1556350983106, 332.6157460622434},
	},
}

// TestLinearAlgebraEqualsOthers holds functions of matrices and their first three
// derivatives against JAX, by the reference of each op and by its body.
func TestLinearAlgebraEqualsOthers(t *testing.T) {
	for name, c := range matrixCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inputs, ports := map[string]*ir.Array{}, []string{}
			g := must(ir.Build("value", func(b *ir.Builder) {
				var in values
				for i, dims := range c.in {
					ports = append(ports, "x"+strconv.Itoa(i))
					inputs[ports[i]] = pattern(i+1, dims)
					in = append(in, b.Input(ports[i], ir.F64, ir.Dims(dims...)...))
				}
				b.Output("y", digestOf(b, c.build(b, in)))
			}))(t)
			for order, want := range c.want {
				for form, g := range map[string]*ir.Graph{"reference": g, "bodies": must(passes.Run(g, passes.Options{}))(t)} {
					out, err := evalHeld(g, inputs, ir.EvalOptions{})
					if err != nil {
						t.Fatal(err)
					}
					if got := out[0].F[0]; !(math.Abs(got-want) <= 1e-9*math.Abs(want)+1e-12) {
						t.Errorf("order %d, by %s: %v, want %v", order, form, got, want)
					}
				}
				if order+1 < len(c.want) {
					g = digestOfGradient(t, g, ports)
				}
			}
		})
	}
}

// digestOf is digest as a value.
func digestOf(b *ir.Builder, x ir.Value) ir.Value {
	n, _ := x.Shape().Size().Const()
	weights := ir.NewArray(ir.F64, n)
	for i := range weights.F {
		weights.F[i] = float64((i*29+5)%17-8) / 4
	}
	return ops.ReduceSum(b, ops.Mul(b, ops.Reshape(b, x, ir.N(n)), ops.Literal(b, weights)))
}

// digestOfGradient returns a graph of the sum of the digests of the derivatives of
// y by the ports.
func digestOfGradient(t *testing.T, g *ir.Graph, ports []string) *ir.Graph {
	t.Helper()
	grad := must(autodiff.GradWith(g, autodiff.GradOptions{Loss: "y", Wrt: ports, Missing: autodiff.MissingIsZero, DropOutputs: true}))(t)
	return must(ir.Build("derivative", func(b *ir.Builder) {
		var in values
		for _, p := range grad.Ports() {
			in = append(in, b.Port(p.Kind, p.Name, p.Value.Type()))
		}
		total := ops.Const(b, ir.F64, 0)
		for _, d := range b.Splice(grad, in) {
			total = ops.Add(b, total, digestOf(b, d))
		}
		b.Output("y", total)
	}))(t)
}
