// Package cli has the code shared by the demos' commands.
package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rlx-go/rlx"
)

// Open opens a device and prints its name. "auto" is the fastest device; it then also prints why
// others are not used.
func Open(out io.Writer, name string) (*rlx.Session, error) {
	if name == "auto" {
		name = ""
	}
	session, err := rlx.Open(name)
	if err != nil {
		return nil, err
	}
	if name == "" {
		for _, d := range rlx.Devices() {
			if d.Err != nil {
				fmt.Fprintf(out, "%s is not there: %v\n", d.Name, d.Err)
			}
		}
	}
	d := session.Device()
	fmt.Fprintf(out, "device %s: %s\n", d.Name, d.Description)
	return session, nil
}

// Bar is a progress bar: one line, rewritten on a terminal, and elsewhere one line for each tenth.
type Bar struct {
	out      io.Writer
	terminal bool
	next     int  // the tenth of the next line
	shown    bool // on a terminal, and not yet cleared
}

// NewBar returns a bar on out.
func NewBar(out io.Writer) *Bar {
	b := &Bar{out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		b.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return b
}

// Show shows the progress of a training, with an additional text.
func (b *Bar) Show(p rlx.Progress, more string) {
	const width = 30
	done := p.Step * width / p.Steps
	line := fmt.Sprintf("[%s%s] step %d/%d  loss %.4f  %s",
		strings.Repeat("=", done), strings.Repeat(" ", width-done), p.Step, p.Steps, p.Loss, more)
	if b.terminal {
		b.shown = true
		fmt.Fprintf(b.out, "\r%s\x1b[K", line)
		return
	}
	if tenth := p.Step * 10 / p.Steps; tenth >= b.next {
		b.next = tenth + 1
		fmt.Fprintln(b.out, line)
	}
}

// Leave moves to the line after the bar.
func (b *Bar) Leave() {
	if b.shown {
		b.shown = false
		fmt.Fprintln(b.out)
	}
}
