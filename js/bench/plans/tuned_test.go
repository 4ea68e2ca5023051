package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

// asNear is which part of the speed of the fastest schedule that was measured the one must
// have that is taken where nobody has measured.
const asNear = 0.85

// TestUntunedIsNearTuned compares the rule's choice with the times that a device took for the
// candidates: testdata/tuned_h200.txt is what js/bench/h200/tune.mjs printed on an NVIDIA
// H200. A rule may take nothing that was not measured. Where other things are fused groups
// are others; once a quarter of them are gone, it is time to measure again.
func TestUntunedIsNearTuned(t *testing.T) {
	measured := readTuned(t)
	found := 0
	err := eachTried(func(j job, c *plan.Choice, number int) error {
		times, ok := measured[fmt.Sprint(j.name, " ", c.Name, " ", number)]
		if !ok {
			return nil
		}
		found++
		first, best := c.Candidates[0].String(), ""
		for s, ms := range times {
			if best == "" || ms < times[best] {
				best = s
			}
		}
		switch ms, ok := times[first]; {
		case !ok:
			t.Errorf("%s, %s: nobody has measured %s", j.name, c.Name, first)
		case times[best] < asNear*ms:
			t.Errorf("%s, %s: %s takes %.4f ms, %s %.4f", j.name, c.Name, first, ms, best, times[best])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 || 4*found < 3*len(measured) {
		t.Errorf("only %d of %d groups that were measured are still there: measure them again", found, len(measured))
	}
}

// readTuned reads the milliseconds of schedules by job, name and number of their group, which
// begin its first line; those of its schedules, with their times before the estimates, are
// indented.
func readTuned(t *testing.T) map[string]map[string]float64 {
	f, err := os.Open("testdata/tuned_h200.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	measured, group := map[string]map[string]float64{}, map[string]float64(nil)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || words[0] == "#":
		case !strings.HasPrefix(lines.Text(), " "):
			group = map[string]float64{}
			measured[strings.Join(words[:3], " ")] = group
		default:
			n := len(words) - 3 // the time, "estimated" and the estimate end the line
			ms, err := strconv.ParseFloat(words[n], 64)
			if err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			group[strings.Join(words[:n], " ")] = ms
		}
	}
	return measured
}
