package scalar

// identity returns a simpler equal of n by an identity that holds for all operand values, also NaN,
// infinities and signed zeros (except MulZero, where the sign of a zero is unspecified), or nil. It
// looks only one level deep; rules with ranges or sums of terms are in Simplify.
func identity(n *Node) Expr {
	a := n.Args[0]
	switch n.Op {
	case OpNeg, OpNot, OpConj, OpRecip:
		return identityInvolution(n, a)
	case OpAbs, OpFloor, OpCeil, OpRound, OpTrunc:
		return identityIdempotent(n, a)
	case OpReal, OpImag:
		if a.Op == OpMakeComplex {
			return a.Args[n.Op-OpReal]
		}
	case OpMakeComplex:
		b := n.Args[1]
		if a.Op == OpReal && b.Op == OpImag && a.Args[0] == b.Args[0] {
			return a.Args[0]
		}
	case OpConvert:
		return identityConvert(n, a)
	case OpBitcast:
		if a.Op == OpBitcast {
			return Bitcast(a.Args[0], n.Type)
		}
	case OpSelect:
		return identitySelect(n, a)
	case OpClamp, OpFma, OpDot4:
	default:
		if len(n.Args) == 2 {
			return identityBinary(n, a, n.Args[1])
		}
	}
	return nil
}

// identityInvolution removes an operation applied twice. Recip is not included, since it rounds.
func identityInvolution(n *Node, a Expr) Expr {
	if a.Op != n.Op || n.Op == OpRecip {
		return nil
	}
	return a.Args[0]
}

// identityIdempotent removes an operation on its own result, on its negation (abs), on an unsigned
// number (abs), and on another rounding's result.
func identityIdempotent(n *Node, a Expr) Expr {
	if n.Op == OpAbs {
		switch {
		case a.Op == OpAbs, a.Type.IsUnsigned():
			return a
		case a.Op == OpNeg:
			return Abs(a.Args[0])
		}
		return nil
	}
	switch a.Op {
	case OpFloor, OpCeil, OpRound, OpTrunc:
		return a
	}
	return nil
}

// identityConvert removes a conversion through a wider type and back.
func identityConvert(n *Node, a Expr) Expr {
	if a.Op == OpConvert && a.Args[0].Type == n.Type && represents(a.Type, n.Type) {
		return a.Args[0]
	}
	return nil
}

// identitySelect resolves constant conditions and removes equal branches.
func identitySelect(n *Node, cond Expr) Expr {
	a, b := n.Args[1], n.Args[2]
	if c, ok := cond.IntConst(); ok {
		if c != 0 {
			return a
		}
		return b
	}
	switch {
	case a == b:
		return a
	case cond.Op == OpNot:
		return Select(cond.Args[0], b, a)
	case a.isInt(1) && b.isInt(0) && a.Type.IsBool():
		return cond
	case a.isInt(0) && b.isInt(1) && a.Type.IsBool():
		return Not(cond)
	}
	return nil
}

// identityBinary applies the neutral and absorbing elements of binary operations. For floats, x +
// (-0), x - 0, x·1 and x/1 are x; x + 0 is not (it turns -0 into 0), and x·0 is not 0 (for
// infinities, NaN and signs).
func identityBinary(n *Node, a, b Expr) Expr {
	if n.Type.IsBool() && !n.Op.isCompare() || n.Type.IsInteger() {
		return identityInt(n, a, b)
	}
	switch n.Op {
	case OpAdd:
		switch {
		case b.isFloat(negZero):
			return a
		case a.isFloat(negZero):
			return b
		}
	case OpSub:
		if b.isFloat(0) {
			return a
		}
		if a.isFloat(negZero) {
			return Neg(b)
		}
	case OpMul, OpMulZero:
		return identityMul(n, a, b)
	case OpDiv:
		switch {
		case b.isFloat(1):
			return a
		case b.isFloat(-1):
			return Neg(a)
		}
	case OpPow:
		switch {
		case b.isFloat(1):
			return a
		case b.isFloat(0):
			return ConstF(n.Type, 1)
		case b.isFloat(2):
			return Mul(a, a)
		}
	case OpMin, OpMax:
		if a == b {
			return a
		}
	}
	return nil
}

// identityMul handles float products by ±1, and MulZero with a constant operand that makes it a
// plain product or 0.
func identityMul(n *Node, a, b Expr) Expr {
	switch {
	case b.isFloat(1):
		return a
	case a.isFloat(1):
		return b
	case b.isFloat(-1):
		return Neg(a)
	case a.isFloat(-1):
		return Neg(b)
	case n.Op == OpMul:
		return nil
	}
	for _, c := range []Expr{a, b} {
		v, ok := c.Value()
		switch {
		case !ok || !n.Type.IsFloat():
		case v.F == 0:
			return ConstF(n.Type, 0)
		case isFinite(v.F):
			return Mul(a, b)
		}
	}
	return nil
}

// identityInt applies the identities of integers and bools. All ones is -1 for a signed type and
// the largest value for an unsigned type.
func identityInt(n *Node, a, b Expr) Expr {
	zero := func() Expr { return constant(n.Type, Value{}) }
	if n.Op.Commutes() && a.Op == OpConst {
		a, b = b, a
	}
	switch n.Op {
	case OpAdd, OpShl, OpShr:
		if b.isInt(0) {
			return a
		}
	case OpSub:
		if b.isInt(0) {
			return a
		}
		if a == b {
			return zero()
		}
	case OpMul:
		if b.isInt(1) {
			return a
		}
		if b.isInt(0) {
			return b
		}
	case OpMulZero:
		return Mul(a, b)
	case OpDiv, OpFloorDiv:
		if b.isInt(1) || b.isInt(0) {
			return a
		}
		if b.isInt(-1) && n.Type.IsSigned() {
			return Neg(a)
		}
	case OpRem, OpMod:
		if b.isInt(1) || b.isInt(0) || b.isInt(-1) && n.Type.IsSigned() {
			return zero()
		}
	case OpMin, OpMax:
		if a == b {
			return a
		}
	case OpAnd, OpOr, OpXor:
		return identityBits(n, a, b)
	}
	return nil
}

// identityBits is [identityInt] for operations on bits.
func identityBits(n *Node, a, b Expr) Expr {
	ones := n.Type.Wrap(-1)
	switch n.Op {
	case OpAnd:
		switch {
		case a == b, b.isInt(ones):
			return a
		case b.isInt(0):
			return b
		}
	case OpOr:
		switch {
		case a == b, b.isInt(0):
			return a
		case b.isInt(ones):
			return b
		}
	case OpXor:
		switch {
		case b.isInt(0):
			return a
		case a == b:
			return constant(n.Type, Value{})
		case n.Type.IsBool() && b.isInt(1):
			return Not(a)
		}
	}
	return nil
}
