// Package cli has the parts that the demos on the command line share.
package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rlx-go/rlx"
)

// Open opens a device and prints its name; with "auto" the fastest, and then also
// why others are not used.
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

// Bar is a progress bar: one line that is written over on a terminal, and a
// line for every tenth of the way elsewhere.
type Bar struct {
	out      io.Writer
	terminal bool
	next     int  // the tenth that has the next line
	shown    bool // on a terminal, and still to be cleared
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

// Leave goes to the line after the bar.
func (b *Bar) Leave() {
	if b.shown {
		b.shown = false
		fmt.Fprintln(b.out)
	}
}
