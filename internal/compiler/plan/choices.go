package plan

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Choice is a group of a module with several candidate schedules, for tuning.
type Choice struct {
	Key  sched.Key
	Name string // of the group's kernels
	// Candidates are its schedules. The first is the default, which the target's
	// Schedules override: see [sched.Candidates].
	Candidates []emit.Ranked

	target    Target
	partition *fusion.Partition
	group     *fusion.Group
	loops     []*enclosingLoop
	caps      loop.Caps
}

// Choices returns the groups of a module with several candidates on a target, in
// execution order, without duplicates. The errors are those of [Compile].
func Choices(m *ir.Module, t Target) ([]*Choice, error) {
	if m == nil {
		return nil, ir.Errorf(ir.ErrGraph, "no module given")
	}
	c := newCompiler(m, t, nil)
	f := &choiceFinder{target: t, known: map[sched.Key]bool{}}
	for _, e := range m.Entries {
		p, err := c.fuse(e)
		if err != nil {
			return nil, format.Errorf("entry %q of module %q: %w", e.Name, m.Name, err)
		}
		c.addCodes(p.Checks)
		if err := f.partition(p, nil, false); err != nil {
			return nil, err
		}
	}
	return f.found, nil
}

// choiceFinder collects the choices of partitions.
type choiceFinder struct {
	target Target
	known  map[sched.Key]bool
	found  []*Choice
}

func (f *choiceFinder) partition(p *fusion.Partition, loops []*enclosingLoop, condition bool) error {
	for _, item := range p.Items {
		switch item := item.(type) {
		case *fusion.Group:
			if err := f.group(p, item, loops, condition); err != nil {
				return err
			}
		case *fusion.Loop:
			if err := f.partition(item.Body, append(loops[:len(loops):len(loops)], &enclosingLoop{count: 1, partitions: item.Partitions()}), condition); err != nil {
				return err
			}
		case fusion.Control:
			inner := loops
			if _, ok := item.(*fusion.While); ok {
				inner = append(loops[:len(loops):len(loops)], &enclosingLoop{count: 1, partitions: item.Partitions()})
			}
			for _, p := range item.Partitions() {
				if err := f.partition(p, inner, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// group records a group with several candidates. Horizontally fused maps have one.
func (f *choiceFinder) group(p *fusion.Partition, g *fusion.Group, loops []*enclosingLoop, condition bool) error {
	caps := f.target.capsFor(condition)
	list, err := sched.Candidates(g, caps)
	if err != nil || len(list) < 2 {
		return err
	}
	if key := sched.KeyOf(g, caps); !f.known[key] {
		f.known[key] = true
		f.found = append(f.found, &Choice{key, g.Name(), list, f.target, p, g, loops, caps})
	}
	return nil
}

// Trial returns a plan to benchmark a schedule: its entry "run" computes the group the
// given number of times, on uninitialised memory. The error is that of [sched.Emit] or
// [Compile].
func (x *Choice) Trial(s emit.Schedule, times int, pr Printer) (*Plan, error) {
	c := newCompiler(&ir.Module{Name: x.Name}, x.target, pr)
	c.plan.Entries = []Entry{{Name: "run"}}
	ec := &entryCompiler{
		compiler: c, partition: x.partition, entry: &c.plan.Entries[0],
		regions: map[*fusion.Tensor]region{},
	}
	caps := x.caps
	caps.Drafts = false // drafts are not measured
	launches, err := sched.Emit(x.group, s, caps)
	if err != nil {
		return nil, err
	}
	loops := append(x.loops[:len(x.loops):len(x.loops)], &enclosingLoop{count: times})
	for _, l := range launches {
		ec.launches = append(ec.launches, placedLaunch{Launch: l, loops: loops})
	}
	if err := ec.placeTrial(); err != nil {
		return nil, err
	}
	if err := ec.addSteps(); err != nil {
		return nil, err
	}
	ec.entry.UniformBytes = WordBytes * len(x.partition.Scalars)
	c.status()
	c.link()
	c.plan.Requires.Limits = c.plan.requiredLimits()
	return c.plan, Validate(c.plan)
}

// placeTrial places the tensors of the launches: ports and constants of the module as
// states, the others as temporary memory.
func (c *entryCompiler) placeTrial() error {
	for _, l := range c.launches {
		for _, t := range l.Args {
			if _, placed := c.regions[t]; placed || t == nil || t.Port == nil && t.Constant == nil {
				continue
			}
			r, err := c.states.place(t)
			if err != nil {
				return err
			}
			c.regions[t] = r
		}
	}
	return memoryPhase{c}.placeTemps(nil)
}
