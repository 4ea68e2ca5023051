package data

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
)

//go:embed shakespeare.txt.gz
var shakespeare []byte

// ShakespeareFile returns the text of [Shakespeare], compressed by gzip.
func ShakespeareFile() []byte { return shakespeare }

// Shakespeare returns 1,115,394 bytes of the plays of William Shakespeare, in the public domain:
// "tiny Shakespeare", on which character models are commonly compared.
func Shakespeare() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(shakespeare))
	if err != nil {
		return nil, fmt.Errorf("shakespeare: %w", err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("shakespeare: %w", err)
	}
	return text, nil
}

// Text is a text as indices of its distinct characters, here bytes.
type Text struct {
	// Characters are the distinct characters, in order: index i means Characters[i].
	Characters []byte
	// Train is the first nine tenths of the text, Held the rest, for testing only.
	Train, Held []int32
}

// NewText converts a text to indices.
func NewText(text []byte) Text {
	var t Text
	var number [256]int32
	seen := [256]bool{}
	for _, c := range text {
		seen[c] = true
	}
	for c, yes := range seen {
		if yes {
			number[c] = int32(len(t.Characters))
			t.Characters = append(t.Characters, byte(c))
		}
	}
	all := make([]int32, len(text))
	for i, c := range text {
		all[i] = number[c]
	}
	n := len(all) * 9 / 10
	t.Train, t.Held = all[:n], all[n:]
	return t
}

// Encode returns the indices of the characters of s. It is false if one does not occur in the text.
func (t Text) Encode(s string) ([]int32, bool) {
	out := make([]int32, len(s))
	for i := range len(s) {
		n, ok := slices.BinarySearch(t.Characters, s[i])
		if !ok {
			return nil, false
		}
		out[i] = int32(n)
	}
	return out, true
}

// Decode is the inverse of Encode.
func (t Text) Decode(numbers []int32) string {
	out := make([]byte, len(numbers))
	for i, n := range numbers {
		out[i] = t.Characters[n]
	}
	return string(out)
}

// Batch copies rows of the training text, from random positions, into tokens and, shifted by one
// character, into next: both hold rows of length context. The same seed and step give the same
// batch.
func (t Text) Batch(seed uint32, step, context int, tokens, next []int32) {
	draw := rand.New(rand.NewPCG(uint64(seed), uint64(step)))
	for row := 0; row < len(tokens); row += context {
		from := draw.IntN(len(t.Train) - context)
		copy(tokens[row:row+context], t.Train[from:])
		copy(next[row:row+context], t.Train[from+1:])
	}
}

// Windows returns the number of consecutive rows of length context in the held-out text.
func (t Text) Windows(context int) int { return max(0, (len(t.Held)-1)/context) }

// Window copies rows of the held-out text, from row first on, wrapping around at the end.
func (t Text) Window(first, context int, tokens, next []int32) {
	for i := 0; i*context < len(tokens); i++ {
		from := (first + i) % t.Windows(context) * context
		copy(tokens[i*context:(i+1)*context], t.Held[from:])
		copy(next[i*context:(i+1)*context], t.Held[from+1:])
	}
}
