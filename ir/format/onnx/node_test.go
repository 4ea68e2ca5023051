package onnx_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/onnx"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cpu"
)

// testCase is a folder that suite/cases.py has written.
type testCase struct {
	name    string
	model   *onnx.Model
	in, out []*ir.Array // nil for values that are no tensors
	names   []string
	rtol    float64
	atol    float64
	sizes   map[string]int // of symbols, by the inputs
}

func loadCase(folder string) (*testCase, error) {
	c := &testCase{name: filepath.Base(folder)}
	data, err := os.ReadFile(filepath.Join(folder, "model.onnx"))
	if err != nil {
		return nil, err
	}
	if c.model, err = onnx.Decode(data); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(folder, "tolerance"))
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Sscan(string(text), &c.rtol, &c.atol); err != nil {
		return nil, err
	}
	for i, in := range c.model.Inputs() {
		a, err := loadTensor(folder, "input", i)
		if err != nil {
			return nil, err
		}
		c.names, c.in = append(c.names, in.Name), append(c.in, a)
		c.bind(in, a)
	}
	for i := range c.model.Outputs() {
		a, err := loadTensor(folder, "output", i)
		if err != nil {
			return nil, err
		}
		c.out = append(c.out, a)
	}
	return c, nil
}

// bind binds the symbols of an input's shape to the sizes of its value.
func (c *testCase) bind(in onnx.Info, a *ir.Array) {
	if c.sizes == nil {
		c.sizes = map[string]int{}
	}
	for axis, d := range in.Shape {
		if a != nil && axis < len(a.Dims) && len(d.Symbols()) == 1 {
			c.sizes[d.String()] = a.Dims[axis]
		}
	}
}

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

// importCase imports the model, with the inputs fixed that the importer needs to know.
func (c *testCase) importCase() (*onnx.Import, map[string]*ir.Array, error) {
	fixed := map[string]*ir.Array{}
	for {
		m, err := c.model.Import(onnx.Options{Values: fixed, Sizes: c.sizes, MaxSteps: 64})
		var need *onnx.NeedError
		if !errors.As(err, &need) {
			return m, fixed, err
		}
		before := len(fixed)
		for _, name := range append([]string{need.Value}, need.From...) {
			if i := slices.Index(c.names, name); i >= 0 && fixed[name] == nil && c.in[i] != nil {
				fixed[name] = c.in[i]
				break
			}
		}
		if len(fixed) == before {
			return nil, fixed, err
		}
	}
}

// run computes the case on the CPU and compares. The error describes the difference.
func (c *testCase) run(ctx context.Context, r *result) error {
	m, fixed, err := c.importCase()
	if err != nil {
		return err
	}
	r.decided = len(m.Graph.ReadPorts()) == 0
	module, err := ir.NewModule("case", ir.Entry{Name: "main", Graph: m.Graph})
	if err != nil {
		return err
	}
	p, err := cpu.Backend().Compile(ctx, module, native.Options{})
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	for _, w := range m.Weights {
		data, err := w.Bytes()
		if err != nil {
			return err
		}
		dims, _ := w.Type.Shape.Ints()
		if err := p.Set(ctx, w.Name, native.Tensor{DType: w.Type.DType, Dims: dims, Data: data}); err != nil {
			return err
		}
	}
	inputs := map[string]native.Tensor{}
	for i, name := range c.names {
		if _, used := m.Graph.Port(name); used && fixed[name] == nil && c.in[i] != nil {
			inputs[name] = native.FromArray(c.in[i])
		}
	}
	running, err := p.Run(ctx, "main", inputs)
	if err != nil {
		return err
	}
	results, err := running.Wait(ctx)
	if err != nil {
		return err
	}
	r.gradient = c.differentiate(m.Graph, fixed)
	r.long = longs(m.Graph) > 0
	if r.long && c.fits() && len(m.Weights) == 0 {
		if r.narrow, err = c.narrow(m.Graph, fixed); err != nil {
			return err
		}
	}
	for i, out := range c.model.Outputs() {
		got, err := results[out.Name].Array()
		if err != nil {
			return err
		}
		if c.out[i] == nil {
			return errors.New("the expected value is no tensor")
		}
		if err := c.compare(got, c.out[i]); err != nil {
			return fmt.Errorf("output %q: %w", out.Name, err)
		}
	}
	return nil
}

var errApart = errors.New("differs by more than the tolerance")

func (c *testCase) compare(got, want *ir.Array) error {
	if got.DType != want.DType || !slices.Equal(got.Dims, want.Dims) {
		return fmt.Errorf("got %s, want %s", got.Type(), want.Type())
	}
	for i := range want.Len() {
		if want.C != nil {
			continue
		}
		g, w := got.Float(i), want.Float(i)
		// The CPU keeps intermediate 16-bit floats in f32 until they are stored: a difference of
		// one place.
		rtol := max(c.rtol, map[ir.DType]float64{ir.F16: 2, ir.BF16: 2}[want.DType]*want.DType.Epsilon())
		if g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= c.atol+rtol*math.Abs(w) {
			continue
		}
		return errApart
	}
	return nil
}

// result is what became of a case.
type result struct {
	name     string
	err      error // of importing, running and comparing
	decided  bool  // all of the graph was computed at import
	long     bool  // the graph has i64
	narrow   bool  // it has none with Options.Narrow
	gradient error // errNoGradient where the case has none
}

// fits reports whether all int64 inputs are i32.
func (c *testCase) fits() bool {
	return !slices.ContainsFunc(c.in, func(a *ir.Array) bool {
		return a != nil && a.DType == ir.I64 && slices.ContainsFunc(a.I, func(x int64) bool { return x != int64(int32(x)) })
	})
}

// narrow compares the graph imported with Options.Narrow with the original, and reports whether no
// i64 remains.
func (c *testCase) narrow(g *ir.Graph, fixed map[string]*ir.Array) (bool, error) {
	m, err := c.model.Import(onnx.Options{Values: fixed, Sizes: c.sizes, MaxSteps: 64, Narrow: true})
	if err != nil {
		return false, err
	}
	if len(m.Graph.Nodes()) > 400 {
		return false, nil
	}
	inputs := func(g *ir.Graph) map[string]*ir.Array {
		in := map[string]*ir.Array{}
		for i, name := range c.names {
			if p, used := g.Port(name); used && fixed[name] == nil && c.in[i] != nil {
				in[name] = c.in[i]
				if d := p.Value.DType(); d != c.in[i].DType {
					in[name] = ir.Ints(d, c.in[i].I, append([]int{}, c.in[i].Dims...)...)
				}
			}
		}
		return in
	}
	want, err := ir.Eval(g, inputs(g), ir.EvalOptions{})
	if err != nil {
		return false, err
	}
	got, err := ir.Eval(m.Graph, inputs(m.Graph), ir.EvalOptions{})
	if err != nil {
		return false, err
	}
	for i, w := range want {
		for k := range w.Len() {
			if g, w := got[i].Float(k), w.Float(k); g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
				return false, fmt.Errorf("with i32 in place of i64 element %d of output %d is %v, not %v", k, i, g, w)
			}
		}
	}
	return longs(m.Graph) == 0, nil
}

var errNoGradient = errors.New("nothing to differentiate")

// gradientElements bounds the inputs of the cases that are differentiated: each takes several evaluations.
const gradientElements = 600

// differentiate compares the derivatives of the imported graph by its float inputs with finite
// differences, where the evaluation in float64 has them: the inputs are moved off the kinks that
// most cases have, and infinities and NaN replaced.
func (c *testCase) differentiate(g *ir.Graph, fixed map[string]*ir.Array) error {
	in, total := map[string]*ir.Array{}, 0
	real := false
	for i, name := range c.names {
		p, used := g.Port(name)
		if !used || fixed[name] != nil || c.in[i] == nil {
			continue
		}
		a := c.in[i].Clone()
		d := p.Value.DType()
		real = real || d == ir.F32 || d == ir.F64
		for k, x := range a.F {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				x = 0.3
			}
			a.F[k] = x + 0.00713*float64(k%7+1)
		}
		in[name] = a
		total += a.Len()
	}
	float := slices.ContainsFunc(g.Outputs(), func(o ir.Output) bool { d := o.Value.DType(); return d == ir.F32 || d == ir.F64 })
	if !real || !float || total > gradientElements || len(g.Nodes()) > 400 {
		return errNoGradient
	}
	err := gradcheck.Check(g, in, gradcheck.Options{Tol: 1e-4, Eps: 1e-5})
	var apart *gradcheck.Error
	if errors.Is(err, ir.ErrNoRule) || errors.As(err, &apart) && math.IsNaN(apart.Tol) {
		return errNoGradient // or the function is not finite there
	}
	if apart != nil {
		return errors.New(apart.Check)
	}
	return err
}

// TestModels compares models of other projects with the results of onnxruntime, which `make test-onnx`
// writes to a folder.
func TestModels(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(os.Getenv("RLX_ONNX_MODELS"), "*"))
	if err == nil && (len(folders) == 0 || os.Getenv("RLX_ONNX_MODELS") == "") {
		err = errors.New("$RLX_ONNX_MODELS names no folder of models: make test-onnx does")
	}
	backendtest.Require(t, "onnx", err)
	for _, f := range folders {
		t.Run(filepath.Base(f), func(t *testing.T) {
			c, err := loadCase(f)
			if err == nil {
				err = c.run(t.Context(), &result{})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

var update = flag.Bool("update", false, "write NODES.md")

// TestNodes runs the node tests of the onnx package, which `make test-onnx` writes to a folder. What
// becomes of them is in NODES.md.
func TestNodes(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(os.Getenv("RLX_ONNX"), os.Getenv("RLX_ONNX_CASES")+"*"))
	if err == nil && (len(folders) == 0 || os.Getenv("RLX_ONNX") == "") {
		err = errors.New("$RLX_ONNX names no folder of cases: make test-onnx does")
	}
	backendtest.Require(t, "onnx", err)
	results := make([]result, len(folders))
	var wg sync.WaitGroup
	slots := make(chan bool, runtime.GOMAXPROCS(0))
	for i, f := range folders {
		wg.Add(1)
		slots <- true
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			r := &results[i]
			r.name, r.gradient = filepath.Base(f), errNoGradient
			c, err := loadCase(f)
			if err == nil {
				err = c.run(t.Context(), r)
			}
			r.err = err
		}()
	}
	wg.Wait()
	if os.Getenv("RLX_ONNX_CASES") != "" {
		for _, r := range results {
			t.Log(r.name, r.err, r.gradient)
		}
		return
	}
	text := tableOf(results)
	if *update {
		if err := os.WriteFile("NODES.md", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("NODES.md")
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("the results differ from NODES.md: run with -update and read the difference\n%s", text)
	}
}

// tableOf writes what became of the cases.
func tableOf(results []result) string {
	pass, decided, gradients, long, narrow := 0, 0, 0, 0, 0
	var failed, apart []string
	for _, r := range results {
		if r.err != nil {
			failed = append(failed, fmt.Sprintf("| `%s` | %s |\n", r.name, reason(r.err)))
			continue
		}
		pass++
		if r.decided {
			decided++
		}
		if r.long {
			long++
		}
		if r.narrow {
			narrow++
		}
		switch {
		case r.gradient == nil:
			gradients++
		case !errors.Is(r.gradient, errNoGradient):
			apart = append(apart, fmt.Sprintf("| `%s` | %s |\n", r.name, reason(r.gradient)))
		}
	}
	return fmt.Sprintf(`<!-- Written by go test ./ir/format/onnx -run Nodes -update. DO NOT EDIT. -->

# The node tests of onnx %s

%d of %d pass on the CPU, %.1f %%. Of these, %d have nothing left to run: the importer has computed them, because the size
of a result depends on all of their inputs, or because they have none. Inputs that decide about shapes are fixed at
import. Numbers of 16 bits may be one place apart. There is i64 in the graphs of %d; with i32 where it is the same
(Options.Narrow) %d of them have none.

The derivatives of %d imported graphs agree with finite differences. %d more, of functions with steps, do not:

| case | reason |
|---|---|
%s
These fail:

| case | reason |
|---|---|
%s`, onnxVersion, pass, len(results), 100*float64(pass)/float64(len(results)), decided, long, narrow, gradients, len(apart), strings.Join(apart, ""), strings.Join(failed, ""))
}

// onnxVersion is that of suite/requirements.txt.
const onnxVersion = "1.23.2"

// reason returns an error without source positions.
func reason(err error) string {
	text := regexp.MustCompile(`\S*\.go:\d+: `).ReplaceAllString(err.Error(), "")
	text = strings.NewReplacer("|", "\\|", "\n", " ").Replace(text)
	if r := []rune(text); len(r) > 160 {
		text = string(r[:160]) + "…"
	}
	return text
}
