// Package mark finds marks in texts that arrive in pieces, such as stop strings.
package mark

import "strings"

// Begun returns the number of bytes at the end of a text that may be the beginning of a mark: those of
// the longest suffix with which a mark begins and does not end.
func Begun(text string, marks ...string) (most int) {
	for _, mark := range marks {
		for n := min(len(mark)-1, len(text)); n > most; n-- {
			if strings.HasSuffix(text, mark[:n]) {
				most = n
			}
		}
	}
	return most
}
