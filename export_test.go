package rlx

import (
	"io"

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
