package sim_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Multiply-adds of f32 use only the bits of TF32.
func TestSingleFloatsAreCut(t *testing.T) {
	c := kerneltest.NewProductKernel(dtype.F32, 8, false, false).Case()
	clear(c.Arrays[kerneltest.ProductLeft])
	clear(c.Arrays[kerneltest.ProductRight])
	c.Arrays[kerneltest.ProductLeft][0] = 1 + math.Ldexp(1, -10) + math.Ldexp(1, -11)
	c.Arrays[kerneltest.ProductRight][0] = 1
	l := launch(c)
	if err := sim.Run(c.Kernel, l, sim.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := results(c, l)[kerneltest.ProductResult][0], 1+math.Ldexp(1, -10); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// simulate runs a product, maybe with a planted fault.
func simulate(p *kerneltest.ProductKernel) error {
	c := p.Case()
	return sim.Run(c.Kernel, launch(c), sim.Options{})
}

func TestAsynchronousFaultsAreFound(t *testing.T) {
	touch := let("x", scalar.LoadAt(kerneltest.LeftTile, dtype.F32, i32(0)))
	for _, c := range []struct {
		name  string
		spoil func(p *kerneltest.ProductKernel)
		want  sim.Kind
		array string
	}{
		{"copies that nobody waits for", func(p *kerneltest.ProductKernel) { p.Wait = nil }, sim.Unfinished, "left_tile"},
		{"copies outside any group", func(p *kerneltest.ProductKernel) { p.Copies = p.Copies[:len(p.Copies)-1] }, sim.Unfinished, "left_tile"},
		{"a wait for all groups but the one needed", func(p *kerneltest.ProductKernel) { p.Wait = []loop.Stmt{&loop.CopyWait{Pending: 1}} }, sim.Unfinished, "left_tile"},
		{"what a copy brings read by its thread before the wait", func(p *kerneltest.ProductKernel) { p.Wait = append([]loop.Stmt{touch}, p.Wait...) }, sim.Unfinished, "left_tile"},
		{"a copy to where another is under way", func(p *kerneltest.ProductKernel) { p.Copies = append(p.Copies[:1:1], p.Copies...) }, sim.Unfinished, "left_tile"},
		{"no fence", func(p *kerneltest.ProductKernel) { p.Fence = nil }, sim.Unfenced, "left_tile"},
		{"a fence before the wait", func(p *kerneltest.ProductKernel) { p.Wait, p.Fence = p.Fence, p.Wait }, sim.Unfenced, "left_tile"},
		{"no barrier", func(p *kerneltest.ProductKernel) { p.Barrier = nil }, sim.Race, "left_tile"},
		{"sums used while the multiply-adds are under way", func(p *kerneltest.ProductKernel) { p.Done = nil }, sim.Unfinished, "sum0"},
		{"sums used that the wait does not name", func(p *kerneltest.ProductKernel) { p.Done = []loop.Stmt{&loop.MmaWait{}} }, sim.Unfinished, "sum0"},
		{"sums changed while the multiply-adds are under way", func(p *kerneltest.ProductKernel) {
			p.Done = append([]loop.Stmt{&loop.Assign{Name: "sum1", Value: f32(0)}}, p.Done...)
		}, sim.Unfinished, "sum1"},
		{"an operand overwritten while it is read", func(p *kerneltest.ProductKernel) {
			p.Multiply = append(p.Multiply, store(kerneltest.LeftTile, loop.LocalID(0, loop.WarpGroup), f32(0)))
		}, sim.Unfinished, "left_tile"},
		{"an operand overwritten before others have waited", func(p *kerneltest.ProductKernel) {
			p.Store = []loop.Stmt{store(kerneltest.LeftTile, loop.LocalID(0, loop.WarpGroup), f32(0))}
		}, sim.Race, "left_tile"},
		{"a copy to an operand while it is read", func(p *kerneltest.ProductKernel) { p.Multiply = append(p.Multiply, p.Copies[0]) }, sim.Unfinished, "left_tile"},
		{"multiply-adds under way at the end", func(p *kerneltest.ProductKernel) { p.Done, p.Store = nil, nil }, sim.Unfinished, "sum0"},
		{"copies under way at the end", func(p *kerneltest.ProductKernel) {
			p.Store = append([]loop.Stmt{barrier}, append(p.Copies[:1:1], p.Store...)...)
		}, sim.Unfinished, "left_tile"},
		{"a copy to an odd address", func(p *kerneltest.ProductKernel) {
			c := *p.Copies[0].(*loop.CopyAsync)
			c.ToAt = scalar.Add(c.ToAt, i32(1))
			p.Copies = append([]loop.Stmt{&c}, p.Copies[1:]...)
		}, sim.Misaligned, "left_tile"},
		{"a tile at an odd address", func(p *kerneltest.ProductKernel) {
			p.Multiply[0].(*loop.Mma).Terms[0].B.At = i32(32)
		}, sim.Misaligned, "right_tile"},
		{"a tile that the threads place differently", func(p *kerneltest.ProductKernel) {
			p.Multiply[0].(*loop.Mma).Terms[0].B.At = scalar.Mul(loop.LocalID(0, loop.WarpGroup), i32(0x100))
		}, sim.Misaligned, "right_tile"},
		{"a tile past the end", func(p *kerneltest.ProductKernel) {
			p.Multiply[0].(*loop.Mma).Terms[0].B.At = i32(0x100)
		}, sim.OutOfBounds, "right_tile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := kerneltest.NewProductKernel(dtype.F32, 8, false, false)
			c.spoil(p)
			err := simulate(p)
			var f *sim.Fault
			if !errors.As(err, &f) {
				t.Fatalf("error %v, want a fault", err)
			}
			if f.Kind != c.want || f.Array != c.array {
				t.Errorf("%v, want %v of %s", f, c.want, c.array)
			}
		})
	}
}

// intoVectors is a kernel of 4 threads that copy elements to an array of vectors in reverse and
// read vectors back: the destination index counts elements.
func intoVectors(past int) *kerneltest.Case {
	id := loop.LocalID(0, 4)
	names := []string{"a", "b", "c", "d"}
	first := scalar.Sub(i32(3), id)
	return &kerneltest.Case{
		Kernel: &loop.Kernel{
			Name: "into_vectors", Workgroup: [3]int{4, 1, 1}, Groups: [3]int{1, 1, 1},
			Arrays: []loop.Array{
				{Name: "x", DType: dtype.F32, Width: 1, Len: 4, Space: loop.Storage},
				{Name: "y", DType: dtype.F32, Width: 1, Len: 4, Space: loop.Storage, Access: loop.ReadWrite},
				{Name: "turned", DType: dtype.F32, Width: 4, Len: 1, Space: loop.Shared},
			},
			Body: []loop.Stmt{
				&loop.CopyAsync{To: 2, ToAt: scalar.Add(first, i32(int64(past))), From: 0, FromAt: id, Count: 1},
				&loop.CopyCommit{}, &loop.CopyWait{}, barrier,
				&loop.LoadVec{Names: names, Array: 2, At: i32(0)},
				when(scalar.Eq(id, i32(0)), store(1, i32(0), scalar.FreeVar("a", dtype.F32)), store(1, i32(3), scalar.FreeVar("d", dtype.F32))),
			},
		},
		Arrays: [][]float64{{1, 2, 3, 4}, {0, 0, 0, 0}},
	}
}

func TestCopiesIntoVectors(t *testing.T) {
	c := intoVectors(0)
	if err := loop.Check(c.Kernel); err != nil {
		t.Fatal(err)
	}
	l := launch(c)
	if err := sim.Run(c.Kernel, l, sim.Options{}); err != nil {
		t.Fatal(err)
	}
	if y := results(c, l)[1]; y[0] != 4 || y[3] != 1 {
		t.Errorf("the vector is %v around, want 4 and 1", y)
	}
	c = intoVectors(1)
	var f *sim.Fault
	if err := sim.Run(c.Kernel, launch(c), sim.Options{}); !errors.As(err, &f) || f.Kind != sim.OutOfBounds || f.Array != "turned" {
		t.Errorf("error %v, want a copy outside turned", err)
	}
}

// The source of a copy must not change until the copy is complete.
func TestSourcesOfCopiesMustNotChange(t *testing.T) {
	p := kerneltest.NewProductKernel(dtype.F32, 8, false, false)
	first := scalar.Eq(loop.LocalID(0, loop.WarpGroup), i32(0))
	change := when(first, store(kerneltest.ProductLeft, i32(0), f32(77)))
	p.Wait = append([]loop.Stmt{barrier, change, barrier}, p.Wait...)
	c := p.Case()
	c.Kernel.Arrays[kerneltest.ProductLeft].Access = loop.ReadWrite
	err := sim.Run(c.Kernel, launch(c), sim.Options{})
	var f *sim.Fault
	if !errors.As(err, &f) || f.Kind != sim.Unfinished || f.Array != "left" {
		t.Errorf("error %v, want unfinished work on left", err)
	}
}

// A variable of A may be assigned once a wait has named it.
func TestRegistersAreFreeOnceNamed(t *testing.T) {
	for _, named := range []bool{false, true} {
		p := kerneltest.NewProductKernel(dtype.F32, 8, false, true)
		wait := p.Done[0].(*loop.MmaWait)
		if named {
			wait.Names = append(wait.Names, "left0_0")
		}
		p.Done = append(p.Done, &loop.Assign{Name: "left0_0", Value: f32(1)})
		err := simulate(p)
		if (err == nil) != named {
			t.Errorf("named %t: error %v", named, err)
		}
		pairs := kerneltest.NewProductKernel(dtype.BF16, 8, false, true)
		wait = pairs.Done[0].(*loop.MmaWait)
		if named {
			wait.Names = append(wait.Names, "left0_0")
		}
		pairs.Done = append(pairs.Done, &loop.Pack{Name: "left0_0", Type: dtype.BF16, Low: f32(1), High: f32(2)})
		if err := simulate(pairs); (err == nil) != named {
			t.Errorf("of pairs, named %t: error %v", named, err)
		}
	}
}

// A first product ignores the previous values of its accumulator.
func TestFirstProductsOverwriteAccumulators(t *testing.T) {
	p := kerneltest.NewProductKernel(dtype.BF16, 8, false, false)
	for _, s := range p.Fragments {
		s.(*loop.Var).Init = f32(7)
	}
	p.Multiply[0].(*loop.Mma).Terms[0].First = true
	c := p.Case()
	l := launch(c)
	if err := sim.Run(c.Kernel, l, sim.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Compare(results(c, l)); err != nil {
		t.Error(err)
	}
}
