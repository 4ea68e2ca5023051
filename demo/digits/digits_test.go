package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/demo/cli/clitest"
	"github.com/rlx-go/rlx/demo/data"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/native/backendtest"
)

// TestMain has Mesa's software GPU compile shaders quickly, unless the environment says otherwise: in few steps
// LLVM's optimisation and its code for wide vectors take longer than they save. The driver reads the variables when it
// is loaded.
func TestMain(m *testing.M) {
	backendtest.SetUnset(map[string]string{"GALLIVM_PERF": "nopt", "LP_NATIVE_VECTOR_WIDTH": "128"})
	os.Exit(m.Run())
}

// train runs the command and returns its output and the accuracy on its last
// line.
func train(t *testing.T, ctx context.Context, o options) (string, float64) {
	t.Helper()
	var out bytes.Buffer
	if err := run(ctx, &out, o); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	m := regexp.MustCompile(`^test accuracy (\d+\.\d\d) %$`).FindStringSubmatch(lines[len(lines)-1])
	if m == nil {
		t.Fatalf("the last line is %q", lines[len(lines)-1])
	}
	accuracy, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), accuracy
}

func TestTheMLPReachesItsAccuracy(t *testing.T) {
	out, accuracy := train(t, context.Background(), options{model: "mlp", device: "cpu", steps: defaultSteps["mlp"], seed: 1, rate: rlx.DefaultRate})
	if accuracy < 94 {
		t.Errorf("%.2f %%:\n%s", accuracy, out)
	}
}

func TestWeightsAreSavedAndLoaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cnn.safetensors")
	o := options{model: "cnn", device: "cpu", steps: 3, seed: 1, rate: rlx.DefaultRate, save: file}
	_, saved := train(t, context.Background(), o)
	o.steps, o.seed, o.save, o.load = 0, 2, "", file
	if _, loaded := train(t, context.Background(), o); loaded != saved {
		t.Errorf("%.2f %% after loading, %.2f %% before", loaded, saved)
	}
}

func TestInterruptionStopsMeasuresAndSaves(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	file := filepath.Join(t.TempDir(), "mlp.safetensors")
	out := &clitest.Interrupting{At: "steps/s", Stop: stop}
	o := options{model: "mlp", device: "cpu", steps: 1_000_000, rate: rlx.DefaultRate, save: file}
	if err := run(ctx, out, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"stopped after ", "saved " + file, "test accuracy "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the output:\n%s", want, out)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestInvalidFlagsAreRefusedBeforeTraining(t *testing.T) {
	dir := t.TempDir()
	mlp := filepath.Join(dir, "mlp.safetensors")
	train(t, context.Background(), options{model: "mlp", device: "cpu", steps: 1, rate: rlx.DefaultRate, save: mlp})
	for name, o := range map[string]options{
		"a folder that is not there": {rate: rlx.DefaultRate, save: filepath.Join(dir, "none", "cnn")},
		"weights of another model":   {rate: rlx.DefaultRate, load: mlp},
		"a negative rate":            {rate: -1},
	} {
		var out bytes.Buffer
		o.model, o.device, o.steps = "cnn", "cpu", 1
		if err := run(context.Background(), &out, o); err == nil || strings.Contains(out.String(), "steps/s") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

func TestUnknownModelsAndDevicesAreRefused(t *testing.T) {
	for _, o := range []options{{model: "rnn", device: "cpu"}, {model: "mlp", device: "abacus"}} {
		if err := run(context.Background(), &bytes.Buffer{}, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// curves are the losses of the first steps by the reference implementation of the ops.
type curves struct {
	Seed   uint32
	Rate   float64
	Losses map[string][]float64
}

// The trainer on every device of this machine gives the losses that the page
// gives too.
func TestLossesEqualReferenceOnEveryDevice(t *testing.T) {
	text, err := os.ReadFile("../testdata/curves.json")
	if err != nil {
		t.Fatal(err)
	}
	var want curves
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, d := range rlx.Devices() {
		for name, losses := range want.Losses {
			t.Run(d.Name+" "+name, func(t *testing.T) {
				backendtest.Require(t, d.Name, d.Err)
				steps := len(losses)
				if d.Name != "cpu" {
					steps = 20 // each takes long on a GPU emulated by software
				}
				for k, got := range firstLosses(t, d.Name, name, want, steps) {
					if diff := math.Abs(float64(got) - losses[k]); !(diff <= 1e-4) {
						t.Errorf("step %d: loss %v, reference %v", k, got, losses[k])
					}
				}
			})
		}
	}
}

func firstLosses(t *testing.T, device, model string, c curves, steps int) []float32 {
	t.Helper()
	ctx := context.Background()
	session, err := rlx.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := data.Digits()
	if err != nil {
		t.Fatal(err)
	}
	l := &learner{out: &bytes.Buffer{}, train: train, test: test, steps: steps}
	if err := l.compile(ctx, session, options{model: model, seed: c.Seed, rate: c.Rate}); err != nil {
		t.Fatal(err)
	}
	defer l.program.Close(ctx)
	if err := l.learn(ctx); err != nil {
		t.Fatal(err)
	}
	losses, err := l.trainer.Losses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(losses) != steps || l.trainer.Input(models.Images).Len() != models.Batch*models.Pixels {
		t.Fatalf("%d losses", len(losses))
	}
	return losses
}
