package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/quantize"
	"github.com/rlx-go/rlx/native"
)

// calibrated rounds the products of a model to int8 by the rows of a file, and writes it and its errors.
func (c *conversion) calibrated(ctx context.Context, from, to string) error {
	if !c.force && exists(to) {
		return existsError(to)
	}
	m, err := c.graphs(from, irlm.BindOptions{Unpack: true, DType: ir.F32})
	if err != nil {
		return err
	}
	if len(m.module.Entries) > 1 {
		return usagef("%s has %d entries: -calibrate is for models of one", from, len(m.module.Entries))
	}
	g := m.module.Entries[0].Graph
	rows, err := readTensors(c.calibrate)
	if err != nil {
		return err
	}
	data, err := newCalibration(g, rows)
	if err != nil {
		return fmt.Errorf("%s: %w", c.calibrate, err)
	}
	q, err := quantize.New(g, quantize.Options{})
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if data.before, err = c.observe(ctx, q, m.weights, data); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	rounded, weights, err := int8Of(q, m.weights)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if data.after, err = c.outputs(ctx, rounded, weights, data.batches, nil); err != nil {
		return err
	}
	module, err := ir.NewModule(m.module.Name, ir.Entry{Name: m.module.Entries[0].Name, Graph: rounded})
	if err != nil {
		return err
	}
	if err := c.write(&model{module: module, weights: weights}, to); err != nil {
		return err
	}
	fmt.Fprintf(c.std.out, "%d weights in int8, %d as they are: %s, before %s\n", len(q.Weights()), len(weights)-len(q.Weights()), bytesText(bytesOf(weights)), bytesText(bytesOf(m.weights)))
	return data.report(c.std.out)
}

// bytesOf returns the size of tensors.
func bytesOf(tensors rlx.Inputs) (n int64) {
	for _, t := range tensors {
		n += int64(len(t.Data))
	}
	return n
}

// int8Of returns the rounded graph, and its weights.
func int8Of(q *quantize.Int8, from rlx.Inputs) (*ir.Graph, rlx.Inputs, error) {
	g, numbers, err := q.Graph(func(name string) (*ir.Array, error) {
		t, ok := from[name]
		if !ok {
			return nil, ir.Errorf(ir.ErrName, "weight %q is not among those of the model: -weights names their file", name)
		}
		return t.Array()
	})
	weights := maps.Clone(from)
	for name, a := range numbers {
		weights[name] = native.FromArray(a)
	}
	return g, weights, err
}

// calibration are the rows of a file, in batches, and what models compute of them.
type calibration struct {
	batches       []rlx.Inputs
	before, after []rlx.Outputs
	expected      rlx.Inputs // by outputs
}

// largestBatch bounds the rows of a call of a model whose batch has an open size.
const largestBatch = 32

// newCalibration splits the arrays of inputs along the first axis, by the size that the graph has there. Arrays of outputs are
// what the model is expected to compute.
func newCalibration(g *ir.Graph, rows rlx.Inputs) (*calibration, error) {
	c := &calibration{expected: rlx.Inputs{}}
	for _, p := range g.Ports() {
		x, given := rows[p.Name]
		if p.Kind != ir.InputPort {
			continue
		}
		if !given {
			return nil, ir.Errorf(ir.ErrName, "the input %q is not among the arrays %q", p.Name, slices.Sorted(maps.Keys(rows)))
		}
		parts, err := split(fitted(x, p.Value.DType()), p)
		if err != nil {
			return nil, err
		}
		if c.batches == nil {
			c.batches = make([]rlx.Inputs, len(parts))
		}
		if len(parts) != len(c.batches) {
			return nil, ir.Shapef("the input %q has rows for %d calls, others for %d", p.Name, len(parts), len(c.batches))
		}
		for i, part := range parts {
			if c.batches[i] == nil {
				c.batches[i] = rlx.Inputs{}
			}
			c.batches[i][p.Name] = part
		}
	}
	if len(c.batches) == 0 {
		return nil, ir.Errorf(ir.ErrUnsupported, "the model has no input to calibrate with")
	}
	for _, o := range g.Outputs() {
		if x, given := rows[o.Name]; given && !o.State {
			c.expected[o.Name] = x
		}
	}
	return c, nil
}

// split returns the parts of an array of many rows for an input. An array of the input's own shape is one part, and each of
// those of an array with an axis more is one.
func split(x rlx.Tensor, p ir.Port) ([]rlx.Tensor, error) {
	shape := p.Value.Shape()
	part := slices.Clone(x.Dims)
	if len(x.Dims) == len(shape)+1 {
		part = part[1:]
	} else if len(shape) > 0 && len(x.Dims) == len(shape) {
		size, fixed := shape[0].Const()
		if !fixed {
			size = min(largestBatch, max(x.Dims[0], 1))
		}
		if fixed && (size == 0 || x.Dims[0]%size != 0) {
			return nil, ir.Shapef("the array %q has %d rows, no multiple of the %d that the model takes", p.Name, x.Dims[0], size)
		}
		part[0] = size
	}
	rest := ir.Dims(part...).Size()
	bytes, _ := rest.Const()
	bytes *= x.DType.Size()
	if len(part) != len(shape) || bytes == 0 {
		return nil, ir.Shapef("the array %q is %v; it must be rows of %s", p.Name, x.Dims, shape)
	}
	var parts []rlx.Tensor
	for data := range slices.Chunk(x.Data, bytes) {
		dims := slices.Clone(part)
		if len(data) < bytes { // the last rows of an open size
			dims[0] = len(data) / (bytes / part[0])
		}
		parts = append(parts, rlx.Tensor{DType: x.DType, Dims: dims, Data: data})
	}
	return parts, nil
}

// observe runs the observer of a model, and returns the outputs of the batches.
func (c *conversion) observe(ctx context.Context, q *quantize.Int8, weights rlx.Inputs, data *calibration) ([]rlx.Outputs, error) {
	g, err := q.Observer()
	if err != nil {
		return nil, err
	}
	return c.outputs(ctx, g, weights, data.batches, func(out rlx.Outputs) error {
		low, err := out[quantize.Low].Float32s()
		if err != nil {
			return err
		}
		high, err := out[quantize.High].Float32s()
		if err != nil {
			return err
		}
		return q.Observe(low, high)
	})
}

// outputs returns what a graph computes of each batch. see is called with the outputs of each.
func (c *conversion) outputs(ctx context.Context, g *ir.Graph, weights rlx.Inputs, batches []rlx.Inputs, see func(out rlx.Outputs) error) (all []rlx.Outputs, err error) {
	m, err := ir.NewModule(g.Name(), ir.Entry{Name: "run", Graph: g})
	if err != nil {
		return nil, err
	}
	s, err := openSession(m, c.device)
	if err != nil {
		return nil, err
	}
	defer s.Close(context.WithoutCancel(ctx))
	p, err := s.Compile(ctx, m)
	if err != nil {
		return nil, err
	}
	if err := p.Load(ctx, weights); err != nil {
		return nil, err
	}
	show, clearLine := progressOn(c.std.err)
	defer clearLine()
	for i, in := range batches {
		show("batch %d of %d", i+1, len(batches))
		out, err := p.Call(ctx, "run", in)
		if err == nil && see != nil {
			err = see(out)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, out)
	}
	return all, nil
}

// report writes, for each output of floats, its root mean square, and how far rounding has moved it; and where the rows have
// what is expected, the errors before and after.
func (c *calibration) report(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "output\trms\tmoved by\trelative\tat most\terror before\tafter")
	for _, name := range slices.Sorted(maps.Keys(c.after[0])) {
		if !c.after[0][name].DType.IsFloat() {
			continue
		}
		before, err := joined(c.before, name)
		if err != nil {
			return err
		}
		after, err := joined(c.after, name)
		if err != nil {
			return err
		}
		size, moved := rms(before, nil), rms(after, before)
		was, is := "–", "–"
		if x, ok := c.expected[name]; ok {
			want, err := joined([]rlx.Outputs{{name: x}}, name)
			if err != nil {
				return err
			}
			if len(want) != len(before) {
				return ir.Shapef("the expected %q has %d numbers; the model computes %d", name, len(want), len(before))
			}
			was, is = fmt.Sprintf("%.4g", rms(before, want)), fmt.Sprintf("%.4g", rms(after, want))
		}
		fmt.Fprintf(table, "%s\t%.4g\t%.4g\t%.2f %%\t%.4g\t%s\t%s\n", name, size, moved, 100*moved/max(size, math.SmallestNonzeroFloat64), farthest(after, before), was, is)
	}
	return table.Flush()
}

// joined returns the numbers of an output of all batches.
func joined(all []rlx.Outputs, name string) (out []float64, err error) {
	for _, o := range all {
		a, err := o[name].Array()
		if err != nil {
			return nil, err
		}
		for i := range a.Len() {
			out = append(out, a.Float(i))
		}
	}
	return out, nil
}

// rms returns the root mean square of x, or of its difference from y.
func rms(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		if y != nil {
			v -= y[i]
		}
		sum += v * v
	}
	return math.Sqrt(sum / float64(max(len(x), 1)))
}

// farthest returns the largest difference.
func farthest(x, y []float64) (most float64) {
	for i, v := range x {
		most = max(most, math.Abs(v-y[i]))
	}
	return most
}
