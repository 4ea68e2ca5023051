package loop_test

import (
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestLongArraysHaveIndicesOf64Bits checks that a long array refuses I32 indices, whatever
// their range.
func TestLongArraysHaveIndicesOf64Bits(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("no array is long where an int has 32 bits")
	}
	k := func(at scalar.Expr) *loop.Kernel {
		k := kernelOf(&loop.Store{Array: out, At: at, Value: f32(0)})
		k.Arrays[out].Len = loop.MaxIndex
		k.Arrays[out].Len++
		return k
	}
	refuses(t, k(i32(0)), "the index of out is i32; its 2147483648 elements need i64")
	if err := loop.Check(k(scalar.ConstI(dtype.I64, 0))); err != nil {
		t.Error(err)
	}
}

// TestLoopsCountInTheTypeOfTheirBounds checks that one 64-bit bound makes the variable 64-bit.
func TestLoopsCountInTheTypeOfTheirBounds(t *testing.T) {
	k := kernelOf(&loop.For{
		Var: "k", Start: i32(0), End: scalar.ConstI(dtype.I64, 3), Step: i32(1),
		Body: []loop.Stmt{&loop.Store{Array: out, At: scalar.FreeVar("k", dtype.I64), Value: f32(0)}},
	})
	if err := loop.Check(k); err != nil {
		t.Error(err)
	}
}
