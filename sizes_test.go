package rlx_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// encoder is a transformer over batch sequences of seq tokens, with the mean over the sequence.
func encoder(t testing.TB) *ir.Graph {
	t.Helper()
	g, err := ir.Build("encoder", func(b *ir.Builder) {
		tokens := b.Input("tokens", ir.I32, ir.Sym("batch"), ir.Sym("seq"))
		x := nn.Embedding(b, tokens, 50, 16)
		x = nn.TransformerBlock(b, x, 2)
		b.Output("states", x)
		b.Output("mean", ops.Mean(b, x, 1))
		b.Output("best", ops.ArgMax(b, ops.ReduceMax(b, x, 2), 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// copying is the CPU as a device whose programs cannot share parameters.
type copying struct{ native.Backend }

func (copying) Name() string { return "copying" }

// compilations counts the modules that copying has compiled.
var compilations atomic.Int32

func (c copying) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	compilations.Add(1)
	return c.Backend.Compile(ctx, m, o)
}

func (c copying) Info() native.Info {
	return native.Info{Software: true, Memory: c.Backend.Info().Memory}
}

// registered is the error of the registration of copying.
var registered = func() error {
	cpu, err := native.Lookup("cpu")
	if err != nil {
		return err
	}
	return native.Register(copying{cpu})
}()

func compileEncoder(t testing.TB, g *ir.Graph, o rlx.CompileOptions) *rlx.Program {
	t.Helper()
	return compileOn(t, "cpu", g, o)
}

func compileOn(t testing.TB, device string, g *ir.Graph, o rlx.CompileOptions) *rlx.Program {
	t.Helper()
	if registered != nil {
		t.Fatal(registered)
	}
	session, err := rlx.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("encoder", ir.Entry{Name: "encode", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := session.CompileWith(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	for _, s := range p.Persistent() {
		x := rlx.Zeros(s.DType, s.Dims...)
		r := rand.New(rand.NewPCG(1, uint64(len(s.Name)*100+len(s.Dims))))
		values, _ := x.Float32s()
		for i := range values {
			values[i] = float32(r.NormFloat64()) / 4
		}
		if err := p.Set(t.Context(), s.Name, x); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func tokens(batch, seq int) rlx.Inputs {
	x := make([]int32, batch*seq)
	for i := range x {
		x[i] = int32(i*7%49 + 1)
	}
	return rlx.Inputs{"tokens": rlx.Int32s(x, batch, seq)}
}

// TestOpenSizes compares calls of many sizes with programs compiled for each of them.
func TestOpenSizes(t *testing.T) {
	for _, device := range []string{"cpu", "copying"} {
		t.Run(device, func(t *testing.T) { openSizes(t, device) })
	}
}

func openSizes(t *testing.T, device string) {
	t.Helper()
	g := encoder(t)
	open := compileOn(t, device, g, rlx.CompileOptions{Buckets: 4})
	for _, size := range [][2]int{{1, 1}, {3, 5}, {4, 8}, {2, 7}, {5, 3}, {3, 5}, {1, 13}} {
		bound, err := g.Bind(map[string]int{"batch": size[0], "seq": size[1]})
		if err != nil {
			t.Fatal(err)
		}
		in := tokens(size[0], size[1])
		want, err := compileEncoder(t, bound, rlx.CompileOptions{}).Call(t.Context(), "encode", in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := open.Call(t.Context(), "encode", in)
		if err != nil {
			t.Fatal(err)
		}
		for name, w := range want {
			sameTensor(t, name, got[name], w)
		}
	}
}

func sameTensor(t *testing.T, name string, got, want rlx.Tensor) {
	t.Helper()
	if got.String() != want.String() {
		t.Fatalf("%s is %s, want %s", name, got, want)
	}
	if want.DType != ir.F32 {
		if string(got.Data) != string(want.Data) {
			t.Errorf("%s is %v, want %v", name, got.Data, want.Data)
		}
		return
	}
	x, _ := got.Float32s()
	y, _ := want.Float32s()
	for i := range y {
		if math.Abs(float64(x[i]-y[i])) > 2e-5*(1+math.Abs(float64(y[i]))) || x[i] != x[i] {
			t.Fatalf("%s: element %d is %v, want %v", name, i, x[i], y[i])
		}
	}
}

// TestOpenSizesOfManyCallers calls one program of two buckets from goroutines, which compile and evict
// each other's buckets.
func TestOpenSizesOfManyCallers(t *testing.T) {
	open := compileEncoder(t, encoder(t), rlx.CompileOptions{Buckets: 2})
	want := map[int]rlx.Outputs{}
	for seq := 1; seq < 9; seq++ {
		out, err := open.Call(t.Context(), "encode", tokens(2, seq))
		if err != nil {
			t.Fatal(err)
		}
		want[seq] = out
	}
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for i := range 12 {
				seq := (i*5+k)%8 + 1
				got, err := open.Call(t.Context(), "encode", tokens(2, seq))
				if err != nil {
					t.Error(err)
					return
				}
				sameTensor(t, "states", got["states"], want[seq]["states"])
			}
		})
	}
	all.Wait()
}

// TestOpenSizesRefuse names what does not fit.
func TestOpenSizesRefuse(t *testing.T) {
	pair, err := ir.Build("pair", func(b *ir.Builder) {
		x, y := b.Input("x", ir.F32, ir.Sym("n")), b.Input("y", ir.F32, ir.Sym("n"))
		b.Output("z", ops.Add(b, x, y))
	})
	if err != nil {
		t.Fatal(err)
	}
	p := compileEncoder(t, pair, rlx.CompileOptions{Sizes: map[string]rlx.Size{"n": {Max: 8}}})
	for name, c := range map[string]struct {
		x, y int
		kind error
		says []string
	}{
		"two sizes": {3, 4, ir.ErrSymbol, []string{`"x"`, `"y"`, "size n", "3", "4"}},
		"too large": {9, 9, ir.ErrShape, []string{"size n is 9", "8"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Call(t.Context(), "encode", rlx.Inputs{"x": rlx.Zeros(ir.F32, c.x), "y": rlx.Zeros(ir.F32, c.y)})
			if !errors.Is(err, c.kind) {
				t.Fatalf("the error is %v, want kind %v", err, c.kind)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v does not say %s", err, s)
				}
			}
		})
	}
	if _, err := p.Call(t.Context(), "encode", rlx.Inputs{"x": rlx.Zeros(ir.F32, 0), "y": rlx.Zeros(ir.F32, 0)}); err != nil {
		t.Errorf("no elements: %v", err)
	}
}

// TestOpenBatchTrains trains with batches of several sizes, padded and compiled for each of them.
func TestOpenBatchTrains(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("batch"), ir.N(3))
		h := nn.LayerNorm(b, ops.Gelu(b, nn.Linear(b, x, 8)))
		b.Output("loss", ops.MSE(b, nn.Linear(b, h, 1), b.Input("y", ir.F32, ir.Sym("batch"), ir.N(1)), ops.LossMean))
	})
	if err != nil {
		t.Fatal(err)
	}
	losses := map[string][]float32{}
	for _, device := range []string{"cpu", "copying", "exact"} {
		exact := device == "exact"
		if exact {
			device = "cpu"
		}
		session, err := rlx.Open(device)
		if err != nil {
			t.Fatal(err)
		}
		trainer, err := session.Train(t.Context(), loss, rlx.Training{Rate: 0.02, Sizes: map[string]rlx.Size{"batch": {Exact: exact}}})
		if err != nil {
			t.Fatal(err)
		}
		for step := range 24 {
			n := []int{8, 8, 3, 5}[step%4]
			x, y := make([]float32, 3*n), make([]float32, n)
			for i := range x {
				x[i] = float32(math.Sin(float64(i*step + i)))
				y[i/3] += x[i]
			}
			if err := trainer.Step(t.Context(), rlx.Inputs{"x": rlx.Float32s(x, n, 3), "y": rlx.Float32s(y, n, 1)}); err != nil {
				t.Fatal(err)
			}
		}
		if exact {
			device = "exact"
		}
		if losses[device], err = trainer.Losses(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := trainer.Program().Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range losses["exact"] {
		for _, device := range []string{"cpu", "copying"} {
			if got := losses[device][i]; math.Abs(float64(got-want)) > 1e-4*(1+math.Abs(float64(want))) {
				t.Errorf("step %d on %s: the loss is %v, want %v", i, device, got, want)
			}
		}
	}
	if first, last := losses["exact"][0], losses["exact"][20]; !(last < first) {
		t.Errorf("the loss goes from %v to %v", first, last)
	}
}

// TestFirstBatchWithoutElements begins a training with no elements of an input, and goes on with some.
func TestFirstBatchWithoutElements(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Sym("n"), ir.N(3)), b.Param("w", ir.F32, ir.N(3))
		b.Output("loss", ops.Add(b, ops.ReduceSum(b, x), ops.ReduceSum(b, ops.Mul(b, w, w))))
	})
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := session(t).Train(t.Context(), loss, rlx.Training{Init: map[string]rlx.Initializer{"w": rlx.Constant(0)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 2, 0} {
		if err := trainer.Step(t.Context(), rlx.Inputs{"x": rlx.Float32s([]float32{1, 2, 3, 4, 5, 6}[:3*n], n, 3)}); err != nil {
			t.Fatal(err)
		}
	}
	if losses, err := trainer.Losses(t.Context()); err != nil || !slices.Equal(losses, []float32{0, 21, 0}) {
		t.Errorf("losses of 0, 2 and 0 rows are %v, %v", losses, err)
	}
}

// TestBucketsAreCompiledOnce counts compilations: one for parameters, one for each bucket whoever comes
// first, and one more for a bucket that was dropped.
func TestBucketsAreCompiledOnce(t *testing.T) {
	p := compileOn(t, "copying", encoder(t), rlx.CompileOptions{
		Buckets: 2, Sizes: map[string]rlx.Size{"seq": {Buckets: []int{3, 10, 30}}, "batch": {Exact: true}},
	})
	call := func(seq int) {
		if _, err := p.Call(t.Context(), "encode", tokens(2, seq)); err != nil {
			t.Error(err)
		}
	}
	compiled := func(what string, want int32, f func()) {
		t.Helper()
		before := compilations.Load()
		f()
		if got := compilations.Load() - before; got != want {
			t.Errorf("%s: %d compilations, want %d", what, got, want)
		}
	}
	compiled("prepared", 1, func() {
		if err := p.Prepare(t.Context(), "encode", map[string]int{"batch": 2, "seq": 7}); err != nil {
			t.Error(err)
		}
	})
	compiled("all of one bucket", 0, func() {
		for seq := 4; seq <= 10; seq++ {
			call(seq)
		}
	})
	compiled("callers at once", 1, func() {
		var all sync.WaitGroup
		for seq := 11; seq < 19; seq++ {
			all.Go(func() { call(seq) })
		}
		all.Wait()
	})
	compiled("a third bucket", 1, func() { call(2) })
	compiled("the first one again", 1, func() { call(5) })
	if _, err := p.Call(t.Context(), "encode", tokens(2, 31)); !errors.Is(err, ir.ErrShape) {
		t.Errorf("more than the largest: %v", err)
	}
}

// TestOpenSizesEnd closes a program, prepares an unknown entry, and cancels calls.
func TestOpenSizesEnd(t *testing.T) {
	p := compileEncoder(t, encoder(t), rlx.CompileOptions{})
	for name, c := range map[string]struct {
		entry string
		sizes map[string]int
		kind  error
	}{
		"no entry":      {"decode", nil, ir.ErrName},
		"no size":       {"encode", map[string]int{"seq": 3}, ir.ErrSymbol},
		"negative size": {"encode", map[string]int{"seq": 3, "batch": -1}, ir.ErrSymbol},
	} {
		if err := p.Prepare(t.Context(), c.entry, c.sizes); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want kind %v", name, err, c.kind)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Call(cancelled, "encode", tokens(2, 3)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	if _, err := p.Call(t.Context(), "encode", tokens(2, 3)); err != nil {
		t.Errorf("after a cancelled call: %v", err)
	}
	for range 2 {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Call(t.Context(), "encode", tokens(2, 3)); !errors.Is(err, native.ErrClosed) {
		t.Errorf("a closed program: %v", err)
	}
	if err := p.Prepare(t.Context(), "encode", map[string]int{"seq": 3, "batch": 2}); !errors.Is(err, native.ErrClosed) {
		t.Errorf("preparing a closed program: %v", err)
	}
}

// TestOptionsOfSizes refuses options outside their domain.
func TestOptionsOfSizes(t *testing.T) {
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "e", Graph: encoder(t)})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    rlx.CompileOptions
		kind error
	}{
		"no such symbol":   {rlx.CompileOptions{Sizes: map[string]rlx.Size{"rows": {}}}, ir.ErrName},
		"exact buckets":    {rlx.CompileOptions{Sizes: map[string]rlx.Size{"seq": {Exact: true, Buckets: []int{2}}}}, ir.ErrAttr},
		"falling buckets":  {rlx.CompileOptions{Sizes: map[string]rlx.Size{"seq": {Buckets: []int{4, 2}}}}, ir.ErrAttr},
		"an empty bucket":  {rlx.CompileOptions{Sizes: map[string]rlx.Size{"seq": {Buckets: []int{0, 2}}}}, ir.ErrAttr},
		"a negative max":   {rlx.CompileOptions{Sizes: map[string]rlx.Size{"seq": {Max: -1}}}, ir.ErrAttr},
		"negative buckets": {rlx.CompileOptions{Buckets: -1}, ir.ErrAttr},
	} {
		if _, err := session.CompileWith(t.Context(), m, c.o); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want kind %v", name, err, c.kind)
		}
	}
	state, err := ir.Build("state", func(b *ir.Builder) {
		b.SetState("s", ops.Add(b, b.State("s", ir.F32, ir.Sym("n")), b.Input("x", ir.F32, ir.Sym("n"))))
	})
	if err != nil {
		t.Fatal(err)
	}
	unsafe, err := ir.Build("shuffle", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Sym("n"), ir.N(2))
		b.Output("y", ops.Reshape(b, ops.Transpose(b, ops.Reshape(b, x, ir.N(2), ir.Sym("n")), 1, 0), ir.Sym("n").Mul(ir.N(2))))
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		g    *ir.Graph
		kind error
		says string
	}{
		"a state with an open size":     {state, ir.ErrSymbol, `state "s"`},
		"elements that padding divides": {unsafe, ir.ErrUnsupported, "reshape"},
	} {
		m, err := ir.NewModule("m", ir.Entry{Name: "e", Graph: c.g})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Compile(t.Context(), m); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want kind %v and %q", name, err, c.kind, c.says)
		}
	}
	exact := compileOn(t, "cpu", unsafe, rlx.CompileOptions{Sizes: map[string]rlx.Size{"n": {Exact: true}}})
	out, err := exact.Call(t.Context(), "encode", rlx.Inputs{"x": rlx.Float32s([]float32{1, 2, 3, 4, 5, 6}, 3, 2)})
	if err != nil {
		t.Fatal(err)
	}
	sameTensor(t, "y", out["y"], rlx.Float32s([]float32{1, 4, 2, 5, 3, 6}))
}
