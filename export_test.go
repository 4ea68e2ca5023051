package rlx

import (
	"context"
	"io"
	"time"

	"github.com/rlx-go/rlx/native/safetensors"
)

// ReadCheckpoint is [Trainer.Load] without the device.
func ReadCheckpoint(t *Trainer, r io.Reader) error {
	values, _, err := safetensors.Read(r)
	if err != nil {
		return err
	}
	return t.program.checkCheckpoint(values)
}

// CalibrateFor is [Calibrate] with a time for each measurement.
func CalibrateFor(ctx context.Context, device string, whole time.Duration) (Rates, error) {
	return calibrate(ctx, device, whole)
}

// HoldSaves makes the files of [Trainer.SaveShards] wait for a channel to be closed, until the returned function is
// called.
func HoldSaves(until <-chan struct{}) (restore func()) {
	before := writeShard
	writeShard = func(name string, values map[string]Tensor, metadata map[string]string) error {
		<-until
		return before(name, values, metadata)
	}
	return func() { writeShard = before }
}

// TerminalLine returns what a terminal gets of a report.
func TerminalLine(r Report) string { return terminalLine(r) }
