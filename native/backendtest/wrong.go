package backendtest

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// picker compiles a program for wrong inputs: the host checks its labels, the device the
// labels plus a shift. Its state counts runs.
func picker(t *testing.T, b native.Backend) native.Program {
	t.Helper()
	return compile(t, b, build(t, "pick", func(b *ir.Builder) {
		labels, shift := b.Input("labels", ir.I32, ir.N(4)), b.Input("shift", ir.I32)
		x := b.Input("x", ir.F32, ir.Dims(4, 3)...)
		b.SetState("runs", ops.Add(b, b.State("runs", ir.I32), ops.Const(b, ir.I32, 1)))
		first := ops.CheckIndex(b, labels, ir.N(3), "label")
		b.Label("shifted")
		second := ops.CheckIndex(b, ops.Add(b, labels, shift), ir.N(3), "shifted label")
		b.Label("")
		pick := func(at ir.Value) ir.Value { return ops.TakeAlongAxis(b, x, ops.ExpandDims(b, at, 1), 1, "fill") }
		b.Output("picked", ops.Add(b, pick(first), pick(second)))
	}))
}

// wrongInput is a run of an entry of the program of [picker] with one wrong input, and the kind of its error.
type wrongInput struct {
	name  string
	entry string
	input string
	x     native.Tensor
	kind  error
}

// wrongInputs returns every kind of them; a tensor without sizes is missing.
func wrongInputs(good map[string]native.Tensor) []wrongInput {
	return []wrongInput{
		{"unknown entry", "choose", "x", good["x"], ir.ErrName},
		{"unknown input", "pick", "y", good["x"], ir.ErrName},
		{"missing input", "pick", "x", native.Tensor{}, ir.ErrName},
		{"wrong shape", "pick", "x", native.Zeros(ir.F32, 3, 4), ir.ErrShape},
		{"wrong rank", "pick", "x", native.Zeros(ir.F32, 12), ir.ErrShape},
		{"empty batch", "pick", "x", native.Zeros(ir.F32, 0, 3), ir.ErrShape},
		{"wrong element type", "pick", "x", native.Zeros(ir.I32, 4, 3), ir.ErrDType},
		{"scalar of a wrong type", "pick", "shift", native.Float32(1), ir.ErrDType},
		{"memory too short", "pick", "x", native.Tensor{DType: ir.F32, Dims: []int{4, 3}, Data: make([]byte, 44)}, ir.ErrShape},
		{"label too large", "pick", "labels", native.Int32s([]int32{0, 1, 3, 0}), ir.ErrIndex},
		{"negative label", "pick", "labels", native.Int32s([]int32{0, -1, 2, 0}), ir.ErrIndex},
		{"index found wrong by the device", "pick", "shift", native.Int32(1), ir.ErrIndex},
	}
}

// WrongInput passes a program every kind of wrong input. Each must be an error of its kind, and
// must change neither the state nor later runs.
func WrongInput(t *testing.T, b native.Backend) {
	p := picker(t, b)
	defer closeProgram(t, p)
	good := map[string]native.Tensor{
		"labels": native.Int32s([]int32{0, 1, 2, 0}), "shift": native.Int32(0), "x": native.Zeros(ir.F32, 4, 3),
	}
	runs := int32(0)
	check := func(t *testing.T) {
		t.Helper()
		r, err := p.Run(context.Background(), "pick", good)
		wait(t, r, err)
		runs++
		got, err := p.Get(context.Background(), "runs")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := got.Int32s(); err != nil || n[0] != runs {
			t.Errorf("%d runs counted, %v, want %d", n, err, runs)
		}
	}
	for _, c := range wrongInputs(good) {
		t.Run(c.name, func(t *testing.T) {
			in := maps.Clone(good)
			if in[c.input] = c.x; c.x.Dims == nil {
				delete(in, c.input)
			}
			err := attempt(p, c.entry, in)
			var typed *native.Error
			switch {
			case !errors.Is(err, c.kind):
				t.Errorf("error %v, want %v", err, c.kind)
			case !errors.As(err, &typed) || typed.Backend != b.Name() || !errors.Is(typed.Kind, c.kind):
				t.Errorf("the error is no *native.Error of %s and kind %v: %#v", b.Name(), c.kind, err)
			}
			check(t)
		})
	}
	t.Run("the device's error names the node", func(t *testing.T) {
		in := map[string]native.Tensor{"labels": good["labels"], "x": good["x"], "shift": native.Int32(-1)}
		var typed *native.Error
		if err := attempt(p, "pick", in); !errors.As(err, &typed) || typed.Node != "shifted" {
			t.Errorf("error %v", err)
		}
		check(t)
	})
	t.Run("modules that cannot be compiled", func(t *testing.T) { wrongModules(t, b) })
	t.Run("persistent values", func(t *testing.T) { wrongState(t, p) })
	t.Run("bound indices", func(t *testing.T) { wrongBound(t, p, good) })
}

// wrongModules compiles modules that no device, or not this one, can run.
func wrongModules(t *testing.T, b native.Backend) {
	double := func(x func(b *ir.Builder) ir.Value) *ir.Graph {
		return build(t, "double", func(b *ir.Builder) {
			in := x(b)
			b.Output("y", ops.Add(b, in, in))
		})
	}
	refused := func(name string, g *ir.Graph, kind error, text string) {
		m, err := ir.NewModule("module", ir.Entry{Name: "run", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		var typed *native.Error
		_, err = b.Compile(context.Background(), m, native.Options{})
		if !errors.Is(err, kind) || !errors.As(err, &typed) || typed.Backend != b.Name() || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want %v that says %q", name, err, kind, text)
		}
	}
	refused("unbound symbol", double(func(b *ir.Builder) ir.Value { return b.Input("x", ir.F32, ir.Sym("batch")) }), ir.ErrShape, "batch")
	for _, d := range []ir.DType{ir.F16, ir.BF16, ir.F64, ir.I64, ir.U64, ir.C64, ir.C128} {
		g := double(func(b *ir.Builder) ir.Value { return b.Input("x", d, ir.N(3)) })
		if supported(b, g) != "" {
			refused(d.String(), g, ir.ErrUnsupported, `input "x"`)
		}
	}
}

// attempt runs an entry and returns the first error of Run or Wait.
func attempt(p native.Program, entry string, in map[string]native.Tensor) error {
	r, err := p.Run(context.Background(), entry, in)
	if err != nil {
		return err
	}
	_, err = r.Wait(context.Background())
	return err
}

func wrongState(t *testing.T, p native.Program) {
	for name, c := range map[string]struct {
		state string
		x     native.Tensor
		kind  error
	}{
		"unknown name":       {"walks", native.Int32(1), ir.ErrName},
		"wrong shape":        {"runs", native.Int32s([]int32{1}), ir.ErrShape},
		"wrong element type": {"runs", native.Float32(1), ir.ErrDType},
	} {
		if err := p.Set(context.Background(), c.state, c.x); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
	if _, err := p.Get(context.Background(), "walks"); !errors.Is(err, ir.ErrName) {
		t.Errorf("Get of an unknown name: %v", err)
	}
}

// wrongBound writes invalid labels to bound memory between runs.
func wrongBound(t *testing.T, p native.Program, good map[string]native.Tensor) {
	labels := []int32{0, 1, 2, 0}
	in := map[string]native.Tensor{"labels": native.Int32s(labels), "x": good["x"], "shift": good["shift"]}
	b, err := p.Bind(context.Background(), "pick", in, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	labels[2] = 9
	if err := b.Start(ctx); !errors.Is(err, ir.ErrIndex) {
		t.Errorf("Start with a wrong label: %v", err)
	}
	labels[2] = 2
	if err := errors.Join(b.Start(ctx), b.Wait(ctx)); err != nil {
		t.Errorf("after that: %v", err)
	}
}
