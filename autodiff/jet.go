package autodiff

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// SeriesName returns the name of the input that [Jet] adds for the k-th derivative of a port, and
// of the output that it adds for the k-th derivative of an output: "series/2/x".
func SeriesName(k int, name string) string { return seriesName(seriesPrefix+"/", k, name) }

func seriesName(prefix string, k int, name string) string {
	return prefix + strconv.Itoa(k) + "/" + name
}

// Jet returns a graph that computes the outputs of g and their derivatives up to the given order
// along a curve (Taylor mode). The ports named in wrt (none: all ports of a floating or complex
// element type) move along a curve x(s), and the outputs along y(x(s)). The graph gets inputs
// "series/1/x" to "series/n/x" for the derivatives of x at s = 0, of the type of x, and outputs
// "series/1/y" to "series/n/y" for those of each plain output with derivatives; zeros if the output
// does not depend on the ports.
//
// With "series/1/x" = v and zeros for the other inputs, "series/k/y" is the k-th derivative of y in
// direction v. The size of the graph grows with the square of the order, or with its cube for ops
// whose derivatives keep changing form; repeated [JVP] doubles the graph at each order (Griewank
// and Walther, Evaluating Derivatives, chapter 13). Loops and functions with custom derivatives are
// differentiated repeatedly.
//
// The error is of kind [ir.ErrAttr] for an order below 1 or above [MaxOrder], and [ir.ErrName] for
// an unknown port.
func Jet(g *ir.Graph, order int, wrt ...string) (*ir.Graph, error) {
	return JetWith(g, order, Options{Wrt: wrt, Missing: MissingIsZero})
}

// JetWith is [Jet] with options.
func JetWith(g *ir.Graph, order int, o Options) (*ir.Graph, error) {
	const transform = "jet"
	if err := checkGraph(transform, g); err != nil {
		return nil, err
	}
	if order < 1 || order > MaxOrder {
		return nil, wrap(transform, ir.Attrf("order is %d; it must be from 1 to %d", order, MaxOrder))
	}
	if len(o.Wrt) == 0 {
		o.Wrt = differentiable(g)
	}
	ports, err := portIndices(g, o.Wrt)
	if err == nil && o.Missing == MissingIsError {
		err = checkPaths(g, ports, plainOutputs(g))
	}
	if err != nil {
		return nil, wrap(transform, err)
	}
	prefix := freePrefix(g, seriesPrefix)
	j, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		in, curve := b.CopyPorts(g, nil), make([][]ir.Value, len(g.Ports()))
		for _, i := range ports {
			p := g.Ports()[i]
			for k := 1; k <= order; k++ {
				curve[i] = append(curve[i], b.Port(ir.InputPort, seriesName(prefix, k, p.Name), p.Value.Type()))
			}
		}
		out := alongCurve(b, g, in, curve, order)
		copyOutputs(b, g, column(out, 0), nil)
		for _, i := range plainOutputs(g) {
			for k := 1; k <= order; k++ {
				b.Output(seriesName(prefix, k, g.Outputs()[i].Name), orZeros(b, out[i][k], out[i][0]))
			}
		}
	})
	return j, wrap(transform, err)
}

// alongCurve adds g with its ports moving along a curve. curve holds the derivatives of each port
// from the first on, or none for a constant port. The result holds for each output its value and
// its derivatives up to order, where an invalid Value is zero.
func alongCurve(b *ir.Builder, g *ir.Graph, in []ir.Value, curve [][]ir.Value, order int) [][]ir.Value {
	w := newTaylor(b)
	ports := make([]*series, len(in))
	for i, v := range in {
		terms := []ir.Value{v}
		for k, d := range curve[i] {
			terms = append(terms, divide(b, d, factorial(k+1)))
		}
		ports[i] = w.fromTerms(terms)
	}
	out := make([][]ir.Value, len(g.Outputs()))
	for i, s := range w.graph(g, ports) {
		for k := 0; k <= order && b.Err() == nil; k++ {
			out[i] = append(out[i], scale(b, s.at(k), factorial(k)))
		}
		out[i] = append(out[i], make([]ir.Value, order+1-len(out[i]))...)
	}
	return out
}

// column returns element k of each row.
func column(rows [][]ir.Value, k int) []ir.Value {
	out := make([]ir.Value, len(rows))
	for i, r := range rows {
		out[i] = r[k]
	}
	return out
}

func factorial(k int) float64 {
	f := 1.0
	for i := 2; i <= k; i++ {
		f *= float64(i)
	}
	return f
}

// scale returns x·c. It returns x if c = 1 or if x is invalid, known to be zero.
func scale(b *ir.Builder, x ir.Value, c float64) ir.Value {
	if !x.Valid() || c == 1 {
		return x
	}
	return ops.Mul(b, x, ops.ConstLike(b, x, c))
}

// divide returns x/c. It returns x if c = 1 or if x is invalid, known to be zero. It divides because
// a whole number is a literal of every element type, but its inverse is not.
func divide(b *ir.Builder, x ir.Value, c float64) ir.Value {
	if !x.Valid() || c == 1 {
		return x
	}
	return ops.Div(b, x, ops.ConstLike(b, x, c))
}
