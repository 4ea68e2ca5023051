package schedtest

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
)

// Choices returns the groups of a graph that have several candidates.
func Choices(t *testing.T, g *ir.Graph, target plan.Target) []*plan.Choice {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	choices, err := plan.Choices(m, target)
	if err != nil {
		t.Fatal(err)
	}
	return choices
}

// Forced returns the target with the schedules that pick returns for the groups of a graph that
// have a choice, except those for which it returns false.
func Forced(t *testing.T, g *ir.Graph, target plan.Target, pick func(c *plan.Choice) (emit.Schedule, bool)) plan.Target {
	t.Helper()
	choices := Choices(t, g, target)
	target.Schedules = sched.Tuned{}
	for _, c := range choices {
		if s, ok := pick(c); ok {
			target.Schedules[c.Key] = s
		}
	}
	return target
}

// ContractionsBy schedules every contraction by one schedule.
func ContractionsBy(t *testing.T, g *ir.Graph, target plan.Target, s emit.Schedule) plan.Target {
	t.Helper()
	return Forced(t, g, target, func(c *plan.Choice) (emit.Schedule, bool) { return s, IsContraction(c) })
}

// AsReductions lowers every contraction as a reduction.
func AsReductions(t *testing.T, g *ir.Graph, target plan.Target) plan.Target {
	t.Helper()
	return Forced(t, g, target, func(c *plan.Choice) (emit.Schedule, bool) {
		for _, r := range c.Candidates {
			if IsContraction(c) && (r.Family == emit.Rows || r.Family == emit.Columns) {
				return r.Schedule, true
			}
		}
		return emit.Schedule{}, false
	})
}

// IsContraction reports whether tiles are among the candidates of a group.
func IsContraction(c *plan.Choice) bool {
	return slices.ContainsFunc(c.Candidates, func(r emit.Ranked) bool { return r.Family == emit.Tiles })
}
