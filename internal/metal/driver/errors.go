package driver

import (
	"fmt"
	"strings"
)

// Kind classifies an [Error].
type Kind int

// The kinds of [Error], in the order of binding.h.
const (
	// Unavailable means that there is no device or it is too old.
	Unavailable Kind = 1 + iota
	// OutOfMemory means that the device has too little memory.
	OutOfMemory
	// BadSource means that the compiler refuses a kernel.
	BadSource
	// Lost means that the device is gone.
	Lost
	// Failed is any other failure.
	Failed
)

var kindNames = map[Kind]string{
	Unavailable: "unavailable", OutOfMemory: "out of memory", BadSource: "refused by the compiler", Lost: "the device is gone", Failed: "failed",
}

// String returns the kind in words.
func (k Kind) String() string { return kindNames[k] }

// Error is a failure reported by Metal.
type Error struct {
	Call   string // "load", "open", "heap", "compile", "pipeline", "archive", "run"
	Kind   Kind
	Kernel string // the kernel concerned, or ""
	Code   int    // Metal's error code, or 0
	Text   string // Metal's description, which may have several lines
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
