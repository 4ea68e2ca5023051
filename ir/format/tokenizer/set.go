package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// set is a class of characters: ranges, tables of Unicode, other classes, or what none of them has.
type set struct {
	ascii  [utf8.RuneSelf]bool // the result for ASCII, from the fields below
	tables []*unicode.RangeTable
	tests  []func(rune) bool
	ranges []rune // first and last of each
	sets   []*set
	both   *set // a second set that a character must be in
	fold   bool // case is ignored
	negate bool
	word   bool // the class \w
}

// at returns the length of the character at a position if it is in the set, else 0.
func (s *set) at(text string, pos int) int {
	if pos >= len(text) {
		return 0
	}
	if b := text[pos]; b < utf8.RuneSelf {
		if s.ascii[b] {
			return 1
		}
		return 0
	}
	r, size := utf8.DecodeRuneInString(text[pos:])
	if s.has(r) {
		return size
	}
	return 0
}

// prepare fills the table of ASCII.
func (s *set) prepare() *set {
	for r := range s.ascii {
		s.ascii[r] = s.has(rune(r))
	}
	return s
}

func (s *set) has(r rune) bool {
	in := s.listed(r, false)
	if s.fold && !in {
		for other := unicode.SimpleFold(r); other != r && !in; other = unicode.SimpleFold(other) {
			in = s.listed(other, true)
		}
	}
	if in == s.negate {
		return false
	}
	return s.both == nil || s.both.has(r)
}

// listed reports whether the set, before its negation, has r: folded if it is another case of a
// character that it lacks. Sets that ignore case are not asked again then, or nested ones would be
// asked 2ⁿ times.
func (s *set) listed(r rune, folded bool) bool {
	for i := 0; i < len(s.ranges); i += 2 {
		if r >= s.ranges[i] && r <= s.ranges[i+1] {
			return true
		}
	}
	for _, table := range s.tables {
		if unicode.Is(table, r) {
			return true
		}
	}
	for _, is := range s.tests {
		if is(r) {
			return true
		}
	}
	for _, inner := range s.sets {
		if !(folded && inner.fold) && inner.has(r) {
			return true
		}
	}
	return false
}

// add adds a range.
func (s *set) add(first, last rune) { s.ranges = append(s.ranges, first, last) }

// property adds a class by its name in \p{name}. False if it is unknown.
func (s *set) property(name string, negate bool) bool {
	inner := &set{negate: negate}
	if table, ok := unicode.Categories[name]; ok {
		inner.tables = append(inner.tables, table)
	} else if table, ok := unicode.Scripts[name]; ok {
		inner.tables = append(inner.tables, table)
	} else if table, ok := unicode.Properties[name]; ok {
		inner.tables = append(inner.tables, table)
	} else if is, ok := classes[name]; ok {
		inner.tests, inner.word = append(inner.tests, is), name == "word"
	} else if table, ok := unicode.Categories[unicode.CategoryAliases[name]]; ok {
		inner.tables = append(inner.tables, table)
	} else {
		return false
	}
	s.sets = append(s.sets, inner)
	return true
}

// classes are the classes that are no category of Unicode: those of escapes and of [:name:].
var classes = map[string]func(rune) bool{
	"space": unicode.IsSpace, "digit": func(r rune) bool { return unicode.Is(unicode.Nd, r) }, "word": isPatternWord,
	"alpha": func(r rune) bool { return unicode.In(r, unicode.L, unicode.Nl, unicode.Other_Alphabetic) },
	"alnum": func(r rune) bool {
		return unicode.In(r, unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.Nd)
	},
	"upper": func(r rune) bool { return unicode.In(r, unicode.Lu, unicode.Other_Uppercase) },
	"lower": func(r rune) bool { return unicode.In(r, unicode.Ll, unicode.Other_Lowercase) },
	"punct": func(r rune) bool { return unicode.In(r, unicode.P, unicode.S) },
	"cntrl": func(r rune) bool { return unicode.Is(unicode.Cc, r) },
	"xdigit": func(r rune) bool {
		return r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'f' && r < 0x80
	},
	"blank": func(r rune) bool { return r == '\t' || unicode.Is(unicode.Zs, r) },
}
