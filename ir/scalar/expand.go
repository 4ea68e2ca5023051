package scalar

import (
	"github.com/rlx-go/rlx/ir/dtype"
)

// Expansion is the set of operations that Expand replaces.
type Expansion uint8

// The expansions.
const (
	// Accurate is for targets with a math library that is accurate to a few ULP and handles
	// infinities and NaN: CUDA and the CPU. Only operations that such libraries lack, or define
	// differently, are replaced.
	Accurate Expansion = iota
	// Portable is for WGSL and MSL, whose built-in functions are inaccurate or missing and whose
	// compilers may assume that there are no infinities or NaNs.
	Portable
)

// Expand returns e with operations that targets of an expansion lack, or compute differently from
// this package, replaced by sequences of operations that they have. Besides leaves, the result may
// contain:
//
//   - integers and bools: Neg, Abs, Add, Sub, Mul, Div, Rem, Min, Max, bit operations, comparisons, Select, PopCount. A divisor is never 0, nor -1 if
//     the quotient overflows, and a shift count is below the width;
//   - floats: Neg, Abs, Add, Sub, Mul, Div, Fma, Sqrt, Rsqrt, Floor, Ceil, Trunc, comparisons, Select, Convert, Bitcast;
//   - for Accurate also the functions of C's math library: Exp, Expm1, Log, Log1p, Pow, trigonometric and hyperbolic functions and their inverses,
//     Erf, Erfc, Rem, Round, IsNaN and IsFinite.
//
// Functions are expanded for f32. f16 and bf16 are computed in f32 and converted back; f64 is not
// expanded, as no target of Portable has it. Complex operations are not expanded. Conversions of
// 8-bit floats become integer operations, as few devices have them and none rounds as they do.
//
// The sequences are correct for every f32 argument, including infinities, NaN and signed zeros
// (except Rem, only for quotients below 2²⁴; beyond, the result is a number below the divisor).
// They do not rely on arithmetic with infinities and NaN or on comparisons with NaN, which a
// compiler may assume impossible: they test the bits of the argument and return constant bits. They
// do not rely on the order of floating-point sums, which a compiler may reassociate: critical steps
// use integers. (Compiled with -ffast-math, all stay within 6 ULP, except Pow, which drops to 2⁻¹⁶
// for the largest and smallest results.) A device may flush subnormal numbers to zero, also in
// intermediate results. ErrorBound lists the error of each.
func Expand(e Expr, how Expansion) Expr {
	return ExpandExcept(e, how, func(Expr) bool { return false })
}

// ExpandExcept is Expand for printers that implement some operations as functions: nodes for which
// keep returns true are not replaced. keep sees each node with its operands expanded.
func ExpandExcept(e Expr, how Expansion, keep func(Expr) bool) Expr {
	return bottomUp(e, func(n Expr) Expr {
		if keep(n) {
			return n
		}
		return expandNode(n, how)
	})
}

// bottomUp returns e with each node replaced by replace, operands first.
func bottomUp(e Expr, replace func(Expr) Expr) Expr {
	if len(e.Args) == 0 {
		return replace(e)
	}
	var done memo[Expr]
	var visit func(n *Node) Expr
	visit = func(n *Node) Expr {
		r, known := done.at(n)
		if !known {
			*r = replace(rebuilt(n, visit))
		}
		return *r
	}
	return visit(e)
}

// expandNode replaces n, whose operands are expanded, if its operation is expanded.
func expandNode(n Expr, how Expansion) Expr {
	if n.Op == OpClamp {
		atLeast := expandNode(Max(n.Args[0], n.Args[1]), how)
		return expandNode(Min(atLeast, n.Args[2]), how)
	}
	if len(n.Args) == 0 {
		return n
	}
	from := n.Args[len(n.Args)-1].Type
	if rule := portableRules[n.Op]; rule != nil && how == Portable {
		switch from {
		case dtype.F32:
			return rule(n)
		case dtype.F16, dtype.BF16:
			return throughF32(n, from, rule)
		}
	}
	if rule := basicRules[n.Op]; rule != nil && !from.IsComplex() {
		return rule(n)
	}
	return n
}

// throughF32 applies an f32 rule to a node of a narrower float type.
func throughF32(n *Node, narrow dtype.DType, rule func(n *Node) Expr) Expr {
	wide := withArgs(n, func(a *Node) Expr { return Convert(a, dtype.F32) })
	if n.Type == narrow {
		wide.Type = dtype.F32
	}
	return Convert(rule(wide), n.Type)
}

// basicRules are applied for every expansion and every real type.
var basicRules = [opCount]func(n *Node) Expr{
	OpConvert:  func(n *Node) Expr { return convertBits(n, 8) },
	OpMulZero:  expandMulZero,
	OpSign:     expandSign,
	OpRecip:    func(n *Node) Expr { return Div(ConstF(n.Type, 1), n.Args[0]) },
	OpSigmoid:  expandSigmoid,
	OpMin:      expandExtreme,
	OpMax:      expandExtreme,
	OpDiv:      expandDiv,
	OpRem:      expandDiv,
	OpFloorDiv: ExpandFloorDiv,
	OpMod:      ExpandFloorDiv,
	OpShl:      expandShift,
	OpShr:      expandShift,
}

// portableRules are applied to f32 operands for Portable.
var portableRules = [opCount]func(n *Node) Expr{
	OpMin:      extreme32,
	OpMax:      extreme32,
	OpConvert:  convert32,
	OpRem:      of2(rem32),
	OpRound:    of1(round32),
	OpIsNaN:    of1(isNaN32),
	OpIsFinite: of1(isFinite32),
	OpSigmoid:  of1(sigmoid32),
	OpExp:      of1(exp32),
	OpExpm1:    of1(expm132),
	OpLog:      of1(log32),
	OpLog1p:    of1(log1p32),
	OpSin:      of1(sin32),
	OpCos:      of1(cos32),
	OpTan:      of1(tan32),
	OpAsin:     of1(asin32),
	OpAcos:     of1(acos32),
	OpAtan:     of1(atan32),
	OpAtan2:    of2(atan232),
	OpSinh:     of1(sinh32),
	OpCosh:     of1(cosh32),
	OpTanh:     of1(tanh32),
	OpErf:      of1(erf32),
	OpErfc:     of1(erfc32),
	OpPow:      of2(pow32),
}

func of1(f func(x Expr) Expr) func(n *Node) Expr {
	return func(n *Node) Expr { return f(n.Args[0]) }
}

func of2(f func(x, y Expr) Expr) func(n *Node) Expr {
	return func(n *Node) Expr { return f(n.Args[0], n.Args[1]) }
}

// ErrorBound returns the maximum error of the expansion of op for f32 with Portable, in units in
// the last place (ULP) of the result, over all arguments. It is 0 for operations that are exact or
// not expanded. The bounds were measured with every step rounded correctly, as Eval does in Exact
// mode, on every fifth f32 (for two operands, on 20 million pairs), and are rounded up; a test
// samples them again. A device may add to the error by fused multiply-add (¼ ULP seen), and by
// inaccurate division (2.5 ULP in WGSL) or square root about their own error, in asin and acos,
// atan and atan2, tan, sinh and cosh, tanh, sigmoid, erfc and pow.
func ErrorBound(op Op) float64 {
	if op >= opCount {
		return 0
	}
	return errorBounds[op]
}

var errorBounds = [opCount]float64{
	OpExp:     1.25,
	OpExpm1:   1.5,
	OpLog:     1,
	OpLog1p:   2.5,
	OpSin:     3.5,
	OpCos:     3.5,
	OpTan:     5.5,
	OpAsin:    2.5,
	OpAcos:    1.5,
	OpAtan:    2.5,
	OpAtan2:   2.5,
	OpSinh:    2,
	OpCosh:    1.5,
	OpTanh:    1.5,
	OpSigmoid: 3,
	OpErf:     1.5,
	OpErfc:    6,
	OpPow:     4,
}

// Coefficients returns the coefficients, constant first, of the polynomials that [Expand] uses for
// tanh, erf, erfc, powers, sines and cosines, for backends that evaluate them by other means:
//
//	tanh(x) = x + x³·near(x²), |x| ≤ 0.6
//	erf(x)  = x + x·near(x²), |x| ≤ 0.92
//	erf(a)  = 1 - 2^far(a), 0.92 ≤ a ≤ 3.95, beyond which it rounds to 1
//	erfc(a) = exp(-a²)·t·far(t) for t = 2/(a + 2), 0.75 ≤ a ≤ 10.1
//	2^r     = 1 + r·near(r), |r| ≤ 0.502, of OpPow
//	sin(r)  = r + r³·near(r²) and cos(r) = 1 - r²/2 + r⁴·far(r²), |r| ≤ 0.7855, of OpSin
//
// They are nil for other operations.
func Coefficients(op Op) (near, far []float64) {
	switch op {
	case OpTanh:
		return tanhPoly, nil
	case OpErf:
		return erfPoly, logErfcPoly
	case OpErfc:
		return nil, erfcPoly
	case OpPow:
		return exp2Poly, nil
	case OpSin:
		return sinPoly, cosPoly
	}
	return nil, nil
}
