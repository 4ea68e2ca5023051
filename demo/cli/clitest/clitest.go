// Package clitest has helpers for tests of the demos on the command line.
package clitest

import "bytes"

// Interrupting is an output that presses Ctrl-C, by calling Stop, when something is
// written that holds At.
type Interrupting struct {
	bytes.Buffer
	At   string
	Stop func()
}

// Write keeps p, and never fails.
func (w *Interrupting) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.At)) {
		w.Stop()
	}
	return w.Buffer.Write(p)
}
