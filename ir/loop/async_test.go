package loop_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func TestCheckNamesFaultsOfAsynchronousWork(t *testing.T) {
	copied := func(k *loop.Kernel) *loop.CopyAsync { return k.Body[0].(*loop.CopyAsync) }
	mma := func(k *loop.Kernel) (out *loop.Mma) {
		loop.Walk(k.Body, func(s loop.Stmt) {
			if m, ok := s.(*loop.Mma); ok {
				out = m
			}
		})
		return out
	}
	for _, c := range []struct {
		name  string
		spoil func(k *loop.Kernel)
		want  string
	}{
		{"a copy of 12 bytes", func(k *loop.Kernel) { copied(k).Count = 3 }, "12 bytes"},
		{"a copy to storage", func(k *loop.Kernel) { copied(k).To = kerneltest.ProductResult }, "it must be from storage to shared memory"},
		{"a copy from shared memory", func(k *loop.Kernel) { copied(k).From = kerneltest.RightTile }, "it must be from storage to shared memory"},
		{"a copy to another type", func(k *loop.Kernel) { k.Arrays[kerneltest.LeftTile].DType = dtype.U32 }, "left of f32 to left_tile of u32"},
		{"a copy under a number", func(k *loop.Kernel) { copied(k).Valid = i32(1) }, "the condition is i32"},
		{"a wait for a negative number", func(k *loop.Kernel) { k.Body = append(k.Body, &loop.CopyWait{Pending: -1}) }, "wait for -1 groups; it must be 0 or greater"},
		{"multiply-adds by some threads", func(k *loop.Kernel) {
			k.Body = append(k.Body, &loop.If{Cond: scalar.Lt(loop.LocalID(0, 128), i32(64)), Then: []loop.Stmt{&loop.MmaWait{}}})
		}, "divergent control flow; it must be uniform"},
		{"half a warp group", func(k *loop.Kernel) { k.Workgroup[0] = 64 }, "64 threads; a multiply-add needs a multiple of 128"},
		{"operands of f64", func(k *loop.Kernel) { mma(k).Shape.Operand = dtype.F64 }, "unknown multiply-add of f64"},
		{"an odd number of columns", func(k *loop.Kernel) { mma(k).Shape.N = 12 }, "a multiply-add has the invalid column count 12"},
		{"too few sums", func(k *loop.Kernel) { mma(k).Terms[0].Sums = mma(k).Terms[0].Sums[1:] }, "3 sums given; it needs 4"},
		{"a sum twice", func(k *loop.Kernel) { mma(k).Terms[0].Sums = []string{"sum0", "sum1", "sum0", "sum3"} }, "register sum0 is given twice"},
		{"a sum that is no variable", func(k *loop.Kernel) { mma(k).Terms[0].Sums = []string{"sum0", "sum1", "sum2", "other"} }, "other is not a Var of f32"},
		{"an operand in storage", func(k *loop.Kernel) { mma(k).Terms[0].B.Array = kerneltest.ProductRight }, "operand B is right of f32; it must be shared memory of f32"},
		{"panels of f32", func(k *loop.Kernel) { mma(k).Terms[0].B.Depth = 32 }, "operand B of f32 has the unsupported panel depth 32"},
		{"an operand past the row", func(k *loop.Kernel) { mma(k).Terms[0].A.K = 32 }, "operand A starts at 32 of 32 on axis k"},
		{"an operand between its steps", func(k *loop.Kernel) { mma(k).Terms[0].A.K = 4 }, "operand A starts at 4 of 32 on axis k"},
		{"registers of f32 for an operand of f16", func(k *loop.Kernel) {
			m := mma(k)
			m.Shape.Operand = dtype.F16
			m.Terms[0].LeftRegisters = m.Terms[0].Sums
		}, "sum0 is not a Var of u32"},
		{"a pair of f32", func(k *loop.Kernel) {
			k.Body = append(k.Body, &loop.Pack{Name: "sum0", Type: dtype.F32, Low: f32(0), High: f32(0)})
		}, "pack of f32; it must be f16 or bf16"},
		{"a pair in a register of f32", func(k *loop.Kernel) {
			k.Body = append(k.Body, &loop.Pack{Name: "sum0", Type: dtype.BF16, Low: f32(0), High: f32(0)})
		}, "sum0 is not a Var of u32"},
		{"a pair of integers", func(k *loop.Kernel) {
			k.Body = append(k.Body, &loop.Var{Name: "pair", Init: scalar.ConstI(dtype.U32, 0)}, &loop.Pack{Name: "pair", Type: dtype.BF16, Low: i32(0), High: f32(0)})
		}, "the value is i32"},
		{"a shuffle beyond the warp", func(k *loop.Kernel) {
			k.Body = append(k.Body, &loop.Shuffle{Name: "other", Value: f32(0), Xor: 32})
		}, "shuffle by 32; it must be below 32"},
		{"a shuffle of some threads", func(k *loop.Kernel) {
			k.Body = append(k.Body, &loop.If{Cond: scalar.Lt(loop.LocalID(0, 128), i32(64)), Then: []loop.Stmt{&loop.Shuffle{Name: "other", Value: f32(0), Xor: 1}}})
		}, "divergent control flow; it must be uniform"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := kerneltest.NewProductKernel(dtype.F32, 8, false, false).Kernel()
			c.spoil(k)
			refuses(t, k, c.want)
		})
	}
}

// The offset of an element in a tile is computed twice: in expressions for kernels, and in
// numbers for the simulator.
func TestTileOffsetsAgree(t *testing.T) {
	s := scalar.NewSimplifier()
	for _, d := range []dtype.DType{dtype.BF16, dtype.F32} {
		row := loop.RowElements(d)
		for depth, free := range map[int]int{0: 24, row: 2 * row} {
			seen := map[int]bool{}
			for f := range free {
				for k := range row {
					want, _ := s.Simplify(loop.TileOffset(d, depth, loop.Int(f), loop.Int(k))).IntConst()
					tile := loop.Tile{Depth: depth, K: k}
					if got := tile.Element(d, f, 0); got != int(want) || seen[got] {
						t.Fatalf("%s, depth %d: (%d, %d) is at %d and at %d", d, depth, f, k, got, want)
					}
					seen[int(want)] = true
				}
			}
		}
	}
}

// Each copy of an unrolled body has its own registers and addresses.
func TestUnrollRenamesVariablesOfMultiplyAdds(t *testing.T) {
	k := kerneltest.NewProductKernel(dtype.F32, 8, false, true).Kernel()
	once := len(k.Body)
	k.Body = []loop.Stmt{&loop.For{Var: "turn", Start: i32(0), End: i32(2), Step: i32(1), Unroll: true, Body: k.Body}}
	u := loop.Unroll(k)
	if err := loop.Check(u); err != nil {
		t.Fatal(err)
	}
	var sums []string
	loop.Walk(u.Body, func(s loop.Stmt) {
		switch s := s.(type) {
		case *loop.Mma:
			sums = append(sums, s.Terms[0].Sums[0])
		case *loop.MmaWait:
			sums = append(sums, s.Names[0])
		}
	})
	if len(u.Body) != 2*once || strings.Join(sums, " ") != "sum0_0 sum0_0 sum0_1 sum0_1" {
		t.Errorf("%d statements of %d, sums %v", len(u.Body), once, sums)
	}
}

// Each copy of an unrolled body has its own names for packs and shuffles.
func TestUnrollRenamesPairsAndShuffles(t *testing.T) {
	body := []loop.Stmt{
		&loop.Var{Name: "pair", Init: scalar.ConstI(dtype.U32, 0)},
		&loop.Pack{Name: "pair", Type: dtype.F16, Low: f32(1), High: f32(2)},
		&loop.Shuffle{Name: "other", Value: f32(1), Xor: 1},
	}
	k := kernelOf(&loop.For{Var: "turn", Start: i32(0), End: i32(2), Step: i32(1), Unroll: true, Body: body})
	k.Workgroup[0] = 32
	u := loop.Unroll(k)
	if err := loop.Check(u); err != nil {
		t.Fatal(err)
	}
	if pack := u.Body[4].(*loop.Pack); pack.Name != "pair_1" {
		t.Errorf("the second pair is %s", pack.Name)
	}
}
