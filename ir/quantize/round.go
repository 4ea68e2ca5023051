package quantize

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// The numbers of 8 bits: weights are symmetric.
const (
	lowest, highest = math.MinInt8, math.MaxInt8
	steps           = highest - lowest
)

// rounder builds the graph with rounded products.
type rounder struct {
	*Int8
	read    func(name string) (*ir.Array, error)
	rounded map[string]*ir.Array
	at      map[ir.Value]ir.Value // points of the graph, rounded
}

func (r *rounder) graph(b *ir.Builder) {
	m := ir.NewMapping(r.g)
	for _, n := range r.g.Nodes() {
		if b.Err() != nil {
			return
		}
		if n.Op() == ir.OpPort {
			m.Set(n.Result(0), r.port(b, n))
			continue
		}
		in := m.Inputs(n)
		if p, ok := r.products[n]; ok {
			b.At(n.Pos())
			b.Label(n.Label())
			in[p.other] = r.point(b, n.Input(p.other), in[p.other])
			b.Label("")
		}
		m.SetAll(n, b.Copy(n, in))
	}
	b.CopyOutputs(r.g, m)
}

// port declares a port, a weight as i8, and returns its value.
func (r *rounder) port(b *ir.Builder, n *ir.Node) ir.Value {
	a := n.Attrs().(*ir.PortAttrs)
	b.At(n.Pos())
	axis, is := r.weights[a.Name]
	if !is {
		p, _ := r.g.Port(a.Name)
		return b.CopyPort(p)
	}
	w, err := r.read(a.Name)
	if err == nil && w == nil {
		err = ir.Errorf(ir.ErrName, "weight %q has no values", a.Name)
	}
	if err == nil && !w.Type().Equal(n.Types()[0]) {
		err = ir.Shapef("weight %q is %s; it must be %s", a.Name, w.Type(), n.Types()[0])
	}
	if err != nil {
		b.Fail(err)
		return ir.Value{}
	}
	numbers, scale, err := roundWeight(a.Name, w, axis)
	if err != nil {
		b.Fail(err)
		return ir.Value{}
	}
	r.rounded[a.Name] = numbers
	v := b.ParamWith(a.Name, ir.PortOptions{Frozen: true}, ir.I8, n.Types()[0].Shape...)
	return ops.DequantizeLinear(b, v, ops.Literal(b, scale), ir.Value{}, max(axis, 0))
}

// point returns a value rounded by its range, once for all products.
func (r *rounder) point(b *ir.Builder, of, x ir.Value) ir.Value {
	if v, ok := r.at[of]; ok {
		return v
	}
	for i, v := range r.points {
		if v == of {
			scale, zero := affine(r.low[i], r.high[i])
			s, z := ops.Const(b, ir.F32, scale), ops.Const(b, ir.I8, zero)
			r.at[of] = ops.DequantizeLinear(b, ops.QuantizeLinear(b, x, s, z, 0, ir.I8), s, z, 0)
		}
	}
	return r.at[of]
}

// affine returns the scale and the zero point that map a range, made to include 0, to the numbers of 8 bits.
func affine(low, high float64) (scale, zero float64) {
	low, high = min(low, 0), max(high, 0)
	if scale = ir.F32.Round((high - low) / steps); scale == 0 {
		return 1, 0
	}
	return scale, math.RoundToEven(min(max(lowest-low/scale, lowest), highest))
}

// roundWeight returns the numbers and the scale of a weight: one scale, or a vector along an axis.
func roundWeight(name string, w *ir.Array, axis int) (numbers, scale *ir.Array, err error) {
	channels, inner := 1, w.Len()
	scale = ir.NewArray(ir.F32)
	if axis >= 0 {
		channels, inner = w.Dims[axis], 1
		for _, d := range w.Dims[axis+1:] {
			inner *= d
		}
		scale = ir.NewArray(ir.F32, channels)
	}
	of := func(i int) int { return i / max(inner, 1) % channels }
	for i, x := range w.F {
		if x-x != 0 {
			return nil, nil, ir.Attrf("weight %q: element %d is %v: it must be finite", name, i, x)
		}
		scale.F[of(i)] = max(scale.F[of(i)], math.Abs(x))
	}
	for i, x := range scale.F {
		if scale.F[i] = ir.F32.Round(x / highest); scale.F[i] == 0 {
			scale.F[i] = 1
		}
	}
	numbers = ir.NewArray(ir.I8, w.Dims...)
	for i, x := range w.F {
		numbers.I[i] = int64(math.RoundToEven(min(max(x/scale.F[of(i)], -highest), highest)))
	}
	return numbers, scale, nil
}
