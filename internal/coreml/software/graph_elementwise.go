package software

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// implementations are those of operations, by name.
var implementations = map[string]func(c *call) ir.Value{}

func init() {
	for kind, f := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"abs": ops.Abs, "sign": ops.Sign, "acos": ops.Acos, "asin": ops.Asin, "atan": ops.Atan, "ceil": ops.Ceil, "cos": ops.Cos,
		"cosh": ops.Cosh, "erf": ops.Erf, "exp": ops.Exp, "exp2": ops.Exp2, "floor": ops.Floor, "relu": ops.Relu, "round": ops.Round,
		"sigmoid": ops.Sigmoid, "silu": ops.Silu, "sin": ops.Sin, "sinh": ops.Sinh, "softplus": ops.Softplus, "sqrt": ops.Sqrt,
		"tan": ops.Tan, "tanh": ops.Tanh, "logical_not": ops.Not, "identity": ops.StopGradient,
		"square": func(b *ir.Builder, x ir.Value) ir.Value { return ops.Mul(b, x, x) },
	} {
		implementations[kind] = func(c *call) ir.Value { return f(c.Builder, c.x()) }
	}
	for kind, f := range map[string]func(b *ir.Builder, x, y ir.Value) ir.Value{
		"add": ops.Add, "sub": ops.Sub, "mul": ops.Mul, "maximum": ops.Max, "minimum": ops.Min, "pow": ops.Pow,
		"equal": ops.Eq, "not_equal": ops.Ne, "less": ops.Lt, "less_equal": ops.Le, "greater": ops.Gt, "greater_equal": ops.Ge,
		"logical_and": ops.And, "logical_or": ops.Or, "logical_xor": ops.Xor,
		"real_div": ops.Div, "floor_div": floored, "mod": modulo,
	} {
		implementations[kind] = func(c *call) ir.Value { return f(c.Builder, c.x(), c.y()) }
	}
	implementations["log"] = func(c *call) ir.Value {
		return ops.Log(c.Builder, ops.Add(c.Builder, c.x(), c.like(c.x(), c.number("epsilon", 1e-45))))
	}
	implementations["rsqrt"] = func(c *call) ir.Value {
		return ops.Rsqrt(c.Builder, ops.Add(c.Builder, c.x(), c.like(c.x(), c.number("epsilon", 1e-12))))
	}
	implementations["gelu"] = func(c *call) ir.Value {
		if c.word("mode") == "TANH_APPROXIMATION" {
			return ops.GeluTanh(c.Builder, c.x())
		}
		return ops.Gelu(c.Builder, c.x())
	}
	implementations["cast"] = func(c *call) ir.Value { return ops.Convert(c.Builder, c.x(), dtypes[c.op.Type.DType]) }
	implementations["select"] = func(c *call) ir.Value {
		to := func(parameter string) ir.Value { return ops.BroadcastTo(c.Builder, c.arg(parameter), c.dims()) }
		return ops.Select(c.Builder, to("cond"), to("a"), to("b"))
	}
}

// floored and modulo broadcast, unlike the ops that they are.
func floored(b *ir.Builder, x, y ir.Value) ir.Value {
	x, y = together(b, x, y)
	return ops.FloorDivide(b, x, y)
}

func modulo(b *ir.Builder, x, y ir.Value) ir.Value {
	x, y = together(b, x, y)
	return ops.Mod(b, x, y)
}

func together(b *ir.Builder, x, y ir.Value) (ir.Value, ir.Value) {
	shape := ops.Eq(b, x, y).Shape()
	return ops.BroadcastTo(b, x, shape), ops.BroadcastTo(b, y, shape)
}
