package driver

import (
	"fmt"
	"strings"
)

// Kind says what a failure means.
type Kind int

// The kinds of [Error], in the order of binding.h.
const (
	// Unavailable: there is no device, or it is too old.
	Unavailable Kind = 1 + iota
	// OutOfMemory: the device has no room.
	OutOfMemory
	// BadSource: the compiler refuses a kernel.
	BadSource
	// Lost: the device is gone.
	Lost
	// Failed: anything else.
	Failed
)

var kindNames = map[Kind]string{
	Unavailable: "unavailable", OutOfMemory: "out of memory", BadSource: "refused by the compiler", Lost: "the device is gone", Failed: "failed",
}

// String returns the kind in words.
func (k Kind) String() string { return kindNames[k] }

// Error is a failure that Metal reports.
type Error struct {
	Call   string // what was asked for: "load", "open", "heap", "compile", "pipeline", "archive", "run"
	Kind   Kind
	Kernel string // which one it was about, "" where none
	Code   int    // Metal's own, 0 where there is none
	Text   string // Metal's words, which may be several lines
}

// Error returns "metal: pipeline: kernel softmax: refused by the compiler (3): words", or what
// is missing where there is no device.
func (e *Error) Error() string {
	if e.Kind == Unavailable {
		return e.Text
	}
	var sb strings.Builder
	sb.WriteString("metal: " + e.Call)
	if e.Kernel != "" {
		sb.WriteString(": kernel " + e.Kernel)
	}
	sb.WriteString(": " + e.Kind.String())
	if e.Code != 0 {
		fmt.Fprintf(&sb, " (%d)", e.Code)
	}
	if e.Text != "" {
		sb.WriteString(": " + strings.TrimSpace(e.Text))
	}
	return sb.String()
}
