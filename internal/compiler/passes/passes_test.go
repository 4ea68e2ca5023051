package passes

import (
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

var update = flag.Bool("update", false, "write the graphs that come out into testdata")

// section is a part of an archive of texts: a line "-- name --" and what
// follows it.
type section struct{ name, text string }

func readArchive(t *testing.T, path string) []section {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []section
	for line := range strings.Lines(string(data)) {
		name, ok := strings.CutPrefix(line, "-- ")
		if name, end := strings.CutSuffix(name, " --\n"); ok && end {
			out = append(out, section{name: name})
			continue
		}
		if len(out) == 0 {
			t.Fatalf("%s: text before the first section", path)
		}
		out[len(out)-1].text += line
	}
	return out
}

// An archive holds cases for the pass it is named after: the graph before, in
// a section with the name of the case, and the graph after, in a section
// "after". Dead nodes that passes leave to dce are removed.
func TestPassesMatchTestdata(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		sections := readArchive(t, path)
		for i := 0; i+1 < len(sections); i += 2 {
			before, after := &sections[i], &sections[i+1]
			t.Run(name+"/"+before.name, func(t *testing.T) {
				got := checkCase(t, name, before.text)
				if after.name != "after" {
					t.Fatalf("section %q where the graph after is expected", after.name)
				}
				if *update {
					after.text = got
				} else if got != after.text {
					t.Errorf("got\n%swant\n%s", got, after.text)
				}
			})
		}
		if *update {
			writeArchive(t, path, sections)
		}
	}
}

func writeArchive(t *testing.T, path string, sections []section) {
	t.Helper()
	var sb strings.Builder
	for _, s := range sections {
		sb.WriteString("-- " + s.name + " --\n" + s.text)
	}
	if err := os.WriteFile(path, []byte(sb.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkCase runs a pass until it finds nothing more and makes sure that the
// graph still computes the same, to the last bit.
func checkCase(t *testing.T, name, text string) string {
	t.Helper()
	g, err := ir.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out := apply(t, name, g)
	sameResults(t, g, out)
	return out.String()
}

func apply(t *testing.T, name string, g *ir.Graph) *ir.Graph {
	t.Helper()
	r := newRun(Options{Verify: ir.Verify, Claim: func(n *ir.Node) bool { return n.Label() == "claimed" }})
	for range maxRounds {
		before := g
		for _, p := range table() {
			if p.name != name && p.name != "dce" {
				continue
			}
			var err error
			if g, err = r.apply(p, g); err != nil {
				t.Fatal(err)
			}
		}
		if g == before {
			return g
		}
	}
	t.Error("the pass does not come to an end")
	return g
}

// special are the floats that identities go wrong for.
var special = []float64{1, math.Copysign(0, -1), 0, math.NaN(), math.Inf(1), -2.5, math.Inf(-1), 3, 1e-40, -1}

// feed returns inputs for g: special floats, and integers around 0.
func feed(g *ir.Graph, shift int) map[string]*ir.Array {
	inputs := map[string]*ir.Array{}
	for k, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			a.F[i] = special[(i*(k+1)+shift)%len(special)]
		}
		for i := range a.I {
			a.I[i] = int64((i*(k+1)+shift)%7 - 3)
		}
		for i := range a.C {
			a.C[i] = complex(special[(i*(k+1)+shift)%len(special)], special[(i+k+2*shift)%len(special)])
		}
		a.Round()
		inputs[p.Name] = a
	}
	return inputs
}

func sameResults(t *testing.T, g, h *ir.Graph) {
	t.Helper()
	if s := g.Symbols(); len(s) > 0 {
		values := map[string]int{}
		for i, name := range s {
			values[name] = i + 3
		}
		g, h = bind(t, g, values), bind(t, h, values)
	}
	for shift := range special {
		want, err := ir.Eval(g, feed(g, shift), ir.EvalOptions{})
		got, err2 := ir.Eval(h, feed(g, shift), ir.EvalOptions{})
		if err != nil || err2 != nil {
			if (err != nil) != (err2 != nil) {
				t.Errorf("before: %v, after: %v", err, err2)
			}
			return
		}
		for i := range want {
			compare(t, g.Outputs()[i].Name, got[i], want[i])
		}
	}
}

func bind(t *testing.T, g *ir.Graph, values map[string]int) *ir.Graph {
	t.Helper()
	bound, err := g.Bind(values)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

func compare(t *testing.T, name string, got, want *ir.Array) {
	t.Helper()
	same := func(g, w float64) bool {
		return math.Float64bits(g) == math.Float64bits(w) || math.IsNaN(g) && math.IsNaN(w)
	}
	for i := range want.F {
		if g, w := got.F[i], want.F[i]; !same(g, w) {
			t.Errorf("%s[%d] is %v after, %v before", name, i, g, w)
		}
	}
	for i := range want.C {
		if g, w := got.C[i], want.C[i]; !same(real(g), real(w)) || !same(imag(g), imag(w)) {
			t.Errorf("%s[%d] is %v after, %v before", name, i, g, w)
		}
	}
	for i := range want.I {
		if got.I[i] != want.I[i] {
			t.Errorf("%s[%d] is %v after, %v before", name, i, got.I[i], want.I[i])
		}
	}
}

func TestEveryPassOfTheTableHasTestdata(t *testing.T) {
	for _, p := range table() {
		if _, err := os.Stat("testdata/" + p.name + ".txtar"); err != nil {
			t.Error(err)
		}
	}
}

func TestOrderOfPassesFollowsItsReasons(t *testing.T) {
	if err := checkOrder(table()); err != nil {
		t.Error(err)
	}
	for _, p := range table() {
		for _, o := range p.after {
			if o.reason == "" {
				t.Errorf("%s after %s: no reason given", p.name, o.pass)
			}
		}
	}
	turned := []pass{{name: "b", after: []order{{"a", "b needs a"}}}, {name: "a"}}
	if err := checkOrder(turned); err == nil || !strings.Contains(err.Error(), "b needs a") {
		t.Errorf("a wrong order gives %v", err)
	}
}

func scalarGraph(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F32)
		b.Label("here")
		b.Output("y", ops.Neg(b, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPanicInAPassIsAnErrorThatNamesPassAndNode(t *testing.T) {
	r := newRun(Options{})
	bad := pass{name: "bad", run: func(r *run, g *ir.Graph) (*ir.Graph, error) {
		return r.rewrite(g, func(site) []ir.Value { panic("oops") })
	}}
	_, err := r.apply(bad, scalarGraph(t))
	var e *Error
	if !errors.As(err, &e) || e.Pass != "bad" || e.Node == nil || e.Node.Op() != ops.OpNeg {
		t.Fatalf("got %v", err)
	}
	if s := err.Error(); !strings.HasPrefix(s, "pass bad: ") || !strings.Contains(s, `neg "here"(f32[]): panic: oops`) {
		t.Errorf("got %s", s)
	}
}

func TestRuleThatChangesATypeIsAnError(t *testing.T) {
	r := newRun(Options{})
	bad := pass{name: "bad", run: func(r *run, g *ir.Graph) (*ir.Graph, error) {
		return r.rewrite(g, func(s site) []ir.Value { return []ir.Value{ops.Convert(s.b, s.in[0], ir.F16)} })
	}}
	_, err := r.apply(bad, scalarGraph(t))
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, ir.ErrGraph) || e.Node == nil {
		t.Errorf("got %v", err)
	}
}

func TestVerifierRunsAfterEachPass(t *testing.T) {
	r := newRun(Options{Verify: ir.Verify})
	bad := pass{name: "bad", run: func(r *run, g *ir.Graph) (*ir.Graph, error) {
		return ir.Build("g", func(b *ir.Builder) {
			x := b.Input("x", ir.F32)
			y := ops.ConstLike(b, x, 1)
			y.Node().Types()[0].DType = ir.F16 // what only a bug can do
			b.Output("y", y)
		})
	}}
	if _, err := r.apply(bad, scalarGraph(t)); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("got %v", err)
	}
}

func TestTraceShowsThePassesThatChangeSomething(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F32)
		y := ops.Relu(b, ops.Neg(b, ops.Neg(b, x)))
		b.Output("y", ops.Add(b, ops.Sin(b, y), ops.Sin(b, y)))
	})
	if err != nil {
		t.Fatal(err)
	}
	var trace []string
	last := g
	out, err := Run(g, Options{Verify: ir.Verify, Trace: func(pass string, before, after *ir.Graph) {
		trace = append(trace, pass)
		if before != last || before == after {
			t.Errorf("%s: the graph before is not that of the pass before", pass)
		}
		last = after
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(trace, " "); got != "inline simplify cse dce" {
		t.Errorf("traced %s", got)
	}
	if out != last {
		t.Error("the last graph traced is not the result")
	}
	again, err := Run(out, Options{Verify: ir.Verify})
	if err != nil || again != out {
		t.Errorf("a second run changes the graph: %v", err)
	}
}

func TestDeepCompositesEnd(t *testing.T) {
	const endless ir.Op = "test.endless"
	err := ir.Register(&ir.Def{
		Op: endless, Operands: []string{"x"},
		Infer: func(n *ir.Node) ([]ir.Type, error) { return n.InTypes(), nil },
		Body:  func(b *ir.Builder, _ *ir.Node, in []ir.Value) []ir.Value { return b.Add(endless, nil, in[0]) },
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := ir.Build("g", func(b *ir.Builder) { b.Output("y", b.Add1(endless, nil, b.Input("x", ir.F32))) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(g, Options{}); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("got %v", err)
	}
}

// TestSumsOfManyPathsAreHoisted has a sum of what is computed from its input by 2^60 paths.
func TestSumsOfManyPathsAreHoisted(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(5, 3)...)
		total, _ := ops.Scan(b, ops.Loop{
			Carries: []ir.Value{b.Input("c", ir.F32)}, Xs: []ir.Value{x},
			Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
				v := xs[0]
				for range 60 {
					v = ops.Mul(b, v, ops.Sin(b, v))
				}
				return []ir.Value{ops.Add(b, carries[0], ops.ReduceSum(b, v, 0))}, nil
			},
		})
		b.Output("total", total[0])
	})
	checkHoisted(t, g, err)
}

// checkHoisted fails if a scan is left in a graph that was built, or not, with an error.
func checkHoisted(t *testing.T, g *ir.Graph, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if g, err = Run(g, Options{}); err != nil || strings.Contains(g.String(), "scan(") {
		t.Errorf("%v: the sum is not hoisted:\n%s", err, g)
	}
}

// TestSumsOfManyTermsAreHoisted has a sum that adds up one product by 2^60 paths.
func TestSumsOfManyTermsAreHoisted(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) {
		total, _ := ops.Scan(b, ops.Loop{
			Carries: []ir.Value{b.Input("c", ir.F32, ir.Dims(3, 3)...)},
			Xs:      []ir.Value{b.Input("x", ir.F32, ir.Dims(5, 3, 2)...), b.Input("y", ir.F32, ir.Dims(5, 2, 3)...)},
			Body: func(b *ir.Builder, _, carries, xs []ir.Value) (next, ys []ir.Value) {
				v := ops.MatMul(b, xs[0], xs[1])
				for range 60 {
					v = ops.Add(b, v, ops.Transpose(b, v, 1, 0))
				}
				return []ir.Value{ops.Add(b, carries[0], v)}, nil
			},
		})
		b.Output("total", total[0])
	})
	checkHoisted(t, g, err)
}

// TestHoistingSumsAgainFindsOtherNames has a body whose result has the name that the next stacked value gets, as one has from
// which a sum was hoisted before.
func TestHoistingSumsAgainFindsOtherNames(t *testing.T) {
	g, err := ir.Parse(`graph "g" {
  %0 = input "total" : f32[2,2]
  %1 = input "c" : f32[2]
  %2, %3, %4 = scan(%0, %1) {consts=0 carries=2 length=[4] reverse=false} : (f32[2,2], f32[2], f32[4,2])
    graph "step" {
      %0 = input "total" : f32[2,2]
      %1 = input "c" : f32[2]
      %2 = sin(%1) : f32[2]
      %3 = cos(%2) : f32[2]
      %4 = dot_general(%3, %3) {lhs_contract=[] rhs_contract=[] lhs_batch=[] rhs_batch=[]} : f32[2,2]
      %5 = add(%0, %4) : f32[2,2]
      output "total" = %5
      output "c" = %3
      output "stacked0" = %2
    }
  output "total" = %2
  output "c" = %3
  output "each" = %4
}
`)
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := Run(g, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(lowered.String(), `"stacked+0"`) {
		t.Errorf("the sum is not hoisted:\n%s", lowered)
	}
}

// TestHoistingAgainFindsOtherNames has a port with the name that the next one gets.
func TestHoistingAgainFindsOtherNames(t *testing.T) {
	g, err := ir.Parse(`graph "g" {
  %0 = input "w" : f32[3]
  %1 = input "c" : f32[]
  %2 = scan(%0, %1) {consts=1 carries=1 length=[4] reverse=false} : f32[]
    graph "step" {
      %0 = input "invariant2" : f32[3]
      %1 = input "c" : f32[]
      %2 = reduce_sum(%0) {axes=[0]} : f32[]
      %3 = tanh(%1) : f32[]
      %4 = mul(%2, %3) : f32[]
      output "c" = %4
    }
  output "c" = %2
}
`)
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := Run(g, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(lowered.String(), `"invariant+2"`) {
		t.Errorf("the sum is not hoisted:\n%s", lowered)
	}
}
