package autodiff

import (
	"slices"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Function adds nodes to b that compute values from in. It may also use other values of b;
// derivatives treat them as constants.
type Function = func(b *ir.Builder, in []ir.Value) []ir.Value

// GradOf adds the gradients of the first value that f returns, a rank-0 value of a floating type,
// by each of xs, which are values of b. It differentiates inside a graph, for example for an inner
// training step. The gradients have the types of xs. If the first value does not depend on one of
// xs, the error is a [*NoPathError]. Errors are recorded in b.
func GradOf(b *ir.Builder, f Function, xs []ir.Value) []ir.Value {
	_, grads := ValueAndGradOf(b, f, xs)
	return grads
}

// ValueAndGradOf is [GradOf] that also returns all values of f: the scalar first, then auxiliary
// values.
func ValueAndGradOf(b *ir.Builder, f Function, xs []ir.Value) (values, grads []ir.Value) {
	const transform = "grad of function"
	grads = make([]ir.Value, len(xs))
	c := capture(b, f, xs)
	if c == nil {
		return []ir.Value{{}}, grads
	}
	if _, err := scalarOutput(c.g, c.g.Outputs()[0].Name); err != nil {
		b.Fail(wrap(transform, err))
		return make([]ir.Value, len(c.g.Outputs())), grads
	}
	values, back := c.pull(b, transform)
	ct := make([]ir.Value, len(values))
	if b.Err() == nil {
		ct[0] = ops.OnesLike(b, values[0])
	}
	for i, v := range back(ct) {
		if !v.Valid() && b.Err() == nil {
			b.Fail(wrap(transform, noPath(c.g, i, []int{0})))
		}
		grads[i] = v
	}
	return values, grads
}

// VJPOf adds f applied to xs and returns its values and their pullback. The pullback takes one
// cotangent for each value, where an invalid Value means zero, and returns one cotangent for each
// of xs, of its type; zeros if no path leads to it. It may be called several times. Errors are
// recorded in b.
func VJPOf(b *ir.Builder, f Function, xs []ir.Value) (values []ir.Value, pull func(ct []ir.Value) []ir.Value) {
	c := capture(b, f, xs)
	if c == nil {
		return []ir.Value{{}}, func([]ir.Value) []ir.Value { return make([]ir.Value, len(xs)) }
	}
	values, back := c.pull(b, "vjp of function")
	return values, func(ct []ir.Value) []ir.Value {
		grads := back(ct)
		for i, x := range xs {
			if derive.Differentiable(x.DType()) {
				grads[i] = orZeros(b, grads[i], x)
			}
		}
		return grads
	}
}

// JVPOf adds f applied to xs and returns its values and their tangents. t holds one tangent for
// each of xs, of its type; an invalid Value means zero. The tangent of a value that does not depend
// on xs is zeros; that of a value without derivatives is an invalid Value. Errors are recorded in
// b.
func JVPOf(b *ir.Builder, f Function, xs, t []ir.Value) (values, tangents []ir.Value) {
	c := capture(b, f, xs)
	if c == nil {
		return []ir.Value{{}}, []ir.Value{{}}
	}
	if len(t) != len(xs) {
		b.Fail(wrap("jvp of function", ir.Errorf(ir.ErrGraph, "%d tangents given for %d values", len(t), len(xs))))
		return make([]ir.Value, len(c.g.Outputs())), make([]ir.Value, len(c.g.Outputs()))
	}
	values, tangents = derive.JVP(b, c.g, c.in, slices.Concat(t, make([]ir.Value, len(c.in)-len(t))))
	for i, v := range values {
		if derive.Differentiable(v.DType()) {
			tangents[i] = orZeros(b, tangents[i], v)
		}
	}
	return values, tangents
}

// captured is a function as a graph. Its ports are the xs operands, followed by the other values
// that the function uses.
type captured struct {
	g  *ir.Graph
	in []ir.Value
	xs int
}

// capture calls f and extracts the nodes that it added into a graph. It returns nil after an error.
func capture(b *ir.Builder, f Function, xs []ir.Value) *captured {
	if !b.Require("derivative", "function", f != nil) {
		return nil
	}
	// Marks distinguish the operands from other uses of the same values. Neither the marks nor the
	// nodes of f keep any users: the derived graph replaces them, and dead code elimination removes
	// them.
	marks := make([]ir.Value, len(xs))
	for i, x := range xs {
		marks[i] = ops.Rematerialize(b, x)
	}
	results := f(b, slices.Clone(marks))
	if b.Err() == nil && len(results) == 0 {
		b.Fail(ir.Errorf(ir.ErrGraph, "the function to differentiate returns no values"))
	}
	whole := !slices.ContainsFunc(results, func(v ir.Value) bool { return !v.Valid() })
	if !b.Require("derivative", "value for a result of the function", whole) {
		return nil
	}
	c := &captured{xs: len(xs)}
	nodes, used := nodesBetween(marks, results)
	c.in = slices.Concat(xs, used)
	g, err := ir.Build("function", func(s *ir.Builder) {
		to := map[ir.Value]ir.Value{}
		for i, v := range slices.Concat(marks, used) {
			to[v] = s.Port(ir.InputPort, position("in", i), v.Type())
		}
		for _, n := range nodes {
			in := make([]ir.Value, len(n.Inputs()))
			for i, v := range n.Inputs() {
				in[i] = to[v]
			}
			for i, v := range s.Copy(n, in) {
				to[n.Result(i)] = v
			}
		}
		for i, v := range results {
			s.Output(position("out", i), to[v])
		}
	})
	b.Fail(err)
	c.g = g
	return c
}

// nodesBetween returns the nodes on paths from the marks to the results, in order, and the other values
// that these nodes use.
func nodesBetween(marks, results []ir.Value) (nodes []*ir.Node, used []ir.Value) {
	depends := map[*ir.Node]bool{}
	for _, m := range marks {
		depends[m.Node()] = true
	}
	reached := dependencies(results)
	for _, n := range reached {
		for _, v := range n.Inputs() {
			depends[n] = depends[n] || depends[v.Node()]
		}
	}
	use := func(v ir.Value) {
		if !depends[v.Node()] && !slices.Contains(used, v) {
			used = append(used, v)
		}
	}
	for _, n := range reached {
		if depends[n] && !slices.Contains(marks, n.Result(0)) {
			nodes = append(nodes, n)
			for _, v := range n.Inputs() {
				use(v)
			}
		}
	}
	for _, v := range results {
		use(v)
	}
	return nodes, used
}

// dependencies returns the nodes that values depend on, in graph order.
func dependencies(values []ir.Value) []*ir.Node {
	seen := map[*ir.Node]bool{}
	var nodes []*ir.Node
	for stack := slices.Clone(values); len(stack) > 0; {
		n := stack[len(stack)-1].Node()
		stack = stack[:len(stack)-1]
		if !seen[n] {
			seen[n] = true
			nodes = append(nodes, n)
			stack = append(stack, n.Inputs()...)
		}
	}
	slices.SortFunc(nodes, func(x, y *ir.Node) int { return x.ID() - y.ID() })
	return nodes
}

// pull adds the values of the function and returns them with the pullback.
func (c *captured) pull(b *ir.Builder, transform string) ([]ir.Value, func(ct []ir.Value) []ir.Value) {
	var by variables
	for i, x := range c.in[:c.xs] {
		if derive.Differentiable(x.DType()) {
			by.ports = append(by.ports, i)
		}
	}
	none := func([]ir.Value) []ir.Value { return make([]ir.Value, c.xs) }
	p, err := linearise(c.g, by, nil)
	if err != nil {
		b.Fail(wrap(transform, err))
		return make([]ir.Value, len(c.g.Outputs())), none
	}
	values, residuals := p.forward(b, c.in)
	return values, func(ct []ir.Value) []ir.Value {
		grads := make([]ir.Value, c.xs)
		if len(ct) != len(values) {
			b.Fail(wrap(transform, ir.Errorf(ir.ErrGraph, "%d cotangents given for %d values", len(ct), len(values))))
		}
		if b.Err() != nil {
			return grads
		}
		for i, v := range p.backward(b, residuals, ct) {
			grads[by.ports[i]] = v
		}
		return grads
	}
}
