package backendtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// side is the side of the square matrix that the programs share.
const side = 128

// sharer compiles programs with shared parameters and states.
type sharer struct {
	*testing.T
	native.Sharer
	base native.Program
}

// sharedMemory checks programs with parameters and states in the memory of another one.
func sharedMemory(t *testing.T, b native.Backend) {
	s, ok := b.(native.Sharer)
	if !ok {
		return
	}
	hold := build(t, "hold", func(b *ir.Builder) {
		for _, name := range []string{"unused", "m", "total"} {
			dims := ir.Dims(side, side)
			if name == "total" {
				dims = nil
			}
			b.SetState(name, b.State(name, ir.F32, dims...))
		}
	})
	x := sharer{t, s, compile(t, b, hold)}
	x.products()
	x.alternate()
	x.refusals()
	x.closing()
}

// compile compiles an entry that shares the memory of the base.
func (x sharer) compile(g *ir.Graph) native.Program {
	x.Helper()
	p, err := x.compileWith(g, x.base)
	if err != nil {
		x.Fatal(err)
	}
	return p
}

func (x sharer) compileWith(g *ir.Graph, with native.Program) (native.Program, error) {
	m, err := ir.NewModule("sharing", ir.Entry{Name: g.Name(), Graph: g})
	if err != nil {
		x.Fatal(err)
	}
	return x.CompileShared(context.Background(), m, native.Options{}, with)
}

// adder returns the entry "add", which adds the sum of n inputs to total.
func (x sharer) adder(n int) *ir.Graph {
	return build(x.T, "add", func(b *ir.Builder) {
		b.SetState("total", ops.Add(b, b.State("total", ir.F32), ops.ReduceSum(b, b.Input("x", ir.F32, ir.N(n)))))
	})
}

// products squares a matrix in the memory of the base: its compilation changes no value, and all
// programs see the result. The memory of the base counts once.
func (x sharer) products() {
	ctx := context.Background()
	values := make([]float32, side*side)
	for i := range values {
		values[i] = float32(i % 3)
	}
	set := map[string]native.Tensor{"m": native.Float32s(values, side, side), "total": native.Float32(0)}
	if err := x.base.SetAll(ctx, set); err != nil {
		x.Fatal(err)
	}
	p := x.compile(build(x.T, "square", func(b *ir.Builder) {
		m := b.State("m", ir.F32, ir.Dims(side, side)...)
		b.SetState("m", ops.MatMul(b, m, m))
	}))
	defer closeProgram(x.T, p)
	if most := int64(3 * 4 * side * side); p.Memory() > most {
		x.Errorf("a program with shared memory takes %d bytes; more than %d are not needed", p.Memory(), most)
	}
	check := func(want func(i, j int) float32) {
		x.Helper()
		got, err := x.base.Get(ctx, "m")
		if err != nil {
			x.Fatal(err)
		}
		for i, v := range floats(x.T, got) {
			if w := want(i/side, i%side); v != w {
				x.Fatalf("element %d is %v, want %v", i, v, w)
			}
		}
	}
	check(func(i, j int) float32 { return values[i*side+j] })
	if err := attempt(p, "square", nil); err != nil {
		x.Fatal(err)
	}
	check(func(i, j int) (sum float32) {
		for k := range side {
			sum += values[i*side+k] * values[k*side+j]
		}
		return sum
	})
}

// alternate runs two programs from several goroutines: no run is lost.
func (x sharer) alternate() {
	const runs = 25
	var all sync.WaitGroup
	sum := 0
	for i := range 4 {
		n := 2 + 3*(i%2)
		sum += runs * n
		p := x.compile(x.adder(n))
		defer closeProgram(x.T, p)
		ones := make([]float32, n)
		for k := range ones {
			ones[k] = 1
		}
		all.Go(func() {
			for range runs {
				if err := attempt(p, "add", map[string]native.Tensor{"x": native.Float32s(ones)}); err != nil {
					x.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := x.base.Get(context.Background(), "total")
	if err != nil {
		x.Fatal(err)
	}
	if v := floats(x.T, got)[0]; v != float32(sum) {
		x.Errorf("the total is %v, want %d", v, sum)
	}
}

// refusals shares states of another type, and the memory of a program of another device.
func (x sharer) refusals() {
	other := build(x.T, "other", func(b *ir.Builder) { b.Output("y", ops.Neg(b, b.Param("m", ir.F32, ir.N(3)))) })
	if _, err := x.compileWith(other, x.base); !errors.Is(err, ir.ErrShape) {
		x.Errorf("a state of another type: %v", err)
	}
	if _, err := x.compileWith(x.adder(1), nil); !errors.Is(err, ir.ErrUnsupported) {
		x.Errorf("no other program: %v", err)
	}
}

// closing closes the base first: its memory remains until the last program is closed.
func (x sharer) closing() {
	ctx := context.Background()
	p := x.compile(x.adder(1))
	closeProgram(x.T, x.base)
	if err := attempt(p, "add", map[string]native.Tensor{"x": native.Float32s([]float32{1})}); err != nil {
		x.Error(err)
	}
	if _, err := p.Get(ctx, "total"); err != nil {
		x.Error(err)
	}
	closeProgram(x.T, p)
	if _, err := x.compileWith(x.adder(1), x.base); !errors.Is(err, native.ErrClosed) {
		x.Errorf("the memory of a closed program: %v", err)
	}
}
