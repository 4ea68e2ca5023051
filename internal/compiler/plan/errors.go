package plan

import (
	"errors"

	"github.com/rlx-go/rlx/internal/format"
)

// The kinds of error that reading a plan can end in; each [*FormatError] says
// to [errors.Is] which it is.
var (
	// ErrDamaged: not a plan file, cut short, or changed after it was written.
	ErrDamaged = errors.New("damaged plan")
	// ErrVersion: made for a reader of another version.
	ErrVersion = errors.New("plan of another version")
	// ErrInvalid: well formed, but not a plan that can be run.
	ErrInvalid = errors.New("invalid plan")
)

// FormatError says what is wrong with a plan, and where.
type FormatError struct {
	Kind error // ErrDamaged, ErrVersion or ErrInvalid
	// Rule is the number of the rule that is broken; the comment of the package
	// lists them.
	Rule int
	// Offset is in bytes from the start of the file, -1 where the plan was
	// checked in memory.
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

// in returns the error with the part of the plan around the one it names.
// Parts are put into words on the way out only: a plan has more of them than
// errors, and their names can be long.
func (e *FormatError) in(part string, args ...any) *FormatError {
	outer := *e
	outer.Section = format.Sprintf(part, args...)
	if e.Section != "" {
		outer.Section += ", " + e.Section
	}
	return &outer
}
