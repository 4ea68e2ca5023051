package generate

import (
	"strings"

	"github.com/rlx-go/rlx/native/lm/internal/mark"
)

// stopper finds stop strings in a text that arrives in pieces, and withholds a suffix that may be
// the beginning of one.
type stopper struct {
	stops []string
	held  string
}

// add returns the text that can no longer be part of a stop string, and whether one was found: the
// text then ends before it.
func (s *stopper) add(piece string) (text string, found bool) {
	all := s.held + piece
	first := -1
	for _, stop := range s.stops {
		if i := strings.Index(all, stop); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first >= 0 {
		s.held = ""
		return all[:first], true
	}
	keep := mark.Begun(all, s.stops...)
	s.held = all[len(all)-keep:]
	return all[:len(all)-keep], false
}

// rest returns the withheld text at the end.
func (s *stopper) rest() string {
	held := s.held
	s.held = ""
	return held
}
