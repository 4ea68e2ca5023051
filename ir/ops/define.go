package ops

import (
	"cmp"
	"errors"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// notLinear is the reason most ops have no Transpose.
const notLinear = "not linear in any operand"

// define registers an op. An op without a Transpose and without a reason is not linear. It panics
// on an invalid definition, a bug in this package.
func define(d *ir.Def) {
	if infer := d.Infer; infer != nil {
		d.Infer = func(n *ir.Node) ([]ir.Type, error) {
			types, err := infer(n)
			return types, nameOperand(n, err)
		}
	}
	if d.Transpose == nil && d.NoTranspose == "" {
		d.NoTranspose = cmp.Or(d.NoGrad, notLinear)
		if d.Body != nil {
			d.NoTranspose = "taken of its body"
		}
	}
	if err := ir.Register(d); err != nil {
		panic(err)
	}
}

// numbered prefixes constraints with C1, C2, ….
func numbered(constraints ...string) []string {
	out := make([]string, len(constraints))
	for i, c := range constraints {
		out[i] = "C" + strconv.Itoa(i+1) + ": " + c
	}
	return out
}

func elementwiseConstraints(types domain, more ...string) []string {
	return numbered(append([]string{
		"the operands have one element type, which is " + types.String(),
		"the operands have one shape, which is that of the result",
	}, more...)...)
}

// scalarReference is the reference implementation of an elementwise op for one element of each
// operand, by class of element type. Integer code takes the element type and need not wrap
// its result; a u64 is a bit pattern.
type scalarReference struct {
	float   func(x []float64) float64
	integer func(d ir.DType, x []int64) int64
	complex func(x []complex128) complex128
}

// evalRule is a reference implementation.
type evalRule = func(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error)

// evalResult makes the Eval rule of an op with one result from a function that computes the
// elements of out, which are zeros at first. They are rounded to the element type afterwards.
func evalResult(f func(n *ir.Node, in []*ir.Array, out *ir.Array)) evalRule {
	return func(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
		out, err := resultArray(n, 0)
		if err != nil {
			return nil, err
		}
		f(n, in, out)
		return []*ir.Array{c.Round(out)}, nil
	}
}

func float1(f func(float64) float64) func([]float64) float64 {
	return func(x []float64) float64 { return f(x[0]) }
}

func float2(f func(x, y float64) float64) func([]float64) float64 {
	return func(x []float64) float64 { return f(x[0], x[1]) }
}

// eval is the Eval rule of an elementwise op whose result has the element type of its
// operands.
func (m scalarReference) eval(_ *ir.Node, in []*ir.Array, out *ir.Array) {
	x := operands{in: in}
	for i := range out.F {
		out.F[i] = m.float(x.floats(i))
	}
	for i := range out.I {
		out.I[i] = m.integer(out.DType, x.integers(i))
	}
	for i := range out.C {
		out.C[i] = m.complex(x.complexes(i))
	}
}

// operands collects element i of several arrays into a buffer that the next call reuses.
type operands struct {
	in []*ir.Array
	f  [3]float64
	i  [3]int64
	c  [3]complex128
}

func (o *operands) floats(i int) []float64 {
	for k, a := range o.in {
		o.f[k] = a.F[i]
	}
	return o.f[:len(o.in)]
}

func (o *operands) integers(i int) []int64 {
	for k, a := range o.in {
		o.i[k] = a.I[i]
	}
	return o.i[:len(o.in)]
}

func (o *operands) complexes(i int) []complex128 {
	for k, a := range o.in {
		o.c[k] = a.C[i]
	}
	return o.c[:len(o.in)]
}

// elementwise describes an op that computes each result element from the operand elements
// at the same position, all of one element type.
type elementwise struct {
	op          ir.Op
	doc         string
	constraints []string // in addition to those of all elementwise ops
	operands    []string
	types       domain
	reference   scalarReference
	scalar      func(x []scalar.Expr) scalar.Expr
	jvp         jvpRule
	transpose   transposeRule
	noGrad      string
}

type (
	jvpRule       = func(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value
	transposeRule = func(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value
)

func defineElementwise(e elementwise) {
	define(&ir.Def{
		Op: e.op, Doc: e.doc, Operands: e.operands,
		Constraints: elementwiseConstraints(e.types, e.constraints...),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, e.types)
			return []ir.Type{t}, err
		},
		Eval: evalResult(e.reference.eval),
		JVP:  e.jvp, NoGrad: e.noGrad,
		Transpose: e.transpose,
		Batch:     batchElementwise,
		Scalar:    func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return e.scalar(x) },
	})
}

// unary describes an elementwise op of one operand.
type unary struct {
	op        ir.Op
	doc       string
	types     domain
	reference scalarReference
	scalar    func(x scalar.Expr) scalar.Expr
	// slope returns the derivative at x, where the result is y. Nil means a
	// derivative of 0 wherever it exists.
	slope func(b *ir.Builder, x, y ir.Value) ir.Value
	// linear applies the op to a cotangent, for self-adjoint ops.
	linear func(b *ir.Builder, ct ir.Value) ir.Value
	noGrad string
}

func defineUnary(u unary) {
	e := elementwise{
		op: u.op, doc: u.doc, operands: []string{"x"}, types: u.types, reference: u.reference, noGrad: u.noGrad,
		scalar: func(x []scalar.Expr) scalar.Expr { return u.scalar(x[0]) },
	}
	if u.noGrad == "" {
		e.jvp = func(b *ir.Builder, _ *ir.Node, in, out, t []ir.Value) []ir.Value {
			if u.slope == nil {
				return []ir.Value{{}}
			}
			return []ir.Value{scale(b, t[0], u.slope(b, in[0], out[0]))}
		}
	}
	if u.linear != nil {
		e.jvp = linearJVP
		e.transpose = transposeEach(func(b *ir.Builder, _ *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return u.linear(b, ct)
		})
	}
	defineElementwise(e)
}

// defineFunction defines a function of floats: float is its reference implementation, and slope
// returns the derivative at x, where the result is y.
func defineFunction(op ir.Op, doc string, expr func(x scalar.Expr) scalar.Expr, float func(float64) float64, slope func(b *ir.Builder, x, y ir.Value) ir.Value) {
	defineUnary(unary{op: op, doc: doc, types: floats, scalar: expr, reference: scalarReference{float: float1(float)}, slope: slope})
}

// slope2 returns the derivative by one of two operands at x and y, where the result is z.
type slope2 = func(b *ir.Builder, x, y, z ir.Value) ir.Value

// binary describes an elementwise op of two operands.
type binary struct {
	op          ir.Op
	doc         string
	operands    []string // "x" and "y" where nil
	constraints []string
	types       domain
	reference   scalarReference
	scalar      func(x, y scalar.Expr) scalar.Expr
	// slopes are the derivatives by each operand; jvp, if set, replaces them.
	slopes    [2]slope2
	jvp       jvpRule
	transpose transposeRule
	noGrad    string
}

func defineBinary(d binary) {
	if d.operands == nil {
		d.operands = []string{"x", "y"}
	}
	jvp := d.jvp
	if jvp == nil && d.noGrad == "" {
		jvp = func(b *ir.Builder, _ *ir.Node, in, out, t []ir.Value) []ir.Value {
			var terms [2]ir.Value
			for i, slope := range d.slopes {
				if t[i].Valid() && slope != nil {
					terms[i] = scale(b, t[i], slope(b, in[0], in[1], out[0]))
				}
			}
			return []ir.Value{addTangents(b, terms[0], terms[1])}
		}
	}
	defineElementwise(elementwise{
		op: d.op, doc: d.doc, constraints: d.constraints, operands: d.operands, types: d.types,
		reference: d.reference, jvp: jvp, transpose: d.transpose, noGrad: d.noGrad,
		scalar: func(x []scalar.Expr) scalar.Expr { return d.scalar(x[0], x[1]) },
	})
}

// move describes an op of one operand that rearranges elements.
type move struct {
	op          ir.Op
	doc         string
	constraints []string
	newAttrs    func() ir.Attrs
	// shape returns the shape of the result.
	shape func(n *ir.Node) (ir.Shape, error)
	// source returns the position in the operand of the result element at at. It may use
	// from, a buffer of the operand's rank.
	source func(n *ir.Node, at, from []int) []int
	// index is source for index expressions.
	index     func(n *ir.Node, at ir.Index) ir.Index
	transpose func(b *ir.Builder, n *ir.Node, ct ir.Value) ir.Value
	// batch is the Batch rule after the batch axis is moved to the front.
	batch func(b *ir.Builder, n *ir.Node, x ir.Value, size ir.Dim) ir.Value
}

func defineMove(m move) {
	define(&ir.Def{
		Op: m.op, Doc: m.doc, Constraints: numbered(m.constraints...), Operands: []string{"x"}, NewAttrs: m.newAttrs,
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			x := n.Input(0)
			if err := plain.check(x.DType()); err != nil {
				return nil, err
			}
			s, err := m.shape(n)
			return []ir.Type{{DType: x.DType(), Shape: s}}, err
		},
		Eval: evalResult(func(n *ir.Node, in []*ir.Array, out *ir.Array) {
			from := make([]int, len(in[0].Dims))
			copyRows(out, in[0], func(at []int) int { return offset(in[0].Dims, m.source(n, at, from)) })
		}),
		JVP: linearJVP,
		Transpose: transposeEach(func(b *ir.Builder, n *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return m.transpose(b, n, ct)
		}),
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, size ir.Dim) ([]ir.Value, []int) {
			return []ir.Value{m.batch(b, n, MoveAxis(b, in[0], axes[0], 0), size)}, []int{0}
		},
		Lower: &ir.MapLowering{Element: func(n *ir.Node, _ int, at ir.Index, load ir.Load) scalar.Expr {
			return load(0, m.index(n, at))
		}},
	})
}

// composite describes an op defined by a body of other ops. Its shape rule is that of the
// body: it refuses what the body refuses, and the types of the results are the body's.
type composite struct {
	op          ir.Op
	doc         string
	constraints []string
	operands    []string // "x" where nil
	optional    int
	ones        []string // see [ir.Def.Ones]
	newAttrs    func() ir.Attrs
	// types are the accepted types of operand 0, checked before check and body.
	types   domain
	check   func(n *ir.Node) error // nil: no further checks
	reduces func(n *ir.Node) []int // the axes that the result lacks; nil: no reduction
	// body may read the attributes and operands of n, but not its results.
	body func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value
	// bodies replaces body for an op with several results.
	bodies  func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value
	jvp     jvpRule // nil: that of the body
	noGrad  string
	routine bool // whether a backend may implement the op as a routine
}

func defineComposite(c composite) {
	if c.operands == nil {
		c.operands = []string{"x"}
	}
	body := c.bodies
	if body == nil {
		body = func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value { return []ir.Value{c.body(b, n, in)} }
	}
	var lower ir.Lowering
	if c.routine {
		lower = &ir.RoutineLowering{}
	}
	define(&ir.Def{
		Op: c.op, Doc: c.doc, Operands: c.operands, Optional: c.optional, Ones: c.ones, NewAttrs: c.newAttrs,
		Constraints: numbered(append([]string{"the element type of " + c.operands[0] + " is " + c.types.String()}, c.constraints...)...),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			if len(n.Inputs()) == 0 {
				return nil, ir.Shapef("there is no operand")
			}
			if err := c.types.check(n.Input(0).DType()); err != nil {
				return nil, err
			}
			if c.check != nil {
				if err := c.check(n); err != nil {
					return nil, err
				}
			}
			return bodyTypes(n, body)
		},
		Reduces: c.reduces,
		JVP:     c.jvp, NoGrad: c.noGrad,
		Body:  body,
		Lower: lower,
	})
}

// oneDType reports an error unless all operands have one element type.
func oneDType(n *ir.Node) error {
	d := n.Input(0).DType()
	for i, v := range n.Inputs() {
		if v.DType() != d {
			return notAsFirst(n, i, v.DType(), d)
		}
	}
	return nil
}

// bodyTypes returns the types of the results of a body for the operands of a node. An
// error is stripped of the body's node: the caller knows only the composite.
func bodyTypes(n *ir.Node, body func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value) ([]ir.Type, error) {
	var types []ir.Type
	_, err := ir.Transform(string(n.Op()), func(b *ir.Builder) {
		in := make([]ir.Value, len(n.Inputs()))
		for i, v := range n.Inputs() {
			in[i] = b.Port(ir.InputPort, strconv.Itoa(i), v.Type())
		}
		for i, v := range body(b, n, in) {
			b.Output(strconv.Itoa(i), v)
			types = append(types, v.Type())
		}
	})
	if e, ok := errors.AsType[*ir.OpError](err); ok {
		err = e.Err
	}
	return types, err
}
