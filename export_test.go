package rlx

import "io"

// ReadCheckpoint is [Trainer.Load] without the device.
func ReadCheckpoint(t *Trainer, r io.Reader) error {
	_, err := t.program.readCheckpoint(r)
	return err
}
