// Package onnxcase reads and runs the cases of the suite of onnx's node tests and of real models, which
// ir/format/onnx/suite writes to folders: the CPU and WebGPU are held to the same ones.
package onnxcase

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
	"github.com/rlx-go/rlx/native"
)

// Version is that of the onnx package in suite/requirements.txt.
const Version = "1.23.2"

// Case is a folder that suite/cases.py has written.
type Case struct {
	Name    string
	Model   *onnx.Model
	Names   []string    // of the inputs
	In, Out []*ir.Array // nil for values that are no tensors

	rtol, atol float64
	sizes      map[string]int // of symbols, by the inputs
}

// Load reads the case of a folder.
func Load(folder string) (*Case, error) {
	c := &Case{Name: filepath.Base(folder)}
	data, err := os.ReadFile(filepath.Join(folder, "model.onnx"))
	if err != nil {
		return nil, err
	}
	if c.Model, err = onnx.Decode(data); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(folder, "tolerance"))
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Sscan(string(text), &c.rtol, &c.atol); err != nil {
		return nil, err
	}
	for i, in := range c.Model.Inputs() {
		a, err := loadTensor(folder, "input", i)
		if err != nil {
			return nil, err
		}
		c.Names, c.In = append(c.Names, in.Name), append(c.In, a)
		c.bind(in, a)
	}
	for i := range c.Model.Outputs() {
		a, err := loadTensor(folder, "output", i)
		if err != nil {
			return nil, err
		}
		c.Out = append(c.Out, a)
	}
	return c, nil
}

// bind binds the symbols of an input's shape to the sizes of its value.
func (c *Case) bind(in onnx.Info, a *ir.Array) {
	if c.sizes == nil {
		c.sizes = map[string]int{}
	}
	for axis, d := range in.Shape {
		if a != nil && axis < len(a.Dims) && len(d.Symbols()) == 1 {
			c.sizes[d.String()] = a.Dims[axis]
		}
	}
}

// Sizes returns the sizes of the model's symbols, by its inputs.
func (c *Case) Sizes() map[string]int { return c.sizes }

// loadTensor returns nil for a value that is no tensor, or one of strings.
func loadTensor(folder, prefix string, i int) (*ir.Array, error) {
	data, err := os.ReadFile(filepath.Join(folder, "0", fmt.Sprintf("%s_%d.pb", prefix, i)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, a, err := onnx.Tensor(data)
	if errors.Is(err, ir.ErrUnsupported) {
		return nil, nil
	}
	return a, err
}

// Import imports the model, with the inputs fixed that the importer needs to know, which it returns, too; see [onnx.Options] for narrow.
func (c *Case) Import(narrow bool) (*onnx.Import, map[string]*ir.Array, error) {
	fixed := map[string]*ir.Array{}
	for {
		m, err := c.Model.Import(onnx.Options{Values: fixed, Sizes: c.sizes, MaxSteps: 64, Narrow: narrow})
		var need *onnx.NeedError
		if !errors.As(err, &need) {
			return m, fixed, err
		}
		before := len(fixed)
		for _, name := range append([]string{need.Value}, need.From...) {
			if i := slices.Index(c.Names, name); i >= 0 && fixed[name] == nil && c.In[i] != nil {
				fixed[name] = c.In[i]
				break
			}
		}
		if len(fixed) == before {
			return nil, fixed, err
		}
	}
}

// Weights returns the parameters of an imported graph.
func Weights(m *onnx.Import) (map[string]native.Tensor, error) {
	all := map[string]native.Tensor{}
	for _, w := range m.Weights {
		data, err := w.Bytes()
		if err != nil {
			return nil, err
		}
		dims, _ := w.Type.Shape.Ints()
		all[w.Name] = native.Tensor{DType: w.Type.DType, Dims: dims, Data: data}
	}
	return all, nil
}

// Run computes a graph on a device, with the inputs of the case that are not fixed.
func (c *Case) Run(ctx context.Context, on native.Backend, g *ir.Graph, weights map[string]native.Tensor, fixed map[string]*ir.Array) (map[string]native.Tensor, error) {
	module, err := ir.NewModule("case", ir.Entry{Name: "main", Graph: g})
	if err != nil {
		return nil, err
	}
	p, err := on.Compile(ctx, module, native.Options{})
	if err != nil {
		return nil, err
	}
	defer p.Close(ctx)
	for name, w := range weights {
		if err := p.Set(ctx, name, w); err != nil {
			return nil, err
		}
	}
	inputs := map[string]native.Tensor{}
	for name, a := range c.Inputs(g, fixed) {
		inputs[name] = native.FromArray(a)
	}
	running, err := p.Run(ctx, "main", inputs)
	if err != nil {
		return nil, err
	}
	return running.Wait(ctx)
}

// Inputs returns the values of the inputs of a graph that are not fixed, integers in the type that it has them.
func (c *Case) Inputs(g *ir.Graph, fixed map[string]*ir.Array) map[string]*ir.Array {
	in := map[string]*ir.Array{}
	for i, name := range c.Names {
		if p, used := g.Port(name); used && fixed[name] == nil && c.In[i] != nil {
			in[name] = c.In[i]
			if d := p.Value.DType(); d != c.In[i].DType {
				in[name] = ir.Ints(d, c.In[i].I, slices.Clone(c.In[i].Dims)...)
			}
		}
	}
	return in
}

// Check compares results with the expected ones. With narrow i32 stands for i64.
func (c *Case) Check(results map[string]native.Tensor, narrow bool) error {
	for i, out := range c.Model.Outputs() {
		got, err := results[out.Name].Array()
		if err != nil {
			return err
		}
		want := c.Out[i]
		if want == nil {
			return errors.New("the expected value is no tensor")
		}
		if narrow && want.DType == ir.I64 && got.DType == ir.I32 && c.Fits() {
			want = ir.Ints(ir.I32, want.I, slices.Clone(want.Dims)...)
		}
		if err := c.compare(got, want); err != nil {
			return fmt.Errorf("output %q: %w", out.Name, err)
		}
	}
	return nil
}

var errApart = errors.New("differs by more than the tolerance")

func (c *Case) compare(got, want *ir.Array) error {
	if got.DType != want.DType || !slices.Equal(got.Dims, want.Dims) {
		return fmt.Errorf("got %s, want %s", got.Type(), want.Type())
	}
	// The CPU keeps intermediate 16-bit floats in f32 until they are stored: a difference of
	// one place.
	rtol := max(c.rtol, map[ir.DType]float64{ir.F16: 2, ir.BF16: 2}[want.DType]*want.DType.Epsilon())
	near := func(g, w float64) bool {
		return g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= c.atol+rtol*math.Abs(w)
	}
	for i := range want.Len() {
		same := false
		if want.C != nil {
			same = near(real(got.C[i]), real(want.C[i])) && near(imag(got.C[i]), imag(want.C[i]))
		} else {
			same = near(got.Float(i), want.Float(i))
		}
		if !same {
			return errApart
		}
	}
	return nil
}

// Fits reports whether all int64 inputs are i32.
func (c *Case) Fits() bool {
	return !slices.ContainsFunc(c.In, func(a *ir.Array) bool {
		return a != nil && a.DType == ir.I64 && slices.ContainsFunc(a.I, func(x int64) bool { return x != int64(int32(x)) })
	})
}

// Reason returns an error without source positions.
func Reason(err error) string {
	text := regexp.MustCompile(`\S*\.go:\d+: `).ReplaceAllString(err.Error(), "")
	text = strings.NewReplacer("|", "\\|", "\n", " ").Replace(text)
	if r := []rune(text); len(r) > 160 {
		text = string(r[:160]) + "…"
	}
	return text
}
