package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
)

// gate decides in the middle of a run which launches are made: those of one side
// of a choice, or those of one more step of a loop of unknown length. A kernel of
// its own writes their grids, or zeros, for indirect dispatches.
type gate struct {
	outer *guard // what it stands under itself
	pred  *fusion.Tensor
	grids [2][][3]int // of the launches where pred is true, and where it is not
	cells *fusion.Tensor
	// needed says that side 0 has a grid even where no launch stands there: a loop
	// goes by it.
	loopCondition bool
}

// guard is the side of a gate on which a launch stands.
type guard struct {
	gate *gate
	side int
}

// flags are all that must hold where the gate is reached.
func (g *gate) flags() []sched.Flag {
	var out []sched.Flag
	for o := g.outer; o != nil; o = o.gate.outer {
		out = append(out, sched.Flag{Tensor: o.gate.pred, Want: o.side == 0})
	}
	return out
}

// addGate adds the launch of a gate, whose kernel is made when the grids are
// known. It runs also where the gate is not reached: what stands under it must
// find zeros then.
func (c *entryCompiler) addGate(pred *fusion.Tensor, outer *guard, rounds []*enclosingLoop) *gate {
	g := &gate{outer: outer, pred: pred}
	l := placedLaunch{gate: g, loops: rounds}
	l.Args = []*fusion.Tensor{pred}
	for _, f := range g.flags() {
		l.Args = append(l.Args, f.Tensor)
	}
	c.launches = append(c.launches, l)
	return g
}

// makeGates makes the kernels of gates, and takes out gates without launches.
// Their cells lie in buffers of their own: an indirect dispatch cannot write the
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

// addGrid adds a grid to those of a side of a gate, unless it is there. Where the
// executor decides by itself what runs, one is enough for the side to be known.
func (c *entryCompiler) addGrid(u *guard, grid [3]int) {
	known := u.gate.grids[u.side]
	if len(known) == 0 || !c.target.Branches && !slices.Contains(known, grid) {
		u.gate.grids[u.side] = append(known, grid)
	}
}

// cell returns where the gate of a launch leaves its grid.
func (c *entryCompiler) cell(u *guard, grid [3]int) *Cell {
	at := slices.Index(u.gate.grids[u.side], grid)
	if c.target.Branches {
		at = 0
	}
	if u.side == 1 {
		at += len(u.gate.grids[0])
	}
	r := c.regions[u.gate.cells]
	return &Cell{r.buffer, r.offset + gridBytes*at}
}
