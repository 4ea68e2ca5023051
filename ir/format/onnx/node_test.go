package onnx_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/internal/onnxcase"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cpu"
)

// run computes the case on the CPU and compares. The error describes the difference.
func run(ctx context.Context, c *onnxcase.Case, r *result) error {
	m, fixed, err := c.Import(false)
	if err != nil {
		return err
	}
	r.decided = len(m.Graph.ReadPorts()) == 0
	weights, err := onnxcase.Weights(m)
	if err != nil {
		return err
	}
	results, err := c.Run(ctx, cpu.Backend(), m.Graph, weights, fixed)
	if err != nil {
		return err
	}
	r.gradient = differentiate(c, m.Graph, fixed)
	r.long = longs(m.Graph) > 0
	if r.long && c.Fits() && len(m.Weights) == 0 {
		if r.narrow, err = narrow(c, m.Graph, fixed); err != nil {
			return err
		}
	}
	return c.Check(results, false)
}

// result is what became of a case.
type result struct {
	name     string
	err      error // of importing, running and comparing
	decided  bool  // all of the graph was computed at import
	long     bool  // the graph has i64
	narrow   bool  // it has none with Options.Narrow
	gradient error // of differentiate
}

// narrow compares the graph imported with Options.Narrow with the original, and reports whether no
// i64 remains.
func narrow(c *onnxcase.Case, g *ir.Graph, fixed map[string]*ir.Array) (bool, error) {
	m, _, err := c.Import(true)
	if err != nil {
		return false, err
	}
	if len(m.Graph.Nodes()) > 400 {
		return false, nil
	}
	want, err := ir.Eval(g, c.Inputs(g, fixed), ir.EvalOptions{})
	if err != nil {
		return false, err
	}
	got, err := ir.Eval(m.Graph, c.Inputs(m.Graph, fixed), ir.EvalOptions{})
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

// skipped is why a case is not differentiated, of several cases.
type skipped string

func (s skipped) Error() string { return string(s) }

// The reasons, in the order of the table; the cases of the last one are listed.
const (
	nothingLeft    skipped = "have nothing left to run"
	noFloatInputs  skipped = "have no f32 or f64 among their inputs"
	noFloatResults skipped = "have no f32 or f64 among their results"
	notFinite      skipped = "the function is not finite there"
)

// differentiate compares the derivatives of the imported graph by its float inputs with finite
// differences, where the evaluation in float64 has them: the inputs are moved off the kinks that
// most cases have, and infinities and NaN replaced. Where that leaves the domain of
// the function, they are moved towards 0.
func differentiate(c *onnxcase.Case, g *ir.Graph, fixed map[string]*ir.Array) error {
	isFloat := func(d ir.DType) bool { return d == ir.F32 || d == ir.F64 }
	given := c.Inputs(g, fixed)
	switch {
	case len(g.ReadPorts()) == 0:
		return nothingLeft
	case !slices.ContainsFunc(slices.Collect(maps.Values(given)), func(a *ir.Array) bool { return isFloat(a.DType) }):
		return noFloatInputs
	case !slices.ContainsFunc(g.Outputs(), func(o ir.Output) bool { return isFloat(o.Value.DType()) }):
		return noFloatResults
	}
	var err error
	for _, factor := range []float64{1, 0.9} {
		in := map[string]*ir.Array{}
		for name, value := range given {
			a := value.Clone()
			for k, x := range a.F {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					x = 0.3
				}
				a.F[k] = factor * (x + 0.00713*float64(k%7+1))
			}
			in[name] = a
		}
		err = gradcheck.Check(g, in, gradcheck.Options{Tol: 1e-4, Eps: 1e-5})
		var apart *gradcheck.Error
		switch {
		case !errors.As(err, &apart):
			return err
		case !math.IsNaN(apart.Tol):
			return errors.New(apart.Check)
		}
		err = notFinite
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
			c, err := onnxcase.Load(f)
			if err == nil {
				err = run(t.Context(), c, &result{})
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
			r.name = filepath.Base(f)
			c, err := onnxcase.Load(f)
			if err == nil {
				err = run(t.Context(), c, r)
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
	without := map[skipped]int{}
	for _, r := range results {
		if r.err != nil {
			failed = append(failed, fmt.Sprintf("| `%s` | %s |\n", r.name, onnxcase.Reason(r.err)))
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
		reason, skips := r.gradient.(skipped)
		switch {
		case r.gradient == nil:
			gradients++
		case skips && reason != notFinite:
			without[reason]++
		default:
			apart = append(apart, fmt.Sprintf("| `%s` | %s |\n", r.name, onnxcase.Reason(r.gradient)))
		}
	}
	return fmt.Sprintf(`<!-- Written by go test ./ir/format/onnx -run Nodes -update. DO NOT EDIT. -->

# The node tests of onnx %s

%d of %d pass on the CPU, %.1f %%. Of these, %d have nothing left to run: the importer has computed them, because the size
of a result depends on all of their inputs, or because they have none. Inputs that decide about shapes are fixed at
import. Numbers of 16 bits may be one place apart. There is i64 in the graphs of %d; with i32 where it is the same
(Options.Narrow) %d of them have none.

The derivatives of %d imported graphs agree with finite differences. %d %s, %d %s,
and %d %s. The %d others have steps, or a kink near their inputs, or results that are infinite or NaN:

| case | reason |
|---|---|
%s
These fail:

| case | reason |
|---|---|
%s`, onnxcase.Version, pass, len(results), 100*float64(pass)/float64(len(results)), decided, long, narrow, gradients,
		without[nothingLeft], nothingLeft, without[noFloatInputs], noFloatInputs, without[noFloatResults], noFloatResults, len(apart), strings.Join(apart, ""), strings.Join(failed, ""))
}
