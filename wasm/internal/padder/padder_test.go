package padder_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/wasm/internal/padder"
	"github.com/rlx-go/rlx/wasm/internal/wire"
	"github.com/rlx-go/rlx/wasm/internal/wiretest"
)

// numbers reads a list of numbers.
func numbers(r *wire.Request) []int {
	var out []int
	r.List(func() { out = append(out, r.U32()) })
	return out
}

// TestPadder pads the mean over an open axis: its divisor is the true size, an input.
func TestPadder(t *testing.T) {
	g, err := ir.Build("mean", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("n"), ir.Sym("m"))
		b.Output("mean", ops.Mean(b, x, 1))
		b.Output("y", ops.Neg(b, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	bind := func(n, m int) wiretest.List { return wiretest.Entries(2, "n", n, "m", m) }
	s := padder.New()
	a := wiretest.Must(t, s, "analyze", g.String(), wiretest.Of("n", "m")).U32()
	r := wiretest.Must(t, s, "fit", a, bind(3, 5), bind(4, 8))
	if !r.Bool() || r.U32() != 2 {
		t.Fatal("sizes that fit are refused")
	}
	for _, want := range []struct {
		name            string
		dims, box, full []int
	}{{"mean", []int{3}, []int{3}, []int{4}}, {"y", []int{3, 5}, []int{3, 5}, []int{4, 8}}} {
		name, dims, box, full := r.Text(), numbers(r), numbers(r), numbers(r)
		if name != want.name || !slices.Equal(dims, want.dims) || !slices.Equal(box, want.box) || !slices.Equal(full, want.full) {
			t.Errorf("the crop of %s is %v, %v of %v; want %+v", name, dims, box, full, want)
		}
	}
	if wiretest.Must(t, s, "fit", a, bind(3, 9), bind(4, 8)).Bool() {
		t.Error("a size larger than the bucket fits")
	}
	text := wiretest.Must(t, s, "pad", a, bind(4, 8)).Text()
	padded, err := ir.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	x, size := ir.NewArray(ir.F32, 4, 8), ir.NewArray(ir.I32)
	for i := range 3 {
		for j := range 5 {
			x.F[8*i+j] = float64(i + j)
		}
	}
	size.I[0] = int64(numbers(wiretest.Must(t, s, "measure", wiretest.Of("size:m"), bind(3, 5)))[0])
	out, err := ir.Eval(padded, map[string]*ir.Array{"x": x, "size:m": size}, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := out[0].F[:3]; !slices.Equal(got, []float64{2, 3, 4}) {
		t.Errorf("the means are %v, want 2, 3, 4", got)
	}
}

// TestPadderRefuses checks the kinds of the errors that a host branches on.
func TestPadderRefuses(t *testing.T) {
	s := padder.New()
	shuffle, err := ir.Build("shuffle", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("n"), ir.N(2))
		b.Output("y", ops.Reshape(b, ops.Transpose(b, ops.Reshape(b, x, ir.N(2), ir.Sym("n")), 1, 0), ir.Sym("n").Mul(ir.N(2))))
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method, kind, says string
		args               []any
	}{
		"elements that padding divides": {"analyze", "unsupported", "reshape", []any{shuffle.String(), wiretest.Of("n")}},
		"no graph":                      {"analyze", "syntax", "", []any{"graph", wiretest.Of("n")}},
		"no analysis":                   {"pad", "name", "handle 7", []any{7, wiretest.Entries(0)}},
		"no size":                       {"measure", "name", `"x"`, []any{wiretest.Of("x"), wiretest.Entries(0)}},
		"an unbound size":               {"measure", "symbol", "n", []any{wiretest.Of("size:n"), wiretest.Entries(0)}},
		"a short request":               {"analyze", "syntax", "short", nil},
	} {
		_, err := wiretest.Call(s, c.method, c.args...)
		if err == nil || err.Kind != c.kind || !strings.Contains(err.Message, c.says) {
			t.Errorf("%s: %+v, want kind %s and %q", name, err, c.kind, c.says)
		}
	}
}
