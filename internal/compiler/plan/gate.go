package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
)

// gate is a kernel that decides on the device which launches run: those of one branch
// of a condition, or those of one more iteration of a loop of unknown length. It writes
// their grids, or zeros, for indirect dispatches.
type gate struct {
	outer *guard // the guard of the gate itself
	pred  *fusion.Tensor
	grids [2][][3]int // of the launches where pred is true, and where it is not
	cells *fusion.Tensor
	// loopCondition means that side 0 has a grid even without launches, because a
	// [While] reads it.
	loopCondition bool
}

// guard is the side of a gate under which a launch runs: 0 where the predicate is true.
type guard struct {
	gate *gate
	side int
}

// flags returns the conditions under which the gate is reached.
func (g *gate) flags() []sched.Flag {
	var out []sched.Flag
	for o := g.outer; o != nil; o = o.gate.outer {
		out = append(out, sched.Flag{Tensor: o.gate.pred, Want: o.side == 0})
	}
	return out
}

// addGate adds the launch of a gate, whose kernel is made when the grids are
// known. It also runs where the gate is not reached, to write zeros for the launches
// under it.
func (c *entryCompiler) addGate(pred *fusion.Tensor, outer *guard, loops []*enclosingLoop) *gate {
	g := &gate{outer: outer, pred: pred}
	l := placedLaunch{gate: g, loops: loops}
	l.Args = []*fusion.Tensor{pred}
	for _, f := range g.flags() {
		l.Args = append(l.Args, f.Tensor)
	}
	c.launches = append(c.launches, l)
	return g
}

// makeGates makes the kernels of gates and removes gates without launches.
// Grids lie in buffers of their own: an indirect dispatch cannot write the
// buffer that it reads its grid from.
func (c *entryCompiler) makeGates() error {
	for i := range c.launches {
		l := &c.launches[i]
		if l.guard != nil {
			c.addGrid(l.guard, l.Kernel.Groups)
		}
		if l.gate != nil && l.gate.loopCondition {
			c.addGrid(&guard{l.gate, 0}, [3]int{1, 1, 1})
		}
	}
	launches := c.launches
	c.launches = launches[:0]
	for _, l := range launches {
		if g := l.gate; g != nil {
			n := len(g.grids[0]) + len(g.grids[1])
			if n == 0 {
				continue
			}
			g.cells = &fusion.Tensor{Name: "cells", DType: ir.U32, Dims: []int{3 * n}}
			r, err := c.gates.place(g.cells)
			if err != nil {
				return err
			}
			c.regions[g.cells] = r
			l.Launch = sched.Gate(g.flags(), g.pred, g.grids, g.cells)
		}
		c.launches = append(c.launches, l)
	}
	return nil
}

// addGrid adds a grid to a side of a gate, unless it has it. Where executors branch,
// one grid is enough for the whole side.
func (c *entryCompiler) addGrid(u *guard, grid [3]int) {
	known := u.gate.grids[u.side]
	if len(known) == 0 || !c.target.Branches && !slices.Contains(known, grid) {
		u.gate.grids[u.side] = append(known, grid)
	}
}

// cell returns where the gate of a launch writes its grid.
func (c *entryCompiler) cell(u *guard, grid [3]int) *GridAddress {
	at := slices.Index(u.gate.grids[u.side], grid)
	if c.target.Branches {
		at = 0
	}
	if u.side == 1 {
		at += len(u.gate.grids[0])
	}
	r := c.regions[u.gate.cells]
	return &GridAddress{r.buffer, r.offset + gridBytes*at}
}
