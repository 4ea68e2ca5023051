package chat

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// The methods of Python that templates call, and the functions that a template finds by their names. They
// are set in init, since filters look methods up.
var (
	stringMethods            map[string]func(c *call, s string) (any, error)
	dictMethods, listMethods map[string]filter
	globals                  map[string]function
)

func init() {
	stringMethods = stringTable()
	dictMethods = map[string]filter{"items": items, "keys": toList, "values": dictValues, "get": dictGet}
	listMethods = map[string]filter{"index": listIndex, "count": listCount}
	globals = map[string]function{
		"range": rangeOf, "namespace": namespace, "dict": makeDictOf, "strftime_now": strftime,
		"raise_exception": func(c *call) (any, error) { return nil, failf(ErrRaised, "%s", text(c.arg(0, "message", ""))) },
	}
}

func stringTable() map[string]func(c *call, s string) (any, error) {
	return map[string]func(c *call, s string) (any, error){
		"strip":  stripping(strings.TrimFunc, strings.Trim),
		"lstrip": stripping(strings.TrimLeftFunc, strings.TrimLeft),
		"rstrip": stripping(strings.TrimRightFunc, strings.TrimRight),
		"upper":  func(_ *call, s string) (any, error) { return upper(s), nil },
		"lower":  func(_ *call, s string) (any, error) { return lower(s), nil },
		"title":  func(_ *call, s string) (any, error) { return titleOfWords(s), nil },
		"capitalize": func(_ *call, s string) (any, error) {
			return capitalize(s), nil
		},
		"startswith":   affix(strings.HasPrefix),
		"endswith":     affix(strings.HasSuffix),
		"removeprefix": withText(func(s, t string) any { return strings.TrimPrefix(s, t) }),
		"removesuffix": withText(func(s, t string) any { return strings.TrimSuffix(s, t) }),
		"count":        withText(func(s, t string) any { return int64(strings.Count(s, t)) }),
		"find":         withText(func(s, t string) any { return position(s, strings.Index(s, t)) }),
		"rfind":        withText(func(s, t string) any { return position(s, strings.LastIndex(s, t)) }),
		"replace":      func(c *call, s string) (any, error) { return replaceText(c, s) },
		"split":        func(c *call, s string) (any, error) { return split(c, s, false) },
		"rsplit":       func(c *call, s string) (any, error) { return split(c, s, true) },
		"splitlines":   splitLines,
		"join": func(c *call, s string) (any, error) {
			return joinItems(&call{c.r, []any{s}, nil}, c.arg(0, "iterable", nil))
		},
		"format":  formatText,
		"isdigit": every(unicode.IsDigit),
		"isalpha": every(unicode.IsLetter),
		"isspace": every(isSpace),
		"isupper": func(_ *call, s string) (any, error) { return isUpper(s), nil },
		"islower": func(_ *call, s string) (any, error) { return isLower(s), nil },
	}
}

// isUpper and isLower report whether a text has letters, and all are in the case, as Python's methods and the
// tests upper and lower do.
func isUpper(s string) bool { return upper(s) == s && lower(s) != s }
func isLower(s string) bool { return lower(s) == s && upper(s) != s }

// upper and lower are Python's: ß becomes SS, and the last sigma of a word ς.
func upper(s string) string { return cases.Upper(language.Und).String(s) }
func lower(s string) string { return cases.Lower(language.Und).String(s) }

// position converts an index in bytes to one in characters; -1 stays -1.
func position(s string, i int) int64 {
	if i < 0 {
		return -1
	}
	return runes(s[:i])
}

func stripping(spaces func(string, func(rune) bool) string, chars func(string, string) string) func(*call, string) (any, error) {
	return func(c *call, s string) (any, error) {
		set := c.arg(0, "chars", nil)
		if set == nil {
			return spaces(s, isSpace), nil
		}
		return chars(s, text(set)), nil
	}
}

// affix implements startswith and endswith. The argument is a string or a tuple of strings.
func affix(has func(s, t string) bool) func(*call, string) (any, error) {
	return func(c *call, s string) (any, error) {
		if l, ok := c.arg(0, "", nil).(*list); ok {
			return slices.ContainsFunc(l.items, func(t any) bool { return has(s, text(t)) }), nil
		}
		t, err := c.textArg("")
		return has(s, t), err
	}
}

func withText(f func(s, t string) any) func(*call, string) (any, error) {
	return func(c *call, s string) (any, error) {
		t, err := c.textArg("")
		return f(s, t), err
	}
}

func every(is func(rune) bool) func(*call, string) (any, error) {
	return func(_ *call, s string) (any, error) {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0, nil
	}
}

// split divides a string at a separator or at white space, at most maxsplit times, from the right for
// rsplit.
func split(c *call, s string, right bool) (any, error) {
	limit, err := c.intArg(1, "maxsplit", -1)
	if err != nil {
		return nil, err
	}
	var parts []string
	separator := c.arg(0, "sep", nil)
	switch sep := separator.(type) {
	case nil:
		parts = fields(s, limit, right)
	case string:
		if sep == "" {
			return nil, failf(ErrValue, "the separator of split is empty")
		}
		parts = separated(s, sep, limit, right)
	default:
		return nil, failf(ErrValue, "the separator of split is %s: it must be a string", typeName(separator))
	}
	l := &list{}
	for _, p := range parts {
		l.items = append(l.items, p)
	}
	return l, c.r.spend(len(parts))
}

func separated(s, sep string, limit int64, right bool) []string {
	parts := strings.Split(s, sep)
	extra := len(parts) - 1 - int(min(limit, int64(len(parts))))
	if limit < 0 || extra <= 0 {
		return parts
	}
	if right {
		return append([]string{strings.Join(parts[:extra+1], sep)}, parts[extra+1:]...)
	}
	return append(slices.Clone(parts[:limit]), strings.Join(parts[limit:], sep))
}

// fields divides at white space, at most limit times, from the right for rsplit.
func fields(s string, limit int64, right bool) []string {
	if limit < 0 {
		return strings.FieldsFunc(s, isSpace)
	}
	trim, find := strings.TrimLeftFunc, strings.IndexFunc
	if right {
		trim, find = strings.TrimRightFunc, strings.LastIndexFunc
	}
	var parts []string
	for s = trim(s, isSpace); s != ""; s = trim(s, isSpace) {
		i := find(s, isSpace)
		if i < 0 || int64(len(parts)) == limit {
			parts = append(parts, s)
			break
		}
		if right {
			_, size := utf8.DecodeRuneInString(s[i:])
			parts, s = append(parts, s[i+size:]), s[:i]
		} else {
			parts, s = append(parts, s[:i]), s[i:]
		}
	}
	if right {
		slices.Reverse(parts)
	}
	return parts
}

// formatText fills {} and {0} with arguments, {name} with those of a name.
func formatText(c *call, s string) (any, error) {
	var sb strings.Builder
	next := 0
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			i = len(s)
		}
		sb.WriteString(s[:i])
		s = s[i:]
		if len(s) > 1 && s[0] == s[1] { // {{ is a brace
			sb.WriteByte(s[0])
			s = s[2:]
			continue
		}
		if s == "" {
			break
		}
		field, rest, closed := strings.Cut(s[1:], "}")
		if s[0] == '}' || !closed {
			return nil, failf(ErrValue, "a brace of format stands alone")
		}
		position := -1
		if field == "" {
			position = next
			next++
		} else if n, err := strconv.Atoi(field); err == nil {
			position = n
		}
		if position < 0 {
			position = len(c.args)
		}
		v := c.arg(position, field, undefined{field})
		if _, missing := v.(undefined); missing {
			return nil, failf(ErrValue, "format has no value for {%s}", field)
		}
		sb.WriteString(text(v))
		s = rest
		if sb.Len() > maxOutput {
			return nil, failf(ErrLimit, "a text has more than %d bytes", maxOutput)
		}
	}
	return sb.String(), c.r.spend(sb.Len() / 64)
}

func splitLines(c *call, s string) (any, error) {
	keep := truthy(c.arg(0, "keepends", false))
	l := &list{}
	for line := range strings.Lines(s) {
		if !keep {
			line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		}
		l.items = append(l.items, line)
	}
	return l, c.r.spend(len(l.items))
}

func dictValues(_ *call, v any) (any, error) {
	l := &list{}
	for _, k := range v.(*dict).keys {
		l.items = append(l.items, v.(*dict).values[k])
	}
	return l, nil
}

func dictGet(c *call, v any) (any, error) {
	if item, ok := v.(*dict).item(c.arg(0, "key", "")); ok {
		return item, nil
	}
	return c.arg(1, "default", nil), nil
}

func listIndex(c *call, v any) (any, error) {
	i := slices.IndexFunc(v.(*list).items, func(item any) bool { return same(item, c.arg(0, "", nil)) })
	if i < 0 {
		return nil, failf(ErrValue, "the list has no such item")
	}
	return int64(i), nil
}

func listCount(c *call, v any) (any, error) {
	n := int64(0)
	for _, item := range v.(*list).items {
		if same(item, c.arg(0, "", nil)) {
			n++
		}
	}
	return n, nil
}

func makeDictOf(c *call) (any, error) {
	v, err := namespace(c)
	if d, ok := v.(*dict); ok {
		d.space, d.opaque = false, false
	}
	return v, err
}

func namespace(c *call) (any, error) {
	d := newDict()
	d.space, d.opaque = true, true
	if of, ok := c.arg(0, "", nil).(*dict); ok {
		for _, k := range of.keys {
			d.set(k, of.values[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.named)) {
		d.set(k, c.named[k])
	}
	return d, nil
}

// maxRange bounds the numbers of a range, as jinja2's sandbox does.
const maxRange = 100000

func rangeOf(c *call) (any, error) {
	var bounds [3]int64
	for i := range c.args {
		if i > 2 {
			return nil, failf(ErrValue, "range takes one to three arguments, and %d are given", len(c.args))
		}
		var err error
		if bounds[i], err = c.intArg(i, "", 0); err != nil {
			return nil, err
		}
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	switch len(c.args) {
	case 0:
		return nil, failf(ErrValue, "range takes one to three arguments, and none is given")
	case 1:
		start, stop, step = 0, start, 1
	case 2:
		step = 1
	}
	if step == 0 {
		return nil, failf(ErrValue, "the step of range is 0")
	}
	l := &list{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(l.items) == maxRange {
			return nil, failf(ErrLimit, "a range has more than %d numbers", maxRange)
		}
		l.items = append(l.items, i)
	}
	return l, c.r.spend(len(l.items))
}

// dateFormats are the layouts of the directives of strftime.
var dateFormats = map[byte]string{
	'd': "02", 'm': "01", 'Y': "2006", 'y': "06", 'B': "January", 'b': "Jan", 'A': "Monday", 'a': "Mon",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002", 'Z': "MST", 'z': "-0700",
}

func strftime(c *call) (any, error) {
	format, err := c.textArg("format")
	if err != nil {
		return nil, err
	}
	var sb strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			sb.WriteByte(format[i])
			continue
		}
		i++
		if err := writeDate(&sb, c.r.now, format[i:], &i); err != nil {
			return nil, err
		}
	}
	return sb.String(), nil
}

// writeDate writes a directive and skips its modifiers.
func writeDate(sb *strings.Builder, now time.Time, directive string, i *int) error {
	plain := directive[0] == '-' && len(directive) > 1 // without a zero before it
	if plain {
		directive = directive[1:]
		*i++
	}
	layout, ok := dateFormats[directive[0]]
	switch {
	case directive[0] == '%':
		sb.WriteByte('%')
	case !ok:
		return failf(ErrValue, "the directive %%%c of strftime_now is not known", directive[0])
	case plain:
		number := now.Format(layout)
		sb.WriteString(number[strings.IndexFunc(number[:len(number)-1]+"1", func(r rune) bool { return r != '0' }):])
	default:
		sb.WriteString(now.Format(layout))
	}
	return nil
}
