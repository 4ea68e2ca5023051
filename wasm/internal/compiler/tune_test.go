package compiler

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/wasm/internal/wire"
	. "github.com/rlx-go/rlx/wasm/internal/wiretest"
)

// sums is a job of one group: two rows that may be cut over workgroups or not.
const sums = `graph "sums" {
  %0 = input "x" : f32[2,9000]
  %1 = reduce_sum(%0) {axes=[1]} : f32[2]
  output "sums" = %1
}
`

// ways are the schedules of a group that the host receives.
type ways struct {
	key, name string
	schedules []string
}

// choicesOf requests the groups of the job and returns its tuning, with its own arguments.
func choicesOf(t *testing.T, s *wire.Service, text string, target int) (tuning int, groups []ways) {
	t.Helper()
	g := Must(t, s, "parse", text).U32()
	r := Must(t, s, "choices", "sums", Entries(1, "main", g), List{}, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, "", Of(target))
	tuning = r.U32()
	r.List(func() { groups = append(groups, ways{r.Text(), r.Text(), r.Texts()}) })
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return tuning, groups
}

func planOf(t *testing.T, r *wire.Request) *plan.Plan {
	t.Helper()
	p, err := plan.Decode(r.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGroupsAreMeasuredAndFastestScheduleUsed(t *testing.T) {
	s := New()
	tuning, groups := choicesOf(t, s, sums, 0)
	if len(groups) != 1 {
		t.Fatalf("%d groups", len(groups))
	}
	g := groups[0]
	if _, err := sched.ParseKey(g.key); err != nil || !strings.Contains(g.name, "reduce_sum") {
		t.Errorf("group %q with key %q", g.name, g.key)
	}
	for i, text := range g.schedules {
		schedule, err := emit.ParseSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		trial := planOf(t, Must(t, s, "trial", tuning, 0, i))
		if trial.Entries[0].Name != "run" || trial.Entries[0].Dispatches() == 0 {
			t.Errorf("%s: a trial of %d dispatches", text, trial.Entries[0].Dispatches())
		}
		made := planOf(t, Must(t, s, "tuned", tuning, Of(i)))
		if got, want := len(made.Kernels), min(schedule.Split, 2); got != want {
			t.Errorf("%s: %d kernels, not %d", text, got, want)
		}
	}
	if len(g.schedules) < 3 || !slices.Contains(g.schedules, "rows lanes=256 rows=1 split=1") {
		t.Errorf("schedules %q", g.schedules)
	}
	if Must(t, s, "free", tuning); s.Objects() != 1 {
		t.Errorf("%d objects, not the graph alone", s.Objects())
	}
}

func TestWebAssemblyHasNothingToTune(t *testing.T) {
	if _, groups := choicesOf(t, New(), sums, 1); len(groups) != 0 {
		t.Errorf("groups %v", groups)
	}
}

func TestInvalidSchedulesAreRefused(t *testing.T) {
	s := New()
	tuning, _ := choicesOf(t, s, sums, 0)
	for _, c := range []struct {
		method string
		args   []any
		kind   string
	}{
		{"trial", []any{tuning, 1, 0}, "index"},
		{"trial", []any{tuning, 0, 99}, "index"},
		{"trial", []any{tuning + 1, 0, 0}, "name"},
		{"trial", []any{tuning}, "syntax"},
		{"tuned", []any{tuning, Of(99)}, "index"},
		{"tuned", []any{tuning, Of(0, 0)}, "shape"},
		{"tuned", []any{tuning, List{}}, "shape"},
	} {
		if _, err := Call(s, c.method, c.args...); err == nil || err.Kind != c.kind {
			t.Errorf("%s %v: %+v, not an error of kind %s", c.method, c.args, err, c.kind)
		}
	}
}
