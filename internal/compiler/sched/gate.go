package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Flag is a boolean in memory and its required value.
type Flag struct {
	Tensor *fusion.Tensor // of one element
	Want   bool           // its required value
}

// Gate returns the launch that enables or disables other launches: it writes to cells the three
// sizes of each grid if all flags have their required values, else zeros. grids[0] also requires
// last to be true, grids[1] to be false; cells holds grids[0], then grids[1].
func Gate(flags []Flag, last *fusion.Tensor, grids [2][][3]int, cells *fusion.Tensor) emit.Launch {
	k := &loop.Kernel{Name: "gate", Workgroup: [3]int{1, 1, 1}, Groups: [3]int{1, 1, 1}}
	var args []*fusion.Tensor
	load := func(t *fusion.Tensor) scalar.Expr {
		at := slices.Index(args, t)
		if at < 0 {
			at, args = len(args), append(args, t)
			k.Arrays = append(k.Arrays, loop.Array{Name: "t" + strconv.Itoa(at), DType: ir.Bool, Width: 1, Len: 1})
		}
		return scalar.LoadAt(at, ir.Bool, loop.Int(0))
	}
	on := [2]scalar.Expr{load(last), scalar.Not(load(last))}
	for _, f := range flags {
		x := load(f.Tensor)
		if !f.Want {
			x = scalar.Not(x)
		}
		on[0], on[1] = scalar.And(on[0], x), scalar.And(on[1], x)
	}
	at := 0
	for side, list := range grids {
		for _, grid := range list {
			for _, n := range grid {
				k.Body = append(k.Body, &loop.Store{Array: len(args), At: loop.Int(at), Value: scalar.Select(on[side], scalar.ConstI(ir.U32, int64(n)), scalar.ConstI(ir.U32, 0))})
				at++
			}
		}
	}
	k.Arrays = append(k.Arrays, loop.Array{Name: "cells", DType: ir.U32, Width: 1, Len: cells.Len(), Access: loop.ReadWrite})
	return emit.Launch{Kernel: k, Args: append(args, cells)}
}
