package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir/irtest"
)

const (
	// trialRounds is the number of repetitions in a trial's run, to hide the cost of submission.
	trialRounds = 20
	// minTrial is the minimum estimate, in nanoseconds, of a group that is tried: below,
	// launching takes most of the time, for any kernel.
	minTrial = 15e3
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
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	t := &trials{folder: folder}
	err := eachTried(func(j job, c *plan.Choice, number int) error {
		for _, s := range c.Candidates {
			if err := t.add(j, c, number, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
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
	known := map[sched.Key]bool{}
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
		numbers := map[string]int{}
		for _, c := range choices {
			if known[c.Key] || c.Candidates[0].Cost < minTrial {
				continue
			}
			known[c.Key] = true
			numbers[c.Name]++
			if err := f(j, c, numbers[c.Name]); err != nil {
				return err
			}
		}
	}
	return nil
}

type trials struct {
	folder string
	list   []trial
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
