package sched_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
)

// forced returns the target with the schedules that pick returns for the groups of a graph that
// have a choice, except those for which it returns false.
func forced(t *testing.T, g *ir.Graph, target plan.Target, pick func(c *plan.Choice) (sched.Schedule, bool)) plan.Target {
	t.Helper()
	choices := choicesOf(t, g, target)
	target.Schedules = sched.Tuned{}
	for _, c := range choices {
		if s, ok := pick(c); ok {
			target.Schedules[c.Key] = s
		}
	}
	return target
}

// contractionsBy schedules every contraction by one schedule.
func contractionsBy(t *testing.T, g *ir.Graph, target plan.Target, s sched.Schedule) plan.Target {
	t.Helper()
	return forced(t, g, target, func(c *plan.Choice) (sched.Schedule, bool) { return s, isContraction(c) })
}

// asReductions lowers every contraction as a reduction.
func asReductions(t *testing.T, g *ir.Graph, target plan.Target) plan.Target {
	t.Helper()
	return forced(t, g, target, func(c *plan.Choice) (sched.Schedule, bool) {
		for _, r := range c.Candidates {
			if isContraction(c) && (r.Family == sched.Rows || r.Family == sched.Columns) {
				return r.Schedule, true
			}
		}
		return sched.Schedule{}, false
	})
}

func isContraction(c *plan.Choice) bool {
	return slices.ContainsFunc(c.Candidates, func(r sched.Ranked) bool { return r.Family == sched.Tiles })
}
