package plan

import (
	"errors"

	"github.com/rlx-go/rlx/internal/format"
)

// The kinds of error of reading and validating plans. Each [*FormatError] unwraps to
// its kind, for [errors.Is].
var (
	// ErrDamaged: not a plan file, cut short, or changed after it was written.
	ErrDamaged = errors.New("damaged plan")
	// ErrVersion: written for a reader of another version.
	ErrVersion = errors.New("plan of another version")
	// ErrInvalid: well formed, but not a valid plan.
	ErrInvalid = errors.New("invalid plan")
)

// FormatError describes an error in a plan and its location.
type FormatError struct {
	Kind error // ErrDamaged, ErrVersion or ErrInvalid
	// Rule is the number of the violated rule; see the package comment.
	Rule int
	// Offset is in bytes from the start of the file, -1 for a plan in memory.
	Offset  int
	Section string // the section's tag, or the part of the plan: "entry 1 (step), step 0"
	Msg     string
}

// Error returns "damaged plan: section BUFS at byte 96: reason (rule 3)".
func (e *FormatError) Error() string {
	where := ""
	switch {
	case e.Section != "" && e.Offset >= 0:
		where = format.Sprintf("section %s at byte %d: ", e.Section, e.Offset)
	case e.Section != "":
		where = e.Section + ": "
	case e.Offset >= 0:
		where = format.Sprintf("at byte %d: ", e.Offset)
	}
	return format.Sprintf("%v: %s%s (rule %d)", e.Kind, where, e.Msg, e.Rule)
}

// Unwrap returns the kind.
func (e *FormatError) Unwrap() error { return e.Kind }

// in returns the error with the enclosing part of the plan prepended. Parts are
// formatted only for errors, because a plan has many and their names can be long.
func (e *FormatError) in(part string, args ...any) *FormatError {
	outer := *e
	outer.Section = format.Sprintf(part, args...)
	if e.Section != "" {
		outer.Section += ", " + e.Section
	}
	return &outer
}
