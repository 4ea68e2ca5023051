//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/cpu"
	"github.com/rlx-go/rlx/native/cuda"
)

// gpu returns the backend, or skips the test without a GPU.
func gpu(t testing.TB) native.Backend {
	t.Helper()
	b := cuda.Backend()
	backendtest.Require(t, b.Name(), b.Probe())
	t.Log(b.Info().Description)
	return b
}

func TestGPUPassesTheSuite(t *testing.T) { backendtest.Run(t, cuda.Backend()) }

// The instruction for powers of two flushes subnormal results.
func TestGPUFunctionsAtHardPoints(t *testing.T) { backendtest.Functions(t, gpu(t), true) }

func TestGPULongSums(t *testing.T) { backendtest.LongSums(t, gpu(t)) }

func TestGPUExtremesComputedAgain(t *testing.T) { backendtest.Extremes(t, gpu(t)) }

func TestGPUConventionsOfNaN(t *testing.T) { backendtest.NaN(t, gpu(t)) }

// compile makes a program of one graph, entry "step".
func compile(t testing.TB, b native.Backend, g *ir.Graph) native.Program {
	t.Helper()
	return compileWith(t, b, g, native.Options{})
}

func compileWith(t testing.TB, b native.Backend, g *ir.Graph, o native.Options) native.Program {
	t.Helper()
	m, err := ir.NewModule("module", ir.Entry{Name: "step", Graph: g})
	must(t, err)
	p, err := b.Compile(context.Background(), m, o)
	must(t, err)
	t.Cleanup(func() { must(t, p.Close(context.Background())) })
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// step makes an Adam step of the graph of a loss.
func step(t testing.TB, loss *ir.Graph, err error) *ir.Graph {
	t.Helper()
	must(t, err)
	g, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{Schedule: optim.Constant(1e-3)})
	must(t, err)
	return g
}

// begin sets random weights in a program and returns a batch for it, with integers below classes.
func begin(t testing.TB, p native.Program, g *ir.Graph, classes int) map[string]native.Tensor {
	t.Helper()
	return beginBelow(t, p, g, func(string) int { return classes })
}

// beginBelow is begin with integers below a bound for each input.
func beginBelow(t testing.TB, p native.Program, g *ir.Graph, below func(name string) int) map[string]native.Tensor {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	in := map[string]native.Tensor{}
	for _, port := range g.Ports() {
		dims, _ := port.Value.Shape().Ints()
		x := native.Zeros(port.Value.DType(), dims...)
		switch {
		case optim.IsState(port):
		case x.DType == ir.F32:
			values, err := x.Float32s()
			must(t, err)
			for i := range values {
				values[i] = float32(rng.NormFloat64() / math.Sqrt(float64(max(dims[0], 16))))
			}
		case x.DType.IsFloat():
			for i := range x.Data {
				x.Data[i] = byte(rng.Uint32() >> 8)
			}
			tame(x)
		case x.DType == ir.I32:
			values, err := x.Int32s()
			must(t, err)
			for i := range values {
				values[i] = int32(rng.IntN(below(port.Name)))
			}
		}
		if port.Kind == ir.InputPort {
			in[port.Name] = x
		} else {
			must(t, p.Set(context.Background(), port.Name, x))
		}
	}
	return in
}

// tame makes small numbers of random bits: of 16-bit floats, those of -2 to 2.
func tame(x native.Tensor) {
	for i := 1; i < len(x.Data); i += 2 {
		x.Data[i] &^= 0x40
	}
}

// The same network is trained on the same batches on the GPU and on the CPU: it
// learns them, with the losses of the one those of the other.
func TestGPUTrainsAsTheCPUDoes(t *testing.T) {
	ctx, b := context.Background(), gpu(t)
	loss, err := irtest.MLP(64, 40, 96, 70, 10)
	g := step(t, loss, err)
	curve := func(b native.Backend) []float32 {
		p := compile(t, b, g)
		in, loss := begin(t, p, g, 10), []float32{0}
		bound, err := p.Bind(ctx, "step", in, map[string]native.Tensor{"loss": {DType: ir.F32, Dims: []int{}, Data: native.Float32s(loss).Data}})
		must(t, err)
		var out []float32
		for range 300 {
			must(t, bound.Start(ctx))
			must(t, bound.Wait(ctx))
			out = append(out, loss[0])
		}
		return out
	}
	got, want := curve(b), curve(cpu.Backend())
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 2e-3*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("step %d: loss %v, on the CPU %v", i, got[i], want[i])
		}
	}
	if last := got[len(got)-1]; last > 0.1*got[0] {
		t.Errorf("the loss goes from %v to %v", got[0], last)
	}
}

// An array of more than 2 GiB is written, moved and read with all of its
// positions right.
func TestGPUHoldsArraysOfMoreThan2GiB(t *testing.T) {
	b := gpu(t)
	const rows, columns = 3 << 10, 200_003 // 2.3 GiB
	if memory := b.Info().Memory; memory < 12<<30 {
		backendtest.Require(t, b.Name(), fmt.Errorf("12 GiB of memory are needed, and the device has %d bytes", memory))
	}
	g, err := ir.Build("large", func(b *ir.Builder) {
		x := b.State("x", ir.F32, ir.Dims(rows, columns)...)
		at := ops.Add(b, ops.Mul(b, ops.Iota(b, ir.F32, 0, ir.Dims(rows, columns)...), ops.Const(b, ir.F32, 2)), b.Input("more", ir.F32))
		b.SetState("x", ops.Add(b, x, at))
		b.Output("column", ops.Reshape(b, ops.SliceAxis(b, x, 1, ir.N(columns-1), ir.N(1)), ir.N(rows)))
		b.Output("greatest", ops.ReduceMax(b, x))
	})
	must(t, err)
	p := compile(t, b, g)
	for k := range 3 {
		r, err := p.Run(context.Background(), "step", map[string]native.Tensor{"more": native.Float32(1)})
		must(t, err)
		out, err := r.Wait(context.Background())
		must(t, err)
		column, err := out["column"].Float32s()
		must(t, err)
		for i, x := range column {
			if want := float32(k * (2*i + 1)); x != want {
				t.Fatalf("run %d: row %d is %v, not %v", k, i, x, want)
			}
		}
		greatest, err := out["greatest"].Float32s()
		must(t, err)
		if want := float32(k * (2*(rows-1) + 1)); greatest[0] != want {
			t.Errorf("run %d: the greatest is %v, not %v", k, greatest[0], want)
		}
	}
}

// running is a graph that adds its input to a state.
func running(t testing.TB) *ir.Graph {
	t.Helper()
	g, err := ir.Build("add", func(b *ir.Builder) {
		sum := ops.Add(b, b.State("total", ir.F32, ir.N(1000)), b.Input("x", ir.F32, ir.N(1000)))
		b.SetState("total", sum)
		b.Output("sum", sum)
	})
	must(t, err)
	return g
}

// A kernel that writes to unmapped memory ends all programs on the device with a typed error. It
// runs in a separate process.
func TestGPUIsLostByAnIllegalAccess(t *testing.T) {
	b := gpu(t)
	const child = "RLX_TEST_LOSES_THE_GPU"
	if os.Getenv(child) == "" {
		t.Setenv(child, "1")
		if out, err := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	broken, bystander := compile(t, b, running(t)), compile(t, b, running(t))
	must(t, call(bystander))
	must(t, cuda.Misplace(broken))
	var typed *native.Error
	if err := call(broken); !errors.Is(err, native.ErrLost) || !errors.As(err, &typed) || typed.Steps != 1 {
		t.Errorf("an illegal access: %v", err)
	}
	if err := call(bystander); !errors.Is(err, native.ErrLost) {
		t.Errorf("another program of the device: %v", err)
	}
	if err := b.Probe(); !errors.Is(err, native.ErrLost) {
		t.Errorf("the device: %v", err)
	}
}

// call runs the entry of a program of running.
func call(p native.Program) error {
	ctx := context.Background()
	r, err := p.Run(ctx, "step", map[string]native.Tensor{"x": native.Zeros(ir.F32, 1000)})
	if err == nil {
		_, err = r.Wait(ctx)
	}
	return err
}

// A module that does not fit is refused with its size and the free memory, and
// others continue.
func TestGPURefusesProgramsOverItsMemory(t *testing.T) {
	b := gpu(t)
	small := compile(t, b, running(t))
	g, err := ir.Build("huge", func(b *ir.Builder) {
		for i := range 64 {
			name := fmt.Sprint("x", i)
			b.SetState(name, ops.Add(b, b.State(name, ir.F32, ir.N(1<<30)), ops.Const(b, ir.F32, 1)))
		}
	})
	must(t, err)
	m, err := ir.NewModule("huge", ir.Entry{Name: "step", Graph: g})
	must(t, err)
	_, err = b.Compile(context.Background(), m, native.Options{})
	if !errors.Is(err, native.ErrMemory) || !strings.Contains(err.Error(), "256.00 GiB") || !strings.Contains(err.Error(), "free") {
		t.Errorf("256 GiB: %v", err)
	}
	must(t, call(small))
}
