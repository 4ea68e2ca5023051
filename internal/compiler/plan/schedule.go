package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/persistent"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// placedLaunch is a launch with its enclosing loops, outermost first, and its guard.
// Where gate is set it is the launch of a gate.
type placedLaunch struct {
	emit.Launch
	loops []*enclosingLoop
	guard *guard
	gate  *gate
}

// enclosingLoop is a loop around launches: its trip count or the gate that is its
// condition, the tensors that are swapped after every iteration (double buffering of the
// carries), and the partitions that it runs.
type enclosingLoop struct {
	count      int // 0 with a condition
	condition  *gate
	swaps      [][2]*fusion.Tensor
	partitions []*fusion.Partition
}

// learn registers all groups with the schedule cache before they are scheduled.
func (c *entryCompiler) learn(p *fusion.Partition) {
	for _, item := range p.Items {
		switch item := item.(type) {
		case *fusion.Group:
			c.cache.Learn(item, c.target.Caps)
		case fusion.Control:
			for _, inner := range item.Partitions() {
				c.learn(inner)
			}
		}
	}
}

// schedule makes the launches of the entry.
func (c *entryCompiler) schedule() error {
	c.learn(c.partition)
	err := c.scheduleAll(c.partition, nil, nil)
	c.launches = joinLaunches(c.launches, c.target)
	return err
}

// scheduleAll adds the launches of all items of a partition in order, those of loops and
// branches in place.
func (c *entryCompiler) scheduleAll(p *fusion.Partition, loops []*enclosingLoop, u *guard) error {
	for _, item := range p.Items {
		if err := c.scheduleItem(item, loops, u); err != nil {
			return err
		}
	}
	return nil
}

// scheduleItem adds the launches of an item inside loops; u is nil without a guard.
func (c *entryCompiler) scheduleItem(item fusion.Item, loops []*enclosingLoop, u *guard) error {
	switch item := item.(type) {
	case *fusion.Group:
		launches, err := c.cache.Schedule(item, c.target.capsFor(u != nil))
		c.launches = appendLaunches(c.launches, launches, loops, u)
		return err
	case *fusion.Loop:
		if launches, ok, err := persistent.Emit(item, c.target.Caps); err != nil {
			return err
		} else if ok && !c.target.Unfused {
			c.launches = appendLaunches(c.launches, launches, loops, u)
			return nil
		}
		inner, err := inside(loops, item.Node, &enclosingLoop{count: item.Count, swaps: item.Swaps, partitions: item.Partitions()})
		if err != nil {
			return err
		}
		return c.scheduleAll(item.Body, inner, u)
	case *fusion.Branch:
		g := c.addGate(item.Pred, u, loops)
		for side, taken := range item.Taken {
			if err := c.scheduleAll(taken, loops, &guard{g, side}); err != nil {
				return err
			}
		}
	case *fusion.While:
		return c.scheduleWhile(item, loops, u)
	}
	return nil
}

// appendLaunches appends launches inside loops under a guard, nil for none.
func appendLaunches(to []placedLaunch, launches []emit.Launch, loops []*enclosingLoop, u *guard) []placedLaunch {
	for _, l := range launches {
		to = append(to, placedLaunch{Launch: l, loops: loops, guard: u})
	}
	return to
}

// capsFor returns the capabilities for launches under a condition or not. Under a
// condition there are no routines, since only kernels have indirect dispatches, but for factorisations, which
// write scratch memory alone and run in any case; and no drafts, which would need a grid of their own.
func (t Target) capsFor(condition bool) loop.Caps {
	caps := t.Caps
	if condition {
		caps.Products, caps.Collectives, caps.Drafts = loop.NoProducts, false, false
	}
	return caps
}

// scheduleWhile makes a repeat of the maximum trip count, or a loop until its gate
// closes. Once the condition is false the carries no longer change, and so neither does
// the condition.
func (c *entryCompiler) scheduleWhile(w *fusion.While, loops []*enclosingLoop, u *guard) error {
	own := &enclosingLoop{count: w.Max, partitions: w.Partitions()}
	inner, err := inside(loops, w.Node, own)
	if err != nil {
		return err
	}
	if err := c.scheduleAll(w.Cond, inner, u); err != nil {
		return err
	}
	g := c.addGate(w.Pred, u, inner)
	if w.Max == 0 {
		own.condition, g.loopCondition = g, true
	}
	return c.scheduleAll(w.Body, inner, &guard{g, 0})
}

// inside returns the loops around the body of loop r, which is that of node n.
func inside(loops []*enclosingLoop, n *ir.Node, r *enclosingLoop) ([]*enclosingLoop, error) {
	if r.count > MaxRepeat {
		return nil, n.Fail(ir.Errorf(ir.ErrUnsupported, "%d steps, and a plan repeats up to %d times", r.count, MaxRepeat))
	}
	return append(slices.Clone(loops), r), nil
}
