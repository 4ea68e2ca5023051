package plan_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

func TestEachYieldsStepsBeforeThoseInThem(t *testing.T) {
	a, b, c, d := &plan.Copy{Src: 1}, &plan.Copy{Src: 2}, &plan.Copy{Src: 3}, &plan.Copy{Src: 4}
	while := &plan.While{Steps: []plan.Step{c}}
	repeat := &plan.Repeat{Count: 2, Steps: []plan.Step{b}, Odd: []plan.Step{while}}
	steps := []plan.Step{a, repeat, d}
	all := []plan.Step{a, repeat, b, while, c, d}
	if got := slices.Collect(plan.Each(steps)); !slices.Equal(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
	for n := range all { // a loop that ends early
		var got []plan.Step
		for s := range plan.Each(steps) {
			if got = append(got, s); len(got) == n+1 {
				break
			}
		}
		if !slices.Equal(got, all[:n+1]) {
			t.Errorf("the first %d are %v", n+1, got)
		}
	}
	if !plan.HasWhile(steps) || plan.HasWhile(steps[:1]) {
		t.Error("loops of unknown trip count are not found")
	}
}
