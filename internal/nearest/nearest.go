// Package nearest finds the name that is most like another one, for messages about unknown names.
package nearest

import "strings"

// Name returns the one of others that begins and ends most like name, "" for none that has any letter in common there. A
// slash counts as a dot.
func Name(name string, others []string) (best string) {
	dotted, longest := strings.ReplaceAll(name, "/", "."), 0
	for _, other := range others {
		o := strings.ReplaceAll(other, "/", ".")
		start := 0
		for start < min(len(o), len(dotted)) && o[start] == dotted[start] {
			start++
		}
		end := 0
		for end < min(len(o), len(dotted))-start && o[len(o)-1-end] == dotted[len(dotted)-1-end] {
			end++
		}
		if start+end > longest {
			best, longest = other, start+end
		}
	}
	return best
}
