package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
)

// loop compiles a loop of known length.
func (c *compiler) loop(l *fusion.Loop) error {
	step := &loopStep{count: l.Count, depth: c.loops}
	var err error
	if step.body, err = c.loopBody(l.Node, l.Body); err != nil {
		return err
	}
	for _, pair := range l.Swaps {
		step.swaps = append(step.swaps, [2]*buffer{c.buffers[pair[0].Root().ID], c.buffers[pair[1].Root().ID]})
	}
	c.add(step)
	return nil
}

// while compiles a loop of unknown length.
func (c *compiler) while(w *fusion.While) error {
	step := &whileStep{max: w.Max, depth: c.loops, pred: c.buffers[w.Pred.ID]}
	var err error
	if step.cond, err = c.loopBody(w.Node, w.Cond); err != nil {
		return err
	}
	if step.body, err = c.loopBody(w.Node, w.Body); err != nil {
		return err
	}
	c.add(step)
	return nil
}

// branch compiles a choice between two partitions.
func (c *compiler) branch(x *fusion.Branch) error {
	step := &branchStep{pred: c.buffers[x.Pred.ID]}
	for k, p := range x.Taken {
		var err error
		if step.taken[k], err = c.nested(p); err != nil {
			return err
		}
	}
	c.add(step)
	return nil
}

// loopBody compiles a partition that the loop of a node repeats.
func (c *compiler) loopBody(n *ir.Node, p *fusion.Partition) ([]step, error) {
	if c.loops == maxDepth {
		return nil, n.Fail(ir.Errorf(ir.ErrUnsupported, "loops nested more than %d deep", maxDepth))
	}
	c.loops++
	defer func() { c.loops-- }()
	return c.nested(p)
}

// nested returns the steps of a partition nested in that of the entry.
func (c *compiler) nested(p *fusion.Partition) ([]step, error) {
	outside := c.steps
	defer func() { c.steps = outside }()
	c.steps = nil
	for _, t := range p.Tensors {
		if t.Constant != nil {
			c.constant(t)
		}
	}
	for _, item := range p.Items {
		for _, t := range item.Writes() {
			c.placeTemporary(t)
		}
		if err := c.compileItem(item); err != nil {
			return nil, err
		}
	}
	return c.steps, nil
}

func runSteps(r *runner, steps []step) {
	for _, s := range steps {
		if r.profile != nil {
			r.profile.time(r, s)
		} else {
			s.run(r)
		}
	}
}

// branchStep runs one of two lists of steps, the first where pred is true.
type branchStep struct {
	pred  *buffer
	taken [2][]step
}

func (x *branchStep) run(r *runner) {
	k := 1
	if x.pred.data[0] != 0 {
		k = 0
	}
	runSteps(r, x.taken[k])
}

// whileStep runs its body while its condition holds, at most max times unless max is 0.
type whileStep struct {
	max, depth int
	pred       *buffer
	cond, body []step
}

func (w *whileStep) run(r *runner) {
	for i := 0; w.max == 0 || i < w.max; i++ {
		r.env.counters[w.depth] = int32(i)
		if runSteps(r, w.cond); w.pred.data[0] == 0 {
			return
		}
		runSteps(r, w.body)
	}
}

// loopStep runs its body count times; swaps exchange the double buffers of carried values
// between iterations.
type loopStep struct {
	count, depth int
	body         []step
	swaps        [][2]*buffer
}

func (l *loopStep) run(r *runner) {
	if l.count%2 == 0 {
		defer l.swap() // back
	}
	for i := range l.count {
		if i > 0 {
			l.swap()
		}
		r.env.counters[l.depth] = int32(i)
		runSteps(r, l.body)
	}
}

func (l *loopStep) swap() {
	for _, s := range l.swaps {
		s[0].data, s[1].data = s[1].data, s[0].data
	}
}
