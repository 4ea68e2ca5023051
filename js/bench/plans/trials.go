package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/irtest/families"
)

const (
	// trialRounds is the number of repetitions in a trial's run, to hide the cost of submission.
	trialRounds = 20
	// minTrial is the minimum estimate, in nanoseconds, of a group that is tried: below,
	// launching takes most of the time, for any kernel.
	minTrial = 15e3
	// minShare is the minimum share of a family's step that a group is predicted to take, and maxTrials
	// the number of candidates, the cheapest, that are tried of it.
	minShare  = 0.01
	maxTrials = 12
)

// trial is a candidate of a group of a job, in the form that js/bench/h200/tune.mjs reads.
type trial struct {
	Job      string  `json:"job"`
	Group    string  `json:"group"` // its key
	Name     string  `json:"name"`
	Number   int     `json:"number"` // among the job's groups of that name, from 1
	Schedule string  `json:"schedule"`
	Cost     float64 `json:"cost"` // the estimate, in milliseconds
	Rounds   int     `json:"rounds"`
	File     string  `json:"file"`
}

// writeTrials writes a plan for each candidate of each tried group, and the list of them.
func writeTrials(folder string) error {
	return writeTried(folder, func(t *trials) error {
		return eachTried(func(j job, c *plan.Choice, number int) error { return t.addAll(j, c, number, c.Candidates) })
	})
}

// writeFamilyTrials writes a plan for the cheapest candidates of the groups that take most of the families' steps.
func writeFamilyTrials(folder string) error {
	return writeTried(folder, func(t *trials) error {
		known := knownGroups{}
		for _, f := range families.Every() {
			j := job{name: strings.ReplaceAll(f.Name, " ", "_"), bytes: familyBytes}
			choices, total, err := familyChoices(j, f)
			if err != nil {
				return fmt.Errorf("%s: %w", j.name, err)
			}
			err = known.each(choices, minShare*total, func(c *plan.Choice, number int) error { return t.addAll(j, c, number, cheapest(c.Candidates)) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// familyChoices returns the different groups of a family's step with several candidates, and the sum of their estimates.
func familyChoices(j job, f families.Family) (choices []*plan.Choice, total float64, err error) {
	m, err := resident(f)
	if err != nil {
		return nil, 0, err
	}
	m.Entries = m.Entries[1:] // not "fill"
	choices, err = plan.Choices(m, j.target())
	for _, c := range choices {
		total += c.Candidates[0].Cost
	}
	return choices, total, err
}

// cheapest returns the first candidate, the default, and the cheapest of the others.
func cheapest(list []emit.Ranked) []emit.Ranked {
	others := slices.SortedFunc(slices.Values(list[1:]), func(a, b emit.Ranked) int { return cmp.Compare(a.Cost, b.Cost) })
	return append(list[:1:1], others[:min(len(others), maxTrials-1)]...)
}

// writeTried writes the plans that add adds to a list, and the list.
func writeTried(folder string, add func(*trials) error) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	t := &trials{folder: folder}
	if err := add(t); err != nil {
		return err
	}
	text, err := json.Marshal(t.list)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "trials.json"), text, 0o644)
}

// eachTried calls f for each larger group of the jobs that are timed on a GPU, equal ones once,
// with its index among those of its name in the job, from 1.
func eachTried(f func(j job, c *plan.Choice, number int) error) error {
	memory, err := irtest.MemoryJobs(memoryBytes)
	if err != nil {
		return err
	}
	known := knownGroups{}
	for _, j := range append(jobs(), memoryJobs(memory)...) {
		if strings.HasPrefix(j.name, "attention") || strings.HasPrefix(j.name, "cnn") {
			continue // not among the jobs for a GPU
		}
		m, err := j.make()
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		choices, err := plan.Choices(m, j.target())
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		if err := known.each(choices, minTrial, func(c *plan.Choice, number int) error { return f(j, c, number) }); err != nil {
			return err
		}
	}
	return nil
}

// knownGroups are the groups that were tried.
type knownGroups map[sched.Key]bool

// each calls f for each group of a job that is new and whose estimate is at least from, in nanoseconds, with its index
// among those of its name in the job, from 1.
func (k knownGroups) each(choices []*plan.Choice, from float64, f func(c *plan.Choice, number int) error) error {
	numbers := map[string]int{}
	for _, c := range choices {
		if k[c.Key] || c.Candidates[0].Cost < from {
			continue
		}
		k[c.Key] = true
		numbers[c.Name]++
		if err := f(c, numbers[c.Name]); err != nil {
			return err
		}
	}
	return nil
}

type trials struct {
	folder string
	list   []trial
}

func (t *trials) addAll(j job, c *plan.Choice, number int, list []emit.Ranked) error {
	for _, s := range list {
		if err := t.add(j, c, number, s); err != nil {
			return err
		}
	}
	return nil
}

func (t *trials) add(j job, c *plan.Choice, number int, s emit.Ranked) error {
	p, err := c.Trial(s.Schedule, trialRounds, wgsl.Printer{})
	if err != nil {
		return fmt.Errorf("%s by %s: %w", c.Name, s, err)
	}
	file := fmt.Sprintf("trial-%d.rlxp", len(t.list))
	t.list = append(t.list, trial{j.name, c.Key.String(), c.Name, number, s.String(), s.Cost / 1e6, trialRounds, file})
	return writePlan(filepath.Join(t.folder, file), p)
}
