package generate

import "slices"

// The lengths of the suffixes that lookup searches for.
const (
	maxLookup = 3
	minLookup = 1
)

// lookup returns at most n tokens that followed an earlier occurrence of a suffix of the sequence:
// the latest occurrence of the longest suffix found (Saxena, Prompt Lookup Decoding).
func lookup(tokens []int32, n int) []int32 {
	for size := maxLookup; size >= minLookup; size-- {
		if len(tokens) <= size {
			continue
		}
		end := tokens[len(tokens)-size:]
		for i := len(tokens) - size - 1; i >= 0; i-- {
			if slices.Equal(tokens[i:i+size], end) {
				return tokens[i+size : min(i+size+n, len(tokens))]
			}
		}
	}
	return nil
}
