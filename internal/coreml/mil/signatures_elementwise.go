package mil

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

func init() {
	one := func(takes accepts) []parameter { return []parameter{need("x", takes)} }
	two := func(takes accepts) []parameter { return []parameter{need("x", takes), need("y", takes)} }

	declare(CoreML5, likeX, one(numbers), "abs", "sign", "square")
	declare(CoreML5, likeX, one(floats), "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2", "floor", "relu",
		"round", "sigmoid", "silu", "sin", "sinh", "softplus", "sqrt", "tan", "tanh")
	declare(CoreML5, likeX, one(bools), "logical_not")
	declare(CoreML5, likeX, one(anything), "identity")
	declare(CoreML5, likeX, []parameter{need("x", floats), may("epsilon", floats)}, "log", "rsqrt")
	declare(CoreML5, likeX, []parameter{need("x", floats), may("mode", text, "EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION")}, "gelu")
	declare(CoreML5, inferCast, []parameter{need("x", anything), {
		name: "dtype", takes: text, constant: true, words: []string{"fp16", "fp32", "int32", "bool"},
	}}, "cast")

	declare(CoreML5, broadcastXY, two(numbers), "add", "sub", "mul", "real_div", "floor_div", "mod", "maximum", "minimum", "pow")
	declare(CoreML5, compareXY, two(numbers), "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
	declare(CoreML5, broadcastXY, two(bools), "logical_and", "logical_or", "logical_xor")
	declare(CoreML5, inferSelect, []parameter{need("cond", bools), need("a", anything), need("b", anything)}, "select")
}

// likeX is the rule of operations whose result has the type of x.
func likeX(c *call) (Type, error) { return c.typ("x"), nil }

func inferCast(c *call) (Type, error) {
	d, _ := dtypeNamed(c.word("dtype"))
	return Type{d, c.typ("x").Dims}, nil
}

// Broadcast returns the NumPy broadcast of two shapes, or an error of kind [ir.ErrShape].
func Broadcast(x, y Type) ([]int, error) { return broadcast(x.Dims, y.Dims) }

// broadcast returns the NumPy broadcast of two shapes: axes of size 1 and missing leading axes
// repeat.
func broadcast(x, y []int) ([]int, error) {
	if len(x) < len(y) {
		x, y = y, x
	}
	out := append([]int(nil), x...)
	for i, d := range y {
		at := len(x) - len(y) + i
		switch {
		case out[at] == 1:
			out[at] = d
		case d != 1 && d != out[at]:
			return nil, ir.Shapef("%v and %v do not broadcast", x, y)
		}
	}
	return out, nil
}

func broadcastXY(c *call) (Type, error) {
	x, y := c.typ("x"), c.typ("y")
	if x.DType != y.DType {
		return Type{}, ir.DTypef("x is %s and y is %s; the types must be equal", x, y)
	}
	dims, err := broadcast(x.Dims, y.Dims)
	return Type{x.DType, dims}, err
}

func compareXY(c *call) (Type, error) {
	t, err := broadcastXY(c)
	return Type{Bool, t.Dims}, err
}

func inferSelect(c *call) (Type, error) {
	a, b := c.typ("a"), c.typ("b")
	if a.DType != b.DType {
		return Type{}, ir.DTypef("a is %s and b is %s; the types must be equal", a, b)
	}
	dims, err := broadcast(a.Dims, b.Dims)
	if err != nil {
		return Type{}, err
	}
	// The result has the shape of a and b; MIL broadcasts the condition to them but not the
	// reverse.
	all, err := broadcast(dims, c.typ("cond").Dims)
	if err == nil && !slices.Equal(all, dims) {
		err = ir.Shapef("the condition has the sizes %v; the values have %v", c.typ("cond").Dims, dims)
	}
	return Type{a.DType, dims}, err
}
