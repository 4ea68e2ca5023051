package scalar

// Coefficients returns the coefficients, constant first, of the polynomials that [Expand] uses for
// tanh, erf, erfc and powers, for backends that evaluate them by other means:
//
//	tanh(x) = x + x³·near(x²), |x| ≤ 0.6
//	erf(x)  = x + x·near(x²), |x| ≤ 0.92
//	erf(a)  = 1 - 2^far(a), 0.92 ≤ a ≤ 3.95, beyond which it rounds to 1
//	erfc(a) = exp(-a²)·t·far(t) for t = 2/(a + 2), 0.75 ≤ a ≤ 10.1
//	2^r     = 1 + r·near(r), |r| ≤ 0.502, of OpPow
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
	}
	return nil, nil
}
