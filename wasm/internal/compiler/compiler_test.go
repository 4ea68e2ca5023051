package compiler

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
	. "github.com/rlx-go/rlx/wasm/internal/wiretest"
)

var update = flag.Bool("update", false, "write the golden files again")

// host builds graphs through calls.
type host struct {
	t *testing.T
	*wire.Service
	builder int
}

func begin(t *testing.T, name string) *host {
	s := New()
	return &host{t, s, Must(t, s, "builder", name).U32()}
}

// value makes a call that gives values, and returns the number of the first.
func (h *host) value(method string, args ...any) int {
	h.t.Helper()
	r := Must(h.t, h.Service, method, append([]any{h.builder}, args...)...)
	if r.U32() == 0 {
		h.t.Fatalf("%s gave no value", method)
	}
	return r.U32()
}

func (h *host) port(kind, name, dtype string, dims ...string) int {
	h.t.Helper()
	return h.value("port", kind, name, dtype, Of(dims...), "", List{}, 0)
}

func (h *host) op(op string, operands ...int) int {
	h.t.Helper()
	return h.value("op", op, Of(operands...), List{}, List{})
}

func (h *host) build(name string, output int) int {
	h.t.Helper()
	Must(h.t, h.Service, "output", h.builder, name, output)
	return Must(h.t, h.Service, "build", h.builder, List{}).U32()
}

// perceptron builds a network with one hidden layer and its loss.
func perceptron(t *testing.T) (h *host, graph int) {
	h = begin(t, "mlp")
	x, labels := h.port("input", "x", "f32", "4", "3"), h.port("input", "labels", "i32", "4")
	hidden := h.op("tanh", h.op("linear", x, h.port("param", "w1", "f32", "3", "5"), h.port("param", "b1", "f32", "5")))
	logits := h.op("linear", hidden, h.port("param", "w2", "f32", "5", "3"), h.port("param", "b2", "f32", "3"))
	return h, h.build("loss", h.value("call", "cross_entropy_mean", Of(logits, labels), List{}))
}

func TestGraphBuiltByCallsIsThatOfItsText(t *testing.T) {
	h, g := perceptron(t)
	text := Must(t, h.Service, "text", g).Text()
	again := Must(t, h.Service, "text", Must(t, h.Service, "parse", text).U32()).Text()
	if text != again || !strings.Contains(text, `output "loss"`) {
		t.Errorf("%s\nread and printed again:\n%s", text, again)
	}
	if h.Objects() != 2 {
		t.Errorf("%d objects for two graphs", h.Objects())
	}
	for handle := range 8 {
		Must(t, h.Service, "free", handle)
	}
	if h.Objects() != 0 {
		t.Errorf("%d objects when all are freed", h.Objects())
	}
}

// steps is the expectation of the TypeScript tests: the text form of a graph with
// a loss, and the losses of the first steps of training it, by the reference implementation.
type steps struct {
	Text   string    `json:"text"`
	Losses []float64 `json:"losses"`
}

// element is the formula of all numbers of the test, exact in f32.
func element(seed, i int) float64 { return float64((i*7919+seed*104729)%1024)/1024 - 0.5 }

func TestTrainingStepEqualsReference(t *testing.T) {
	h, g := perceptron(t)
	step := Must(t, h.Service, "step", g, "loss", "adam", List{}, "constant", Entries(1, "rate", 0.125), List{}, 8, List{}, List{}, "").U32()
	text := Must(t, h.Service, "text", g).Text()
	loss, err := ir.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := ir.Parse(Must(t, h.Service, "text", step).Text())
	if err != nil {
		t.Fatal(err)
	}
	got := steps{Text: text, Losses: train(t, parsed, start(loss), 12)}
	const golden = "../../../js/test/testdata/mlp_steps.json"
	if *update {
		data, _ := json.MarshalIndent(got, "", "  ")
		if err := os.WriteFile(golden, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(golden)
	var want steps
	if err == nil {
		err = json.Unmarshal(data, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != want.Text || !slices.EqualFunc(got.Losses, want.Losses, func(x, y float64) bool { return x-y < 1e-9 && y-x < 1e-9 }) {
		t.Errorf("losses %v, golden %v; text:\n%s", got.Losses, want.Losses, got.Text)
	}
	if last := got.Losses[len(got.Losses)-1]; last > got.Losses[0]/2 {
		t.Errorf("the loss only falls from %g to %g", got.Losses[0], last)
	}
}

// start returns values for the ports of a graph: elements, seeded by the place
// of the port, and labels.
func start(g *ir.Graph) map[string]*ir.Array {
	values := map[string]*ir.Array{}
	for seed, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			a.F[i] = element(seed, i)
		}
		for i := range a.I {
			a.I[i] = int64(i % 3)
		}
		values[p.Name] = a
	}
	return values
}

// train runs a step graph by the reference implementation. States that are not among the values
// begin as zeros.
func train(t *testing.T, g *ir.Graph, values map[string]*ir.Array, n int) (losses []float64) {
	for _, p := range g.Ports() {
		if values[p.Name] == nil {
			dims, _ := p.Value.Shape().Ints()
			values[p.Name] = ir.NewArray(p.Value.DType(), dims...)
		}
	}
	for range n {
		out, err := ir.Eval(g, values, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			if o.State {
				values[o.Name] = out[i]
			} else if o.Name == "loss" {
				losses = append(losses, out[i].F[0])
			}
		}
	}
	return losses
}

func TestModuleCompilesToAPlan(t *testing.T) {
	h, g := perceptron(t)
	step := Must(t, h.Service, "step", g, "loss", "sgd", List{}, "", List{}, List{}, 0, List{}, List{}, "").U32()
	limits := []any{10.0, 0.0, 0.0, 0.0, 0.0, 0, 0, "", Of(0)}
	r := Must(t, h.Service, "compile", append([]any{"mlp", Entries(2, "step", step, "eval", g), List{}}, limits...)...)
	p, err := plan.Decode(r.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Entries) != 2 || p.Requires.Limits.StorageBuffers != 10 {
		t.Errorf("%d entries, for %d storage buffers", len(p.Entries), p.Requires.Limits.StorageBuffers)
	}
	for target, features := range map[int]int{1: 0, 2: 1} { // WebAssembly, with relaxed SIMD or without
		r := Must(t, h.Service, "compile", "mlp", Entries(2, "step", step, "eval", g), List{}, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, "", Of(target))
		p, err := plan.Decode(r.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if p.Target != "wasm" || len(p.Code) == 0 || len(p.Requires.Features) != features {
			t.Errorf("target %d is %q with %d bytes of code and features %v", target, p.Target, len(p.Code), p.Requires.Features)
		}
	}
	limits[6] = 8 // threads of a subgroup
	r = Must(t, h.Service, "compile", append([]any{"mlp", Entries(2, "step", step, "eval", g), List{}}, limits...)...)
	if p, err = plan.Decode(r.Bytes()); err != nil {
		t.Fatal(err)
	}
	if p.Requires.Subgroup != [2]int{8, 8} || !slices.Equal(p.Requires.Features, []string{"subgroups", "subgroup-size-control"}) {
		t.Errorf("for subgroups of 8 the plan requires %d and %q", p.Requires.Subgroup, p.Requires.Features)
	}
	init := Must(t, h.Service, "init", Must(t, h.Service, "step", g, "loss", "adam", List{}, "", List{}, List{}, 0, List{}, List{}, "").U32()).U32()
	if text := Must(t, h.Service, "text", init).Text(); !strings.Contains(text, "optim/m/w1") {
		t.Errorf("the initial state is\n%s", text)
	}
}

func TestTransformsNameAddedPorts(t *testing.T) {
	h, g := perceptron(t)
	for _, c := range []struct {
		transform string
		names     []string
		want      string
	}{
		{"grad", nil, `output "grad/w1"`},
		{"value_and_grad", []string{"b2"}, `output "grad/b2"`},
		{"vjp", []string{"x"}, `input "cotangent/loss"`},
		{"jvp", []string{"w1"}, `output "tangent/loss"`},
		{"hvp", []string{"w2"}, `output "hvp/w2"`},
	} {
		made := Must(t, h.Service, "derive", g, c.transform, "loss", Of(c.names...), 1, 0, List{}).U32()
		if text := Must(t, h.Service, "text", made).Text(); !strings.Contains(text, c.want) {
			t.Errorf("%s has no %s:\n%s", c.transform, c.want, text)
		}
	}
	half := Must(t, h.Service, "derive", g, "mixed", "bf16", List{}, 1, 0, List{}).U32()
	if text := Must(t, h.Service, "text", half).Text(); !strings.Contains(text, "bf16[") {
		t.Errorf("nothing is bf16 in\n%s", text)
	}
	scaled := Must(t, h.Service, "step", g, "loss", "sgd", Entries(1, "loss_scale", 1024.0), "", List{}, List{}, 0, List{}, List{}, "").U32()
	if text := Must(t, h.Service, "text", scaled).Text(); !strings.Contains(text, "optim/scale") {
		t.Errorf("there is no scale in\n%s", text)
	}
	many := Must(t, h.Service, "vmap", g, "n", Entries(1, "x", 0.0), List{}).U32()
	bound := Must(t, h.Service, "bind", many, Entries(1, "n", 7)).U32()
	if text := Must(t, h.Service, "text", bound).Text(); !strings.Contains(text, "f32[7,4,3]") {
		t.Errorf("bound to 7:\n%s", text)
	}
	h.builder = Must(t, h.Service, "builder", "cube").U32()
	x := h.port("input", "x", "f32")
	cube := h.build("y", h.op("mul", x, h.op("mul", x, x)))
	third := Must(t, h.Service, "derive", cube, "nth", "y", Of("x"), 3, 0, List{}).U32()
	if text := Must(t, h.Service, "text", third).Text(); !strings.Contains(text, "output") {
		t.Errorf("third derivative:\n%s", text)
	}
}

func TestInvalidRequestsAreTypedErrors(t *testing.T) {
	h := begin(t, "bad")
	b := h.builder
	x, y, flag := h.port("input", "x", "f32", "2", "3"), h.port("input", "y", "f32", "4", "3"), h.port("input", "p", "bool")
	none := List{}
	attr := func(name string, value ...any) List { return Entries(1, append([]any{name}, value...)...) }
	for _, c := range []struct {
		name, method string
		args         []any
		kind         string
	}{
		{"shape", "op", []any{b, "add", Of(x, y), none, none}, "shape"},
		{"rank", "call", []any{b, "matmul", Of(x, flag), none}, "shape"},
		{"dtype", "op", []any{b, "exp", Of(flag), none, none}, "dtype"},
		{"unknown op", "op", []any{b, "nonsense", Of(x), none, none}, "name"},
		{"unknown function", "call", []any{b, "nonsense", none, none}, "name"},
		{"unknown method", "nonsense", nil, "name"},
		{"value of no node", "op", []any{b, "exp", Of(99), none, none}, "graph"},
		{"unknown attribute", "op", []any{b, "softmax", Of(x), attr("axes", 0, 1.0), none}, "attr"},
		{"attribute where there is none", "op", []any{b, "exp", Of(x), attr("axis", 0, 1.0), none}, "attr"},
		{"attribute of another type", "op", []any{b, "softmax", Of(x), attr("axis", 2, "one"), none}, "attr"},
		{"kept axes of what is no reduction", "op", []any{b, "softmax", Of(x), attr("keep_dims", 1, 1), none}, "attr"},
		{"kept axes by a number", "op", []any{b, "mean", Of(x), attr("keep_dims", 0, 1.0), none}, "attr"},
		{"attribute that is no integer", "op", []any{b, "softmax", Of(x), attr("axis", 0, 0.5), none}, "attr"},
		{"axis out of range", "op", []any{b, "softmax", Of(x), attr("axis", 0, 2.0), none}, "attr"},
		{"unknown dtype", "port", []any{b, "input", "z", "f33", none, "", none, 0}, "dtype"},
		{"size that is none", "port", []any{b, "input", "z", "f32", Of("("), "", none, 0}, "shape"},
		{"port of no kind", "port", []any{b, "nonsense", "z", "f32", none, "", none, 0}, "name"},
		{"name used twice", "port", []any{b, "input", "x", "f32", none, "", none, 0}, "name"},
		{"constant too short", "constant", []any{b, "f32", Of("2"), []byte{0, 0, 0, 0}}, "shape"},
		{"unknown graph", "text", []any{77}, "name"},
		{"builder as a graph", "text", []any{b}, "name"},
		{"text that is none", "parse", []any{"graph {"}, "syntax"},
	} {
		if c.method != "nonsense" && c.method != "text" && c.method != "parse" {
			// An error ends a builder: each case has its own.
			h.builder = Must(t, h.Service, "builder", "bad").U32()
			h.port("input", "x", "f32", "2", "3")
			h.port("input", "y", "f32", "4", "3")
			h.port("input", "p", "bool")
			c.args[0] = h.builder
		}
		_, err := Call(h.Service, c.method, c.args...)
		if err == nil {
			t.Errorf("%s: no error", c.name)
		} else if err.Kind != c.kind {
			t.Errorf("%s: of kind %s, want %s: %s", c.name, err.Kind, c.kind, err.Message)
		}
	}
}

func TestWrongModulesAreTypedErrors(t *testing.T) {
	h, g := perceptron(t)
	many := Must(t, h.Service, "vmap", g, "n", Entries(1, "x", 0.0), List{}).U32()
	limits := []any{0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, "", Of(0)}
	for _, c := range []struct {
		name, method string
		args         []any
		kind         string
	}{
		{"unbound symbol", "compile", append([]any{"m", Entries(1, "f", many), List{}}, limits...), "symbol"},
		{"symbol bound twice", "compile", append([]any{"m", Entries(1, "f", many), Entries(2, "n", 3, "n", 4)}, limits...), "symbol"},
		{"entries of one name", "compile", append([]any{"m", Entries(2, "f", g, "f", g), List{}}, limits...), "name"},
		{"subgroups of three", "compile", []any{"m", Entries(1, "f", g), List{}, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 3, "", Of(0)}, "attr"},
		{"unknown loss", "derive", []any{g, "grad", "nonsense", List{}, 1, 0, List{}}, "name"},
		{"no path", "derive", []any{g, "grad", "loss", Of("labels"), 1, 0, List{}}, "dtype"},
		{"products in no half precision", "derive", []any{g, "mixed", "i8", List{}, 1, 0, List{}}, "dtype"},
		{"products in no type", "derive", []any{g, "mixed", "half", List{}, 1, 0, List{}}, "dtype"},
		{"scale that is no power of two", "step", []any{g, "loss", "sgd", Entries(1, "loss_scale", 3.0), "", List{}, List{}, 0, List{}, List{}, ""}, "attr"},
		{"unknown transform", "derive", []any{g, "nonsense", "loss", List{}, 1, 0, List{}}, "name"},
		{"order by two ports", "derive", []any{g, "nth", "loss", Of("w1", "w2"), 2, 0, List{}}, "name"},
		{"unknown optimizer", "step", []any{g, "loss", "nonsense", List{}, "", List{}, List{}, 0, List{}, List{}, ""}, "name"},
		{"unknown schedule", "step", []any{g, "loss", "sgd", List{}, "nonsense", List{}, List{}, 0, List{}, List{}, ""}, "name"},
		{"frozen parameter that is none", "step", []any{g, "loss", "sgd", List{}, "", List{}, Of("w9"), 0, List{}, List{}, ""}, "name"},
		{"decay below zero", "step", []any{g, "loss", "adam", Entries(1, "weight_decay", -1.0), "", List{}, List{}, 0, List{}, List{}, ""}, "attr"},
	} {
		_, err := Call(h.Service, c.method, c.args...)
		if err == nil {
			t.Errorf("%s: no error", c.name)
		} else if err.Kind != c.kind {
			t.Errorf("%s: of kind %s, want %s: %s", c.name, err.Kind, c.kind, err.Message)
		}
	}
}

func TestErrorsOfOpsNameOpAndOperands(t *testing.T) {
	h := begin(t, "bad")
	x, y := h.port("input", "x", "f32", "2", "3"), h.port("input", "y", "f32", "4", "3")
	_, err := Call(h.Service, "op", h.builder, "add", Of(x, y), List{}, List{})
	if err == nil || err.Op != "add" || !slices.Equal(err.Operands, []string{"f32[2,3]", "f32[4,3]"}) {
		t.Errorf("%+v", err)
	}
}

// Requests may be damaged in any way: the answer is a response or an error,
// never one of the compiler itself.
func FuzzRequests(f *testing.F) {
	for _, request := range [][]byte{
		Request("builder", "g"),
		Request("port", 1, "param", "w", "f32", Of("2", "n+1"), "normal", Of(0.0, 1.0), 1),
		Request("op", 1, "softmax", Of(0), Entries(1, "axis", 0, -1.0), List{}),
		Request("op", 1, "concatenate", Of(0, 0), List{}, List{}),
		Request("call", 1, "take", Of(0, 0), Entries(1, 1.0)),
		Request("full", 1, "f32", Of("3"), 0.5),
		Request("constant", 1, "i32", Of("1"), []byte{1, 2, 3, 4}),
		Request("output", 1, "y", 0),
		Request("state", 1, "w", 0),
		Request("build", 1, List{}),
		Request("build", 1, Of("w")),
		Request("describe", 2),
		Request("derive", 2, "grad", "y", Of("w"), 1, 0, List{}),
		Request("vmap", 2, "3", Entries(1, "w", 0.0), List{}),
		Request("bind", 2, Entries(1, "n", 4)),
		Request("step", 2, "y", "adam", List{}, "cosine", Entries(1, "steps", 9.0), List{}, 2, List{}, List{}, ""),
		Request("compile", "m", Entries(1, "f", 2), List{}, 0.0, 0.0, 0.0, 0.0, 0.0, 1, 0, "", Of(0)),
	} {
		f.Add(request)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := New()
		Must(t, s, "builder", "g")
		Must(t, s, "port", 1, "param", "w", "f32", Of("2", "3"), "", List{}, 0)
		Must(t, s, "parse", "graph \"g\" {\n  %0 = param \"w\" : f32[n]\n  %1 = reduce_sum(%0) {axes=[0]} : f32[]\n  output \"y\" = %1\n}\n")
		r := wire.NewRequest(s.Call(data))
		if r.U32() == 1 && r.Text() == "internal" {
			t.Errorf("%s", r.Text())
		}
	})
}

func TestBuilderIsUsableAfterRefusedOp(t *testing.T) {
	h := begin(t, "g")
	x, y := h.port("input", "x", "f32", "2"), h.port("input", "y", "f32", "3")
	for range 2 {
		if _, err := Call(h.Service, "op", h.builder, "add", Of(x, y), List{}, List{}); err == nil || err.Kind != "shape" {
			t.Fatalf("%+v", err)
		}
	}
	if _, err := Call(h.Service, "port", h.builder, "input", "x", "f32", Of("2"), "", List{}, 0); err == nil || err.Kind != "name" {
		t.Errorf("%+v", err)
	}
	text := Must(t, h.Service, "text", h.build("z", h.op("add", x, x))).Text()
	if strings.Count(text, "add") != 1 {
		t.Error(text)
	}
}

func TestNegativeAxesAndSizesCountFromTheEnd(t *testing.T) {
	h := begin(t, "g")
	x := h.port("input", "x", "f32", "4", "6", "n")
	of := func(op string, attrs ...any) string {
		t.Helper()
		r := Must(t, h.Service, "op", h.builder, op, Of(x), Entries(len(attrs)/3, attrs...), List{})
		if r.U32() != 1 {
			t.Fatal(op)
		}
		r.U32()
		return r.Text() + strings.Join(r.Texts(), ",")
	}
	for _, c := range []struct{ got, want string }{
		{of("transpose", "perm", 3, Of("-1", "0", "-2")), "f32n,4,6"},
		{of("reshape", "shape", 3, Of("-1", "n")), "f3224,n"},
		{of("reshape", "shape", 3, Of("8", "-1")), "f328,3*n"},
		{of("slice", "start", 3, Of("-3", "1", "0"), "size", 3, Of("2", "-1", "-1"), "stride", 3, Of("1", "2", "1")), "f322,3,n"},
		{of("reduce_sum", "axes", 3, Of("-2"), "keep_dims", 1, 1), "f324,1,n"},
		{of("argmax", "axis", 0, 1.0, "keep_dims", 1, 0), "i324,n"},
		{of("mean", "keep_dims", 1, 1), "f321,1,1"},
		{of("stack", "axis", 0, -1.0), "f324,6,n,1"},
		{of("stack", "axis", 0, -4.0), "f321,4,6,n"},
	} {
		if c.got != c.want {
			t.Errorf("%s instead of %s", c.got, c.want)
		}
	}
	for _, attrs := range [][]any{
		{"reshape", Entries(1, "shape", 3, Of("-1", "-1"))},
		{"reshape", Entries(1, "shape", 3, Of("-1", "0"))},
		{"reshape", Entries(1, "shape", 3, Of("-2", "n"))},
		{"slice", Entries(3, "start", 3, Of("0", "0", "0"), "size", 3, Of("-1", "-1", "-2"), "stride", 3, Of("1", "1", "1"))},
		{"slice", Entries(3, "start", 3, Of("-5", "0", "0"), "size", 3, Of("-1", "-1", "-1"), "stride", 3, Of("1", "0", "1"))},
	} {
		if _, err := Call(h.Service, "op", h.builder, attrs[0], Of(x), attrs[1], List{}); err == nil || err.Op == "" {
			t.Errorf("%v: %+v", attrs, err)
		}
	}
}

func TestPortsInAnotherOrder(t *testing.T) {
	h := begin(t, "body")
	x, y := h.port("input", "x", "f32"), h.port("input", "y", "i32")
	Must(t, h.Service, "output", h.builder, "out", h.op("exp", x))
	Must(t, h.Service, "output", h.builder, "same", y)
	text := Must(t, h.Service, "text", Must(t, h.Service, "build", h.builder, Of("y", "x")).U32()).Text()
	if strings.Index(text, `input "y"`) > strings.Index(text, `input "x"`) || !strings.Contains(text, "exp") {
		t.Error(text)
	}
	for _, order := range []List{Of("x"), Of("x", "z"), Of("x", "x")} {
		h := begin(t, "body")
		h.port("input", "x", "f32")
		Must(t, h.Service, "output", h.builder, "y", h.op("exp", h.port("input", "y", "f32")))
		if _, err := Call(h.Service, "build", h.builder, order); err == nil || err.Kind == "internal" {
			t.Errorf("%v: %+v", order, err)
		}
	}
}
