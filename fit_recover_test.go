package rlx_test

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// fitPoints trains for 30 steps with reports, metrics and evaluations, and returns the last report and
// the last one of each step.
func fitPoints(t *testing.T, tr *rlx.Trainer, recovery *rlx.Recovery) (map[int]rlx.Report, error) {
	t.Helper()
	reports := map[int]rlx.Report{}
	_, err := rlx.Fit(ctx, tr, rlx.Loop{
		Data: rlx.Shuffled(points(), 4, 7), Steps: 30, Every: 4, Eval: evaluation(), Stop: rlx.EarlyStop{Patience: 20}, Recover: recovery,
		Callbacks: []func(r rlx.Report) error{func(r rlx.Report) error {
			r.Rate, r.Throughput = 0, 0
			reports[r.Step] = r
			return tr.SetRate(0.02 / float64(1+r.Step)) // comes again, too
		}},
	})
	return reports, err
}

// TestFitGoesOnAfterALostDevice loses the device twice: parameters, losses and reports are those of a
// training without a loss, to the bit.
func TestFitGoesOnAfterALostDevice(t *testing.T) {
	whole := pointsTrainer(t, 0.02)
	wantReports, err := fitPoints(t, whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := must(whole.Program().Save(ctx))(t)
	for name, c := range map[string]struct {
		gone   error
		policy rlx.Policy
		runs   []int
		steps  []int // from which training goes on
		device string
	}{
		"again": {nil, rlx.Policy{}, []int{8, 13}, []int{6, 18}, "fragile-again"},
		"gone":  {native.ErrUnavailable, rlx.Policy{Only: []string{"fragile-gone", "cpu"}}, []int{7}, []int{6}, "cpu"},
	} {
		tr := pointsTrainerOn(t, openFragile(t, "fragile-"+name, c.gone, c.runs...), 0.02)
		var events []rlx.Recovered
		got, err := fitPoints(t, tr, &rlx.Recovery{Policy: c.policy, Every: 3, Recovered: func(r rlx.Recovered) error {
			events = append(events, r)
			return nil
		}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(events) != len(c.steps) {
			t.Errorf("%s: goes on %d times, want %d", name, len(events), len(c.steps))
			continue
		}
		for i, r := range events {
			if r.Step != c.steps[i] || r.Lost < 1 || r.Lost > 3 || r.Device.Name != c.device || !errors.Is(r.Err, native.ErrLost) {
				t.Errorf("%s: goes on with %+v, want step %d on %s", name, r, c.steps[i], c.device)
			}
		}
		if got := must(tr.Program().Save(ctx))(t); !maps.EqualFunc(got, want, func(a, b rlx.Tensor) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%s: the parameters and states differ from those without a loss", name)
		}
		if !reflect.DeepEqual(got, wantReports) || !reflect.DeepEqual(losses(t, tr), losses(t, whole)) {
			t.Errorf("%s: reports %v, want %v", name, got, wantReports)
		}
		if err := tr.Program().Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// TestRecoveryEnds covers trainings that do not go on.
func TestRecoveryEnds(t *testing.T) {
	often := pointsTrainerOn(t, openFragile(t, "fragile-often", nil, 4, 4, 4, 4), 0.02)
	if _, err := fitPoints(t, often, &rlx.Recovery{Every: 2}); !errors.Is(err, native.ErrLost) || !strings.Contains(err.Error(), "3 devices were lost within a minute") {
		t.Errorf("three losses: %v", err)
	}
	never := pointsTrainerOn(t, openFragile(t, "fragile-never", native.ErrUnavailable, 4), 0.02)
	if _, err := fitPoints(t, never, &rlx.Recovery{Every: 2, Policy: rlx.Policy{Only: []string{"fragile-never"}}}); !errors.Is(err, native.ErrLost) || !errors.Is(err, native.ErrUnavailable) {
		t.Errorf("no device: %v", err)
	}
	stop := errors.New("stop")
	heard := pointsTrainerOn(t, openFragile(t, "fragile-heard", nil, 4), 0.02)
	if _, err := fitPoints(t, heard, &rlx.Recovery{Recovered: func(rlx.Recovered) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("an error of the callback: %v", err)
	}
	tr := pointsTrainer(t, 0.02)
	if _, err := fitPoints(t, tr, &rlx.Recovery{Every: -1}); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("Every -1: %v", err)
	}
	other := must(rlx.NewTrainer(ctx, tr.Program(), "loss"))(t)
	if _, err := fitPoints(t, other, &rlx.Recovery{}); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("a trainer of NewTrainer: %v", err)
	}
	joint := must(session(t).TrainJointly(ctx, rlx.JointTraining{Objectives: []rlx.Objective{{Name: "one", Loss: classifier(t), Optimizer: optim.SGD{}}}}))(t)
	if _, err := rlx.Fit(ctx, joint.Trainer("one"), rlx.Loop{Data: rlx.Shuffled(examples(), 8, 1), Steps: 1, Recover: &rlx.Recovery{}}); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("a trainer of several objectives: %v", err)
	}
}
