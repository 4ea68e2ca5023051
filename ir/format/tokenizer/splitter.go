package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// piece is a part of a text that splitters divide into words.
type piece struct {
	text  string
	first bool // the text begins with it
}

// splitter splits pieces of text: a pre-tokenizer.
type splitter interface {
	// split appends the parts of a piece.
	split(p piece, out []piece) ([]piece, error)
}

// behaviour is the treatment of the parts of a text that match a delimiter.
type behaviour int

const (
	removed behaviour = iota
	isolated
	mergedWithPrevious
	mergedWithNext
	contiguous
)

var behaviours = map[string]behaviour{
	"Removed": removed, "Isolated": isolated, "MergedWithPrevious": mergedWithPrevious,
	"MergedWithNext": mergedWithNext, "Contiguous": contiguous,
}

// match is a part of a text, and whether it is a delimiter.
type match struct {
	start, end int
	delimiter  bool
}

// joins reports whether a part is one piece with the part before it.
func (b behaviour) joins(previous, now match) bool {
	switch b {
	case contiguous:
		return previous.delimiter == now.delimiter
	case mergedWithPrevious:
		return now.delimiter && !previous.delimiter
	case mergedWithNext:
		return previous.delimiter && !now.delimiter
	}
	return false
}

// apply appends the pieces that a behaviour makes of the parts of p, which cover it in their order.
func (b behaviour) apply(p piece, parts []match, out []piece) []piece {
	for i := 0; i < len(parts); {
		first := parts[i]
		end := first.end
		for i++; i < len(parts) && b.joins(parts[i-1], parts[i]); i++ {
			end = parts[i].end
		}
		if first.start < end && !(b == removed && first.delimiter) {
			out = append(out, piece{p.text[first.start:end], p.first && first.start == 0})
		}
	}
	return out
}

// pattern finds delimiters in a text.
type pattern interface {
	// find returns the parts of a text, which cover it in their order.
	find(text string) ([]match, error)
}

// delimited splits by a pattern.
type delimited struct {
	pattern pattern
	then    behaviour
	invert  bool // what matches is kept, and the rest delimits
}

func (d delimited) split(p piece, out []piece) ([]piece, error) {
	parts, err := d.pattern.find(p.text)
	if err != nil {
		return nil, err
	}
	if d.invert {
		for i := range parts {
			parts[i].delimiter = !parts[i].delimiter
		}
	}
	return d.then.apply(p, parts, out), nil
}

// cover makes the parts of a text of its delimiters, start and end of each in turn.
func cover(text string, delimiters []int) []match {
	parts := make([]match, 0, len(delimiters)+1)
	at := 0
	for i := 0; i < len(delimiters); i += 2 {
		if at < delimiters[i] {
			parts = append(parts, match{at, delimiters[i], false})
		}
		at = delimiters[i+1]
		parts = append(parts, match{delimiters[i], at, true})
	}
	if at < len(text) {
		parts = append(parts, match{at, len(text), false})
	}
	return parts
}

// eachRune is a pattern that makes every character of a class a delimiter.
type eachRune func(rune) bool

func (is eachRune) find(text string) ([]match, error) {
	var found []int
	for i, r := range text {
		if is(r) {
			found = append(found, i, i+utf8.RuneLen(r))
		}
	}
	return cover(text, found), nil
}

// literal is a pattern of one text.
type literal string

func (l literal) find(text string) ([]match, error) {
	var found []int
	for at := 0; l != ""; {
		i := strings.Index(text[at:], string(l))
		if i < 0 {
			break
		}
		found = append(found, at+i, at+i+len(l))
		at += i + len(l)
	}
	return cover(text, found), nil
}

// inTurn is a sequence of splitters; each splits the pieces of the one before.
type inTurn []splitter

func (s inTurn) split(p piece, out []piece) ([]piece, error) {
	pieces := []piece{p}
	for _, each := range s {
		var next []piece
		for _, p := range pieces {
			var err error
			if next, err = each.split(p, next); err != nil {
				return nil, err
			}
		}
		pieces = next
	}
	return append(out, pieces...), nil
}

// byteLevel splits by the pattern of GPT-2, if it has one, and maps bytes to the alphabet.
type byteLevel struct {
	prefixSpace bool
	pattern     pattern // nil for none
	keepBytes   bool    // the words are mapped later
}

func (b byteLevel) split(p piece, out []piece) ([]piece, error) {
	if b.prefixSpace && !strings.HasPrefix(p.text, " ") {
		p.text = " " + p.text
	}
	at := len(out)
	if b.pattern == nil {
		out = append(out, p)
	} else {
		var err error
		if out, err = (delimited{b.pattern, isolated, false}).split(p, out); err != nil {
			return nil, err
		}
	}
	for i := at; i < len(out) && !b.keepBytes; i++ {
		out[i].text = toByteLevel(out[i].text)
	}
	return out, nil
}

// When a [metaspace] puts a mark before a piece.
const (
	prependAlways = "always"
	prependFirst  = "first"
	prependNever  = "never"
)

// metaspace writes spaces as a visible mark, as SentencePiece does, and splits before them.
type metaspace struct {
	mark    string
	prepend string
	splits  bool
}

func (m metaspace) split(p piece, out []piece) ([]piece, error) {
	p.text = strings.ReplaceAll(p.text, " ", m.mark)
	if !strings.HasPrefix(p.text, m.mark) && (m.prepend == prependAlways || m.prepend == prependFirst && p.first) {
		p.text = m.mark + p.text
	}
	if !m.splits {
		return append(out, p), nil
	}
	return delimited{literal(m.mark), mergedWithNext, false}.split(p, out)
}

// Splitters without options.
var (
	whitespaceSplit splitter = delimited{eachRune(unicode.IsSpace), removed, false}
	bertSplit       splitter = inTurn{whitespaceSplit, delimited{eachRune(isPunctuation), isolated, false}}
)
