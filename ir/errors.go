package ir

import (
	"errors"
	"strings"

	"github.com/rlx-go/rlx/internal/format"
)

// The kinds of errors. Every error of this module that has one of these kinds matches it with
// [errors.Is].
var (
	// ErrShape: sizes or ranks of operands do not fit the op.
	ErrShape = errors.New("shape mismatch")
	// ErrDType: an element type is not accepted.
	ErrDType = errors.New("dtype mismatch")
	// ErrAttr: an attribute of an op is outside its domain.
	ErrAttr = errors.New("bad attribute")
	// ErrName: a name is unknown, empty or used twice.
	ErrName = errors.New("bad name")
	// ErrIndex: a result, an axis or an element index is out of range.
	ErrIndex = errors.New("index out of range")
	// ErrGraph: the graph is malformed, or a value of another graph was used.
	ErrGraph = errors.New("malformed graph")
	// ErrNoRule: the op has no rule for a transform; the text says why.
	ErrNoRule = errors.New("no rule")
	// ErrUnsupported: the target does not support the operation.
	ErrUnsupported = errors.New("unsupported")
	// ErrSymbol: a symbolic dimension is not bound, or is bound to two sizes.
	ErrSymbol = errors.New("symbol not bound")
	// ErrDef: the definition of an op is incomplete or contradictory.
	ErrDef = errors.New("bad definition")
	// ErrSyntax: the text is not the text form of a graph.
	ErrSyntax = errors.New("syntax error")
)

// Shapef returns an error of kind [ErrShape] with a formatted reason.
func Shapef(text string, args ...any) error { return kindf(ErrShape, text, args) }

// DTypef returns an error of kind [ErrDType] with a formatted reason.
func DTypef(text string, args ...any) error { return kindf(ErrDType, text, args) }

// Attrf returns an error of kind [ErrAttr] with a formatted reason.
func Attrf(text string, args ...any) error { return kindf(ErrAttr, text, args) }

// Errorf returns an error of the given kind with a formatted reason.
func Errorf(kind error, text string, args ...any) error { return kindf(kind, text, args) }

func kindf(kind error, text string, args []any) error {
	return &kindError{kind, format.Sprintf(text, args...)}
}

type kindError struct {
	kind   error
	reason string
}

func (e *kindError) Error() string { return e.kind.Error() + ": " + e.reason }
func (e *kindError) Unwrap() error { return e.kind }

// Pos is a position in the source of the program that built a graph. The zero Pos is unknown. In
// the browser all positions are unknown, since wasm keeps no line table.
type Pos struct {
	File string
	Line int
}

// String returns "file.go:12", or "" for an unknown position.
func (p Pos) String() string {
	if p.File == "" {
		return ""
	}
	return format.Sprintf("%s:%d", p.File, p.Line)
}

// OpError reports an op that was rejected, with its operands and position. For a port or an output,
// Op is "input", "param", "state" or "output", and Label is its name.
type OpError struct {
	Op    Op
	In    []Type
	Attrs string // attributes in the text form, or ""
	Label string // the node's label, or ""
	Pos   Pos
	Err   error

	declared bool // a port or an output, which has no operands
}

// Error returns "file.go:12: mul(f32[2], f32[3]): shape mismatch: ..." and, for a port,
// 'file.go:12: input "x": ...'.
func (e *OpError) Error() string {
	var sb strings.Builder
	if p := e.Pos.String(); p != "" {
		sb.WriteString(p)
		sb.WriteString(": ")
	}
	if e.Op == OpPort {
		sb.WriteString(e.Err.Error())
		return sb.String()
	}
	sb.WriteString(string(e.Op))
	if e.Label != "" {
		sb.WriteString(format.Sprintf(" %q", e.Label))
	}
	if !e.declared {
		sb.WriteByte('(')
		for i, t := range e.In {
			if i > 0 {
				sb.WriteString(", ")
			}
			sb.WriteString(t.String())
		}
		sb.WriteByte(')')
	}
	if e.Attrs != "" {
		sb.WriteByte(' ')
		sb.WriteString(e.Attrs)
	}
	sb.WriteString(": ")
	sb.WriteString(e.Err.Error())
	return sb.String()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }
