package tune_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// device means that plans take as long as their kernels have workgroups, and that it
// cannot run any whose name has bad in it.
type device struct {
	plans int
	bad   string
}

var errBad = errors.New("bad kernel")

func (d *device) Time(_ context.Context, p *plan.Plan) (time.Duration, error) {
	d.plans++
	took := time.Duration(0)
	for _, step := range p.Entries[0].Steps {
		r := step.(*plan.Repeat)
		for _, s := range r.Steps {
			dispatch := s.(*plan.Dispatch)
			if d.bad != "" && strings.Contains(p.Kernels[dispatch.Kernel].Name, d.bad) {
				return 0, errBad
			}
			took += time.Duration(r.Count*dispatch.Groups[0]) * time.Microsecond
		}
	}
	return took, nil
}

// sums is a module with rows that may be cut over workgroups, and a product.
func sums(t *testing.T) *ir.Module {
	t.Helper()
	g, err := ir.Build("sums", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(2, 9000)...), b.Input("w", ir.F32, ir.Dims(60, 70)...)
		b.Output("sum", ops.ReduceSum(b, x, 1))
		b.Output("product", ops.MatMul(b, w, ops.Transpose(b, w, 1, 0)))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("sums", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func module(t *testing.T, d *device, s *tune.Store) []tune.Result {
	t.Helper()
	r, err := tune.Module(context.Background(), sums(t), plan.WebGPU(), plansim.Text, d, s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFastestScheduleIsChosenAndCached(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(tune.Variable, dir)
	d, s := &device{}, tune.Open("a  device")
	found := module(t, d, s)
	if len(found) != 2 || d.plans < 8 {
		t.Fatalf("%d groups, %d plans", len(found), d.plans)
	}
	for _, r := range found {
		if r.Tuned > r.Untuned || r.Tuned <= 0 || r.Name == "" {
			t.Errorf("%s: untuned %v, tuned %v by %s", r.Name, r.Untuned, r.Tuned, r.Schedule)
		}
	}
	// Two rows of 9,000 are cut by rule; the fewest workgroups have them whole.
	if s := found[0].Schedule; s.Family != emit.Rows || s.Split != 1 {
		t.Errorf("sums by %s, not by whole rows", s)
	}
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	again := &device{}
	back := module(t, again, tune.Open("a device"))
	if again.plans != 0 {
		t.Errorf("%d plans measured again", again.plans)
	}
	for i := range back {
		if back[i] != found[i] {
			t.Errorf("kept %v, not %v", back[i], found[i])
		}
	}
	if d := (&device{}); len(module(t, d, tune.Open("another device"))) != 2 || d.plans == 0 {
		t.Error("another device took what was found on this one")
	}
	target := plan.WebGPU()
	target.Schedules = tune.Schedules(found)
	p, err := plan.Compile(sums(t), target, plansim.Text)
	if err != nil {
		t.Fatal(err)
	}
	if _, whole := p.Entries[0].Steps[0].(*plan.Dispatch); !whole || p.Kernels[0].Name != "reduce_reduce_sum" {
		t.Errorf("kernel %s, not that of whole rows", p.Kernels[0].Name)
	}
}

func TestUnsupportedSchedulesAreSkipped(t *testing.T) {
	t.Setenv(tune.Variable, "off")
	s := tune.Open("a device")
	for _, r := range module(t, &device{bad: "_parts"}, s) {
		if r.Schedule.Split > 1 || r.Tuned <= 0 {
			t.Errorf("%s: %s in %v", r.Name, r.Schedule, r.Tuned)
		}
	}
	if err := s.Save(); err != nil {
		t.Error(err)
	}
}

func TestDamagedEntryIsMeasuredAgain(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(tune.Variable, dir)
	s := tune.Open("a device")
	module(t, &device{}, s)
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, error %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for name, c := range map[string]struct {
		text     string
		problems int
		anew     bool
	}{
		"whole":            {string(whole), 0, false},
		"cut":              {string(whole[:len(whole)-9]), 1, true},
		"another form":     {"rlx-tune 2\n" + lines[1], 1, true},
		"a schedule of no": {lines[0] + strings.Replace(lines[1], "=", "=-", 1) + lines[2], 1, true},
		"no key":           {lines[0] + "x" + lines[1] + lines[2], 1, true},
		"empty":            {"", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(files[0], []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			s, d := tune.Open("a device"), &device{}
			if len(s.Problems) != c.problems {
				t.Errorf("problems %v, want %d", s.Problems, c.problems)
			}
			if module(t, d, s); (d.plans > 0) != c.anew {
				t.Errorf("%d plans measured", d.plans)
			}
		})
	}
}

// A schedule that does not fit, as of another version, is not taken.
func TestTunedSchedulesThatDoNotFit(t *testing.T) {
	choices, err := plan.Choices(sums(t), plan.WebGPU())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := plan.Compile(sums(t), plan.WebGPU(), plansim.Text)
	if err != nil {
		t.Fatal(err)
	}
	target := plan.WebGPU()
	target.Schedules = sched.Tuned{}
	for _, c := range choices {
		target.Schedules[c.Key] = emit.Schedule{Family: emit.WarpGroups, N: 256, Stages: 4, Split: 1}
	}
	p, err := plan.Compile(sums(t), target, plansim.Text)
	if err != nil {
		t.Fatal(err)
	}
	if p.Kernels[0].Source != plain.Kernels[0].Source {
		t.Error("the kernels are others")
	}
}

// Keys differ where targets do.
func TestKeysDistinguishTargets(t *testing.T) {
	seen := map[sched.Key]string{}
	for name, change := range map[string]func(c *loop.Caps){
		"none": func(*loop.Caps) {}, "f16": func(c *loop.Caps) { c.F16 = true }, "shared": func(c *loop.Caps) { c.SharedBytes *= 2 },
		"threads": func(c *loop.Caps) { c.Invocations = 128 }, "processors": func(c *loop.Caps) { c.Multiprocessors = 40 },
		"bindings": func(c *loop.Caps) { c.StorageBuffers = 10 },
	} {
		target := plan.WebGPU()
		change(&target.Caps)
		choices, err := plan.Choices(sums(t), target)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[choices[0].Key]; ok {
			t.Errorf("%s and %s have one key", name, other)
		}
		seen[choices[0].Key] = name
	}
}
