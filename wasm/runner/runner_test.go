package runner_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/wasm/runner"
	"github.com/rlx-go/rlx/wasm/wire"
	. "github.com/rlx-go/rlx/wasm/wiretest"
)

// host holds a program of a service.
type host struct {
	t *testing.T
	*wire.Service
	program int
}

// open opens a module of one entry, whose dimension n is 2.
func open(t *testing.T, entry string, g *ir.Graph) (*host, *wire.Request) {
	t.Helper()
	h := &host{t: t, Service: runner.New()}
	r := Must(t, h.Service, "open", "m", Entries(1, entry, g.String()), Entries(1, "n", 2))
	h.program = r.U32()
	return h, r
}

// must makes a call on the program.
func (h *host) must(method string, args ...any) *wire.Request {
	h.t.Helper()
	return Must(h.t, h.Service, method, append([]any{h.program}, args...)...)
}

func floats(x ...float32) []byte {
	var out []byte
	for _, v := range x {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func (h *host) get(name string) []float32 {
	h.t.Helper()
	data := h.must("get", name).Bytes()
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// lineFit is the mean square error of x·w against y over n rows of two.
func lineFit(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("line", func(b *ir.Builder) {
		n := ir.Sym("n")
		x, y, w := b.Input("x", ir.F32, n, ir.N(2)), b.Input("y", ir.F32, n), b.Param("w", ir.F32, ir.N(2))
		d := ops.Sub(b, ops.MatMul(b, x, w), y)
		b.Output("loss", ops.Mean(b, ops.Mul(b, d, d), 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	step, err := optim.Step(g, "loss", optim.SGD{}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// slots reads a list of slots as "role name type/bytes", with the range where
// one is checked.
func slots(r *wire.Request) string {
	var out []string
	r.List(func() {
		name, role, dtype, dims := r.Text(), r.Text(), r.Text(), r.Texts()
		s := fmt.Sprintf("%s %s %s%v/%d", role, name, dtype, dims, r.U32())
		if checked, lo, hi := r.Bool(), r.F64(), r.F64(); checked {
			s += fmt.Sprintf(" in [%v, %v)", lo, hi)
		}
		out = append(out, s)
	})
	return strings.Join(out, "; ")
}

func TestOpenTellsStatesInputsAndOutputs(t *testing.T) {
	h, r := open(t, "step", lineFit(t))
	persistent := slots(r)
	if n, name := r.U32(), r.Text(); n != 1 || name != "step" {
		t.Errorf("%d entries, first %q", n, name)
	}
	entry := slots(r)
	if want := "state w f32[2]/8"; !strings.Contains(persistent, want) {
		t.Errorf("parameters and states %q lack %q", persistent, want)
	}
	for _, want := range []string{"input x f32[2 2]/16", "input y f32[2]/8", "input lr f32[]/4", "output loss f32[]/4"} {
		if !strings.Contains(entry, want) {
			t.Errorf("inputs and outputs %q lack %q", entry, want)
		}
	}
	if r.Err() != nil || h.Objects() != 1 {
		t.Error(r.Err(), h.Objects())
	}
}

func TestStepsOfDescentAreThoseDoneByHand(t *testing.T) {
	h, _ := open(t, "step", lineFit(t))
	x, y, w, rate := [2][2]float64{{1, 2}, {3, -1}}, [2]float64{1, 2}, [2]float64{0.5, -0.25}, 0.125
	h.must("set", "w", floats(0.5, -0.25))
	for range 4 {
		h.must("run", "step", Entries(3, "x", floats(1, 2, 3, -1), "y", floats(1, 2), "lr", floats(0.125)))
		loss, grad := 0.0, [2]float64{}
		for i := range x {
			d := x[i][0]*w[0] + x[i][1]*w[1] - y[i]
			loss += d * d / 2
			grad[0] += d * x[i][0]
			grad[1] += d * x[i][1]
		}
		w[0], w[1] = w[0]-rate*grad[0], w[1]-rate*grad[1]
		near(t, "loss", h.get("loss"), loss)
		near(t, "w", h.get("w"), w[0], w[1])
	}
	h.must("close")
	if n := h.Objects(); n != 0 {
		t.Errorf("%d objects after the end", n)
	}
}

func near(t *testing.T, name string, got []float32, want ...float64) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || math.Abs(float64(got[i])-want[i]) > 1e-6*(1+math.Abs(want[i])) {
			t.Fatalf("%s is %v, by hand %v", name, got, want)
		}
	}
}

func TestWrongCallsAreErrorsOfTheirKind(t *testing.T) {
	h, _ := open(t, "step", lineFit(t))
	p, x, y, lr := h.program, floats(1, 2, 3, 4), floats(1, 2), floats(0.1)
	for name, c := range map[string]struct {
		want   string
		method string
		args   []any
	}{
		"no method":          {"name", "fly", nil},
		"no program":         {"name", "run", []any{77}},
		"no entry":           {"name", "run", []any{p, "eval", List{}}},
		"missing input":      {"name", "run", []any{p, "step", Entries(2, "x", x, "y", y)}},
		"unknown input":      {"name", "run", []any{p, "step", Entries(4, "x", x, "y", y, "lr", lr, "z", y)}},
		"too few elements":   {"shape", "run", []any{p, "step", Entries(3, "x", y, "y", y, "lr", lr)}},
		"scalar of no bytes": {"shape", "run", []any{p, "step", Entries(3, "x", x, "y", y, "lr", []byte{})}},
		"half a request":     {"syntax", "run", []any{p, "step", 1, "x", 16}},
		"no parameter":       {"name", "set", []any{p, "v", y}},
		"wrong parameter":    {"shape", "set", []any{p, "w", x}},
		"no value":           {"name", "get", []any{p, "v"}},
		"not run yet":        {"name", "get", []any{p, "loss"}},
		"no graph":           {"syntax", "open", []any{"m", Entries(1, "step", "graph"), List{}}},
		"no size":            {"symbol", "open", []any{"m", Entries(1, "step", lineFit(t).String()), List{}}},
	} {
		if _, err := Call(h.Service, c.method, c.args...); err == nil || err.Kind != c.want {
			t.Errorf("%s: error %+v, not of kind %s", name, err, c.want)
		}
	}
}

func TestIndicesOutsideTheRangeAreRefused(t *testing.T) {
	g, err := ir.Build("pick", func(b *ir.Builder) {
		table, at := b.Param("table", ir.F32, ir.N(3)), b.Input("at", ir.I32, ir.N(2))
		b.Output("picked", ops.Take(b, table, ops.CheckIndex(b, at, ir.N(3), "at"), 0, ops.OutsideFill))
	})
	if err != nil {
		t.Fatal(err)
	}
	h, r := open(t, "pick", g)
	if slots(r); r.U32() != 1 || r.Text() != "pick" {
		t.Fatal("no entry pick")
	}
	if s := slots(r); !strings.Contains(s, "input at i32[2]/8 in [0, 3)") {
		t.Errorf("inputs and outputs %q", s)
	}
	h.must("set", "table", floats(5, 6, 7))
	indices := func(i, j byte) List { return Entries(1, "at", []byte{i, 0, 0, 0, j, 0, 0, 0}) }
	h.must("run", "pick", indices(2, 0))
	near(t, "picked", h.get("picked"), 7, 5)
	if _, err := Call(h.Service, "run", h.program, "pick", indices(2, 3)); err == nil || err.Kind != "index" {
		t.Errorf("error %+v", err)
	}
}
