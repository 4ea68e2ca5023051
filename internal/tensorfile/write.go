package tensorfile

import (
	"io"

	"github.com/rlx-go/rlx/ir"
)

// writer counts the bytes that it writes.
type writer struct {
	to io.Writer
	n  int64
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.n += int64(n)
	return n, err
}

// Write calls f to write the named tensor to to. The error is that of f, or of kind [ir.ErrShape] if f
// did not write size bytes.
func Write(to io.Writer, name string, size int64, f func(io.Writer) error) error {
	w := &writer{to: to}
	if err := f(w); err != nil {
		return err
	}
	if w.n != size {
		return ir.Shapef("tensor %q has written %d bytes; its type has %d", name, w.n, size)
	}
	return nil
}
