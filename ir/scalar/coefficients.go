package scalar

// Coefficients returns those of the polynomials that [Expand] computes tanh, erf
// and erfc by, the constant first, for backends that evaluate them by other means:
//
//	tanh(x) = x + x³·near(x²), |x| ≤ 0.6
//	erf(x)  = x + x·near(x²), |x| ≤ 0.92
//	erf(a)  = 1 - exp(far(a)), 0.92 ≤ a ≤ 3.95, beyond which it rounds to 1
//	erfc(a) = exp(-a²)·t·far(t) for t = 2/(a + 2), 0.75 ≤ a ≤ 10.1
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
	}
	return nil, nil
}
