// Package quantize rounds the products of a graph to 8 bits, after training: weights by their own sizes, and what they
// are multiplied with by ranges that a calibration has observed.
//
//	q, err := quantize.New(g, quantize.Options{})
//	observer, err := q.Observer()
//	// Run observer on typical inputs, and give q.Observe the outputs Low and High of each run.
//	rounded, weights, err := q.Graph(weight)
//
// A rounded product has its operands as quantize_linear and dequantize_linear make them, and sums in f32:
// what ONNX calls the QDQ format, and what runtimes with integer products fuse.
//
// The input is the graph of a trained model, before it is compiled; the output is one that takes the weights in i8.
// Start reading at quantize.go; find.go finds the products, round.go builds the graph.
package quantize

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// The names of the outputs of [Int8.Observer]: f32 vectors with the least and the largest element of each value.
const (
	Low  = "calibration/low"
	High = "calibration/high"
)

// Options are the options of [New].
type Options struct {
	// Skip reports whether a weight stays as it is. Nil skips none.
	Skip func(name string) bool
}

// Int8 rounds the products of a graph.
type Int8 struct {
	g        *ir.Graph
	products map[*ir.Node]weightProduct
	weights  map[string]int // the axis of the channels, by parameter; -1 for none
	points   []ir.Value     // what weights are multiplied with
	low      []float64      // of points
	high     []float64
}

// New finds the products of a graph with weights: f32 parameters of constant sizes that matrix products and convolutions
// alone read, maybe transposed or reshaped. Layers are replaced by their bodies; products within loops, branches and
// other composites stay as they are. The error is of kind [ir.ErrUnsupported] if there is no such
// product, and [ir.ErrName] if an output has the name [Low] or [High].
func New(g *ir.Graph, o Options) (*Int8, error) {
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	for _, name := range []string{Low, High} {
		if _, taken := g.Output(name); taken {
			return nil, ir.Errorf(ir.ErrName, "output %q: calibration uses the name", name)
		}
	}
	g, err := ir.Transform(g.Name(), func(b *ir.Builder) { inlineLayers(b, g) })
	if err != nil {
		return nil, err
	}
	q := &Int8{g: g, products: map[*ir.Node]weightProduct{}, weights: map[string]int{}}
	q.find(o.Skip)
	if len(q.products) == 0 {
		return nil, ir.Errorf(ir.ErrUnsupported, "graph %q has no product of f32 with a parameter that products alone read", g.Name())
	}
	for range q.points {
		q.low, q.high = append(q.low, math.Inf(1)), append(q.high, math.Inf(-1))
	}
	return q, nil
}

// Weights returns the names of the parameters that become i8, sorted.
func (q *Int8) Weights() []string {
	var names []string
	for name := range q.weights {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Observer returns the graph with the additional outputs [Low] and [High], for [Int8.Observe].
func (q *Int8) Observer() (*ir.Graph, error) {
	if q == nil {
		return nil, ir.Attrf("the quantization is nil: it must be from New")
	}
	return ir.Transform(q.g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(q.g)
		b.CopyPorts(q.g, m)
		for _, n := range q.g.Nodes() {
			if n.Op() != ir.OpPort {
				b.CopyNode(n, m)
			}
		}
		b.CopyOutputs(q.g, m)
		var low, high []ir.Value
		for _, v := range q.points {
			x := m.Get(v)
			axes := permute.Counting(0, x.Rank())
			low, high = append(low, ops.ReduceMin(b, x, axes...)), append(high, ops.ReduceMax(b, x, axes...))
		}
		b.Output(Low, ops.Stack(b, 0, low...))
		b.Output(High, ops.Stack(b, 0, high...))
	})
}

// Observe widens the ranges by the outputs of a run of [Int8.Observer]. The error is of kind [ir.ErrShape] for vectors of
// other lengths, and [ir.ErrAttr] for numbers that are not finite.
func (q *Int8) Observe(low, high []float32) error {
	if q == nil {
		return ir.Attrf("the quantization is nil: it must be from New")
	}
	if len(low) != len(q.points) || len(high) != len(q.points) {
		return ir.Shapef("%d least and %d largest elements of %d values", len(low), len(high), len(q.points))
	}
	for i := range q.points {
		l, h := float64(low[i]), float64(high[i])
		if l-l != 0 || h-h != 0 {
			return ir.Attrf("what %s computes is from %v to %v: it must be finite", q.points[i].Node(), l, h)
		}
		q.low[i], q.high[i] = min(q.low[i], l), max(q.high[i], h)
	}
	return nil
}

// Graph returns the graph with rounded products, and the i8 values of the parameters of [Int8.Weights], which it has
// in place of f32; they are frozen. Weights are rounded to ±127 by the largest magnitude of each output
// channel, what they are multiplied with to [-128, 127] by the observed range, which is made to include 0. weight
// returns the values of a parameter. The error is of kind [ir.ErrUnsupported] if nothing was observed, [ir.ErrShape] for weights of
// other shapes and [ir.ErrAttr] for weights that are not finite.
func (q *Int8) Graph(weight func(name string) (*ir.Array, error)) (*ir.Graph, map[string]*ir.Array, error) {
	if q == nil {
		return nil, nil, ir.Attrf("the quantization is nil: it must be from New")
	}
	if math.IsInf(q.low[0], 1) {
		return nil, nil, ir.Errorf(ir.ErrUnsupported, "no range was observed: Observe takes the outputs of Observer")
	}
	if weight == nil {
		return nil, nil, ir.Attrf("weight is nil: it must return the values of a parameter")
	}
	r := &rounder{Int8: q, read: weight, rounded: map[string]*ir.Array{}, at: map[ir.Value]ir.Value{}}
	g, err := ir.Transform(q.g.Name(), r.graph)
	if err != nil {
		return nil, nil, err
	}
	return g, r.rounded, nil
}
