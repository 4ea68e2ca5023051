package optim

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// state returns the name of a state of the optimizer: "optim/step", or "optim/gen:step" for an
// optimizer named "gen".
func (o Options) state(own string) string {
	if o.Name == "" {
		return StatePrefix + own
	}
	return StatePrefix + o.Name + ":" + own
}

// StepState returns the name of the state that counts the steps, a rank-0 i32. It is [StepState]
// for an optimizer without a name.
func (o Options) StepState() string { return o.state("step") }

// SlotState returns the name of a slot of a parameter: "optim/gen:m/w" for slot "m" of parameter
// "w" and an optimizer named "gen".
func (o Options) SlotState(slot, param string) string { return o.state(slot + "/" + param) }

func (o Options) checkName() error {
	if strings.ContainsAny(o.Name, "/:") {
		return ir.Errorf(ir.ErrName, "Name is %q; it must not contain '/' or ':'", o.Name)
	}
	return nil
}

// IsStepState reports whether name is a step count of an optimizer, with or without a name.
func IsStepState(name string) bool {
	own, is := strings.CutPrefix(name, StatePrefix)
	if owner, rest, named := strings.Cut(own, ":"); named && !strings.Contains(owner, "/") {
		own = rest
	}
	return is && own == "step"
}

// Check returns an error of kind [ir.ErrName] if two entries of a module share a step count but
// update different parameters: two optimizers would then count each other's steps. [Options.Name]
// keeps them apart. Entries that update the same parameters, such as one step for several batch
// sizes, may share their states.
func Check(m *ir.Module) error {
	if m == nil {
		return nil
	}
	first := map[string]ir.Entry{} // by step count
	for _, e := range m.Entries {
		for _, counter := range stepCounters(e.Graph) {
			other, taken := first[counter]
			if !taken {
				first[counter] = e
				continue
			}
			if here, there := updatedStates(e.Graph), updatedStates(other.Graph); !slices.Equal(here, there) {
				return ir.Errorf(ir.ErrName,
					"entries %q and %q of module %q both count their steps in state %q, but update %v and %v: give one optimizer a name (optim.Options.Name)",
					other.Name, e.Name, m.Name, counter, there, here)
			}
		}
	}
	return nil
}

// stepCounters returns the states in which a graph counts steps. It ignores states that the graph sets
// without reading them, as an initial entry does.
func stepCounters(g *ir.Graph) (names []string) {
	for _, p := range g.Ports() {
		if p.Kind == ir.StatePort && IsStepState(p.Name) && isRead(g, p.Value) {
			names = append(names, p.Name)
		}
	}
	return names
}

func isRead(g *ir.Graph, v ir.Value) bool {
	return slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return slices.Contains(n.Inputs(), v) })
}

// updatedStates returns the states that a graph changes, sorted, except those of optimizers and of
// [History].
func updatedStates(g *ir.Graph) (names []string) {
	for _, o := range g.Outputs() {
		if !o.State || strings.HasPrefix(o.Name, StatePrefix) || strings.HasPrefix(o.Name, historyPrefix) {
			continue
		}
		if p, ok := g.Port(o.Name); ok && p.Value != o.Value {
			names = append(names, o.Name)
		}
	}
	slices.Sort(names)
	return names
}
