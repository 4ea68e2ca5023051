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
)

// host is the other side of the calls: it writes requests and reads responses.
type host struct {
	t       *testing.T
	service *wire.Service
	program uint32
}

func u32(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

func text(s string) []byte { return append(u32(len(s)), s...) }

func floats(x ...float32) []byte {
	var out []byte
	for _, v := range x {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// call returns what follows the 0 of a response, or the kind and the message of
// the error.
func (h *host) call(method string, args ...[]byte) (*wire.Request, error) {
	h.t.Helper()
	request := text(method)
	for _, a := range args {
		request = append(request, a...)
	}
	r := wire.NewRequest(h.service.Call(request))
	if r.U32() == 0 {
		return r, nil
	}
	return nil, fmt.Errorf("%s: %s", r.Text(), r.Text())
}

func (h *host) must(method string, args ...[]byte) *wire.Request {
	h.t.Helper()
	r, err := h.call(method, args...)
	if err != nil {
		h.t.Fatalf("%s: %v", method, err)
	}
	return r
}

func (h *host) get(name string) []float32 {
	h.t.Helper()
	data := h.must("get", u32(int(h.program)), text(name)).Bytes()
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// named is a list of names with bytes, as run takes them.
func named(args ...any) []byte {
	out := u32(len(args) / 2)
	for i := 0; i < len(args); i += 2 {
		out = append(out, text(args[i].(string))...)
		out = append(out, text(string(args[i+1].([]byte)))...)
	}
	return out
}

// open opens a module of one entry, whose dimension n is 2.
func open(t *testing.T, entry string, g *ir.Graph) (*host, *wire.Request) {
	t.Helper()
	h := &host{t: t, service: runner.New()}
	r := h.must("open", text("m"), u32(1), text(entry), text(g.String()), u32(1), text("n"), u32(2))
	h.program = uint32(r.U32())
	return h, r
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
	if r.Err() != nil || h.service.Objects() != 1 {
		t.Error(r.Err(), h.service.Objects())
	}
}

func TestStepsOfDescentAreThoseDoneByHand(t *testing.T) {
	h, _ := open(t, "step", lineFit(t))
	x, y, w, rate := [2][2]float64{{1, 2}, {3, -1}}, [2]float64{1, 2}, [2]float64{0.5, -0.25}, 0.125
	h.must("set", u32(int(h.program)), text("w"), text(string(floats(0.5, -0.25))))
	for range 4 {
		h.must("run", u32(int(h.program)), text("step"), named("x", floats(1, 2, 3, -1), "y", floats(1, 2), "lr", floats(0.125)))
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
	h.must("close", u32(int(h.program)))
	if n := h.service.Objects(); n != 0 {
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
	p, x, y, lr := u32(int(h.program)), floats(1, 2, 3, 4), floats(1, 2), floats(0.1)
	for name, c := range map[string]struct {
		want   string
		method string
		args   [][]byte
	}{
		"no method":          {"name", "fly", nil},
		"no program":         {"name", "run", [][]byte{u32(77)}},
		"no entry":           {"name", "run", [][]byte{p, text("eval"), named()}},
		"missing input":      {"name", "run", [][]byte{p, text("step"), named("x", x, "y", y)}},
		"unknown input":      {"name", "run", [][]byte{p, text("step"), named("x", x, "y", y, "lr", lr, "z", y)}},
		"too few elements":   {"shape", "run", [][]byte{p, text("step"), named("x", y, "y", y, "lr", lr)}},
		"scalar of no bytes": {"shape", "run", [][]byte{p, text("step"), named("x", x, "y", y, "lr", []byte{})}},
		"half a request":     {"syntax", "run", [][]byte{p, text("step"), u32(1), text("x"), u32(16), y}},
		"no parameter":       {"name", "set", [][]byte{p, text("v"), text(string(y))}},
		"wrong parameter":    {"shape", "set", [][]byte{p, text("w"), text(string(x))}},
		"no value":           {"name", "get", [][]byte{p, text("v")}},
		"not run yet":        {"name", "get", [][]byte{p, text("loss")}},
		"no graph":           {"syntax", "open", [][]byte{text("m"), u32(1), text("step"), text("graph"), u32(0)}},
		"no size":            {"symbol", "open", [][]byte{text("m"), u32(1), text("step"), text(lineFit(t).String()), u32(0)}},
	} {
		if _, err := h.call(c.method, c.args...); err == nil || !strings.HasPrefix(err.Error(), c.want+":") {
			t.Errorf("%s: error %v, not of kind %s", name, err, c.want)
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
	h.must("set", u32(int(h.program)), text("table"), text(string(floats(5, 6, 7))))
	h.must("run", u32(int(h.program)), text("pick"), named("at", append(u32(2), u32(0)...)))
	near(t, "picked", h.get("picked"), 7, 5)
	if _, err := h.call("run", u32(int(h.program)), text("pick"), named("at", append(u32(2), u32(3)...))); err == nil || !strings.HasPrefix(err.Error(), "index:") {
		t.Errorf("error %v", err)
	}
}
