package main

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/backendtest"
)

// tensorBoardVariable is the environment variable that names a Python with TensorBoard.
const tensorBoardVariable = "RLX_TENSORBOARD"

// readEvents prints the scalars of a folder of event files, as TensorBoard's own reader has them.
const readEvents = `
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    print(tag, *[f"{e.step}:{e.value:g}" for e in events.Scalars(tag)])
`

// TestTensorBoardReadsEvents writes reports as a training does and has TensorBoard read them.
func TestTensorBoardReadsEvents(t *testing.T) {
	python := os.Getenv(tensorBoardVariable)
	var missing error
	if python == "" {
		missing = errors.New("$" + tensorBoardVariable + " names no Python: make test-events does")
	}
	backendtest.Require(t, "tensorboard", missing)
	folder := t.TempDir()
	events, err := rlx.NewEvents(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []rlx.Report{
		{Step: 10, Loss: 2.5, Rate: 100, Throughput: 3200, Metrics: map[string]float64{"accuracy": 0.25}},
		{Step: 300, Loss: math.Inf(1), Rate: 50, Throughput: 1600, Metrics: map[string]float64{"accuracy": 0.75}, Eval: map[string]float64{"loss": 0.125}},
	} {
		if err := events.Report(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := events.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := exec.CommandContext(t.Context(), python, "-c", readEvents, folder).Output()
	if err != nil {
		t.Fatal(err)
	}
	const want = `eval/loss 300:0.125
loss 10:2.5 300:inf
metrics/accuracy 10:0.25 300:0.75
rate 10:100 300:50
throughput 10:3200 300:1600
`
	if string(got) != want {
		t.Errorf("TensorBoard reads\n%snot\n%s", got, want)
	}
}
