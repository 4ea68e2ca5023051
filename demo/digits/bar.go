package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rlx-go/rlx"
)

// bar is a progress bar: one line that is written over on a terminal, and a
// line for every tenth of the way elsewhere.
type bar struct {
	out      io.Writer
	terminal bool
	next     int // the tenth that has the next line
}

func newBar(out io.Writer) bar {
	b := bar{out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		b.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return b
}

func (b *bar) show(p rlx.Progress, accuracy float64) {
	const width = 30
	done := p.Step * width / p.Steps
	line := fmt.Sprintf("[%s%s] step %d/%d  loss %.4f  test accuracy %.1f %%  %.0f steps/s",
		strings.Repeat("=", done), strings.Repeat(" ", width-done), p.Step, p.Steps, p.Loss, accuracy, p.Rate)
	if b.terminal {
		fmt.Fprintf(b.out, "\r%s\x1b[K", line)
		return
	}
	if tenth := p.Step * 10 / p.Steps; tenth >= b.next {
		b.next = tenth + 1
		fmt.Fprintln(b.out, line)
	}
}

// end leaves the line of the bar.
func (b *bar) end() {
	if b.terminal {
		fmt.Fprintln(b.out)
	}
}
