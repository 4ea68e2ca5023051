package scalar

// Op identifies an operation.
type Op uint8

// The operations. Their operand and result types are listed in opTable; the constructors of the
// same names without the prefix document their semantics.
const (
	OpInvalid Op = iota

	// Leaves.
	OpConst // a constant: Node.Bits
	OpArg   // operand number Node.Ref of an elementwise body
	OpVar   // the variable Node.Name: loop index, thread number, local
	OpLoad  // element Args[0] of buffer slot Node.Ref

	// Unary.
	OpNeg
	OpAbs
	OpSign
	OpFloor
	OpCeil
	OpRound
	OpTrunc
	OpExp
	OpExpm1
	OpLog
	OpLog1p
	OpSqrt
	OpRsqrt
	OpRecip
	OpSin
	OpCos
	OpTan
	OpAsin
	OpAcos
	OpAtan
	OpSinh
	OpCosh
	OpTanh
	OpSigmoid
	OpErf
	OpErfc
	OpNot
	OpPopCount
	OpIsNaN
	OpIsFinite
	OpReal
	OpImag
	OpConj

	// Binary.
	OpAdd
	OpSub
	OpMul
	OpMulZero
	OpDiv
	OpRem
	OpFloorDiv
	OpMod
	OpPow
	OpMin
	OpMax
	OpAtan2
	OpAnd
	OpOr
	OpXor
	OpShl
	OpShr
	OpEq
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
	OpMakeComplex

	// Ternary.
	OpSelect
	OpFma
	OpClamp
	OpDot4

	// Changes of type.
	OpConvert
	OpBitcast

	// Effects.
	OpCheck // operand 0; records code Node.Ref if operand 1, a bool, is false

	opCount
)

// kinds is a set of classes of types.
type kinds uint8

const (
	kBool kinds = 1 << iota
	kInt
	kFloat
	kComplex

	kNone    kinds = 0
	kReal          = kInt | kFloat
	kNumeric       = kInt | kFloat | kComplex
	kBits          = kBool | kInt
	kAny           = kBool | kNumeric
)

// result is the rule for the type of a node.
type result uint8

const (
	ofNode    result = iota // stored in the node: leaves, Convert, Bitcast
	ofOperand               // that of the last operand
	ofBool                  // Bool
	ofReal                  // the real type of the operand
	ofComplex               // the complex type of the operands
)

// opInfo is the table row of an operation. All operands have one type, of the kinds in operands;
// only the conditions of Select, its first operand, and of Check, its second, are Bool.
type opInfo struct {
	name     string
	arity    int
	operands kinds
	result   result
}

var opTable = [opCount]opInfo{
	OpInvalid: {"invalid", 0, kNone, ofNode},
	OpConst:   {"const", 0, kNone, ofNode},
	OpArg:     {"arg", 0, kNone, ofNode},
	OpVar:     {"var", 0, kNone, ofNode},
	OpLoad:    {"load", 1, kInt, ofNode},

	OpNeg:      {"neg", 1, kNumeric, ofOperand},
	OpAbs:      {"abs", 1, kNumeric, ofReal},
	OpSign:     {"sign", 1, kReal, ofOperand},
	OpFloor:    {"floor", 1, kFloat, ofOperand},
	OpCeil:     {"ceil", 1, kFloat, ofOperand},
	OpRound:    {"round", 1, kFloat, ofOperand},
	OpTrunc:    {"trunc", 1, kFloat, ofOperand},
	OpExp:      {"exp", 1, kFloat, ofOperand},
	OpExpm1:    {"expm1", 1, kFloat, ofOperand},
	OpLog:      {"log", 1, kFloat, ofOperand},
	OpLog1p:    {"log1p", 1, kFloat, ofOperand},
	OpSqrt:     {"sqrt", 1, kFloat, ofOperand},
	OpRsqrt:    {"rsqrt", 1, kFloat, ofOperand},
	OpRecip:    {"recip", 1, kFloat | kComplex, ofOperand},
	OpSin:      {"sin", 1, kFloat, ofOperand},
	OpCos:      {"cos", 1, kFloat, ofOperand},
	OpTan:      {"tan", 1, kFloat, ofOperand},
	OpAsin:     {"asin", 1, kFloat, ofOperand},
	OpAcos:     {"acos", 1, kFloat, ofOperand},
	OpAtan:     {"atan", 1, kFloat, ofOperand},
	OpSinh:     {"sinh", 1, kFloat, ofOperand},
	OpCosh:     {"cosh", 1, kFloat, ofOperand},
	OpTanh:     {"tanh", 1, kFloat, ofOperand},
	OpSigmoid:  {"sigmoid", 1, kFloat, ofOperand},
	OpErf:      {"erf", 1, kFloat, ofOperand},
	OpErfc:     {"erfc", 1, kFloat, ofOperand},
	OpNot:      {"not", 1, kBits, ofOperand},
	OpPopCount: {"popcount", 1, kInt, ofOperand},
	OpIsNaN:    {"isnan", 1, kFloat, ofBool},
	OpIsFinite: {"isfinite", 1, kFloat, ofBool},
	OpReal:     {"real", 1, kComplex, ofReal},
	OpImag:     {"imag", 1, kComplex, ofReal},
	OpConj:     {"conj", 1, kComplex, ofOperand},

	OpAdd:         {"add", 2, kNumeric, ofOperand},
	OpSub:         {"sub", 2, kNumeric, ofOperand},
	OpMul:         {"mul", 2, kNumeric, ofOperand},
	OpMulZero:     {"mul_zero", 2, kNumeric, ofOperand},
	OpDiv:         {"div", 2, kNumeric, ofOperand},
	OpRem:         {"rem", 2, kReal, ofOperand},
	OpFloorDiv:    {"floordiv", 2, kInt, ofOperand},
	OpMod:         {"mod", 2, kInt, ofOperand},
	OpPow:         {"pow", 2, kFloat, ofOperand},
	OpMin:         {"min", 2, kReal, ofOperand},
	OpMax:         {"max", 2, kReal, ofOperand},
	OpAtan2:       {"atan2", 2, kFloat, ofOperand},
	OpAnd:         {"and", 2, kBits, ofOperand},
	OpOr:          {"or", 2, kBits, ofOperand},
	OpXor:         {"xor", 2, kBits, ofOperand},
	OpShl:         {"shl", 2, kInt, ofOperand},
	OpShr:         {"shr", 2, kInt, ofOperand},
	OpEq:          {"eq", 2, kAny, ofBool},
	OpNe:          {"ne", 2, kAny, ofBool},
	OpLt:          {"lt", 2, kReal, ofBool},
	OpLe:          {"le", 2, kReal, ofBool},
	OpGt:          {"gt", 2, kReal, ofBool},
	OpGe:          {"ge", 2, kReal, ofBool},
	OpMakeComplex: {"complex", 2, kFloat, ofComplex},

	OpSelect: {"select", 3, kAny, ofOperand},
	OpFma:    {"fma", 3, kFloat, ofOperand},
	OpClamp:  {"clamp", 3, kReal, ofOperand},
	OpDot4:   {"dot4", 3, kInt, ofOperand},

	OpConvert: {"convert", 1, kAny, ofNode},
	OpBitcast: {"bitcast", 1, kReal, ofNode},

	OpCheck: {"check", 2, kAny, ofNode},
}

// String returns the operation's name in lower case, as Print writes it.
func (op Op) String() string { return op.info().name }

// Arity returns the number of operands.
func (op Op) Arity() int { return op.info().arity }

// info returns the table row of op; numbers outside the table read as
// OpInvalid.
func (op Op) info() *opInfo {
	if op >= opCount {
		op = OpInvalid
	}
	return &opTable[op]
}

// isLeaf reports whether op has no operands. A Load is not a leaf: its index
// is an operand.
func (op Op) isLeaf() bool { return op >= OpConst && op <= OpVar }

// isCompare reports whether op is one of the six comparisons.
func (op Op) isCompare() bool { return op >= OpEq && op <= OpGe }

// Commutes reports whether the two operands of op can be swapped without changing the value.
func (op Op) Commutes() bool {
	switch op {
	case OpAdd, OpMul, OpMulZero, OpMin, OpMax, OpAnd, OpOr, OpXor, OpEq, OpNe:
		return true
	}
	return false
}
