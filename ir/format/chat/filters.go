package chat

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rlx-go/rlx/internal/permute"
)

// filter is a filter, a test or a method: it takes a value and arguments.
type filter func(c *call, v any) (any, error)

// The tables are set in init, since map and select look filters and tests up.
var filters, tests map[string]filter

func init() {
	filters = map[string]filter{
		"trim": trim, "strip": trim, "tojson": toJSON, "length": length, "count": length, "join": joinItems, "list": toList,
		"upper": ofText(upper), "lower": ofText(lower), "capitalize": ofText(capitalize), "title": ofText(title),
		"string":  func(_ *call, v any) (any, error) { return text(v), nil },
		"safe":    func(_ *call, v any) (any, error) { return v, nil },
		"default": byDefault, "d": byDefault, "first": first, "last": last, "replace": replaceText, "int": toInt, "float": toFloat,
		"abs": absolute, "round": round, "sum": sum, "min": extreme(-1), "max": extreme(1), "sort": sorted, "unique": unique,
		"reverse": reversed, "items": items, "dictsort": dictSort, "indent": indent, "map": mapItems,
		"select": selecting(true, false), "reject": selecting(false, false),
		"selectattr": selecting(true, true), "rejectattr": selecting(false, true), "attr": attr, "e": ofText(escapeHTML), "escape": ofText(escapeHTML),
	}
	tests = map[string]filter{
		"defined":   func(_ *call, v any) (any, error) { _, u := v.(undefined); return !u, nil },
		"undefined": func(_ *call, v any) (any, error) { _, u := v.(undefined); return u, nil },
		"none":      func(_ *call, v any) (any, error) { return v == nil, nil },
		"string":    isType[string], "boolean": isType[bool], "integer": isType[int64], "float": isType[float64], "mapping": isType[*dict],
		"callable": isType[function],
		"number":   func(_ *call, v any) (any, error) { _, ok := number(v); return ok, nil },
		"true":     func(_ *call, v any) (any, error) { return v == true, nil },
		"false":    func(_ *call, v any) (any, error) { return v == false, nil },
		"iterable": isIterable, "sequence": isIterable,
		"odd":         remainder(1, 2),
		"even":        remainder(0, 2),
		"divisibleby": func(c *call, v any) (any, error) { return divisible(c, v) },
		"lower":       func(_ *call, v any) (any, error) { return isLower(text(v)), nil },
		"upper":       func(_ *call, v any) (any, error) { return isUpper(text(v)), nil },
		"in":          related("in"), "eq": related("=="), "equalto": related("=="), "==": related("=="), "ne": related("!="), "!=": related("!="),
		"lt": related("<"), "le": related("<="), "gt": related(">"), "ge": related(">="), "lessthan": related("<"), "greaterthan": related(">"),
	}
}

func isType[T any](_ *call, v any) (any, error) { _, ok := v.(T); return ok, nil }

func isIterable(_ *call, v any) (any, error) {
	_, err := iterate(v)
	return err == nil, nil
}

func remainder(of, by int64) filter {
	return func(_ *call, v any) (any, error) {
		n, ok := integer(v)
		if !ok {
			return nil, failf(ErrValue, "%s is neither odd nor even", typeName(v))
		}
		return ((n%by)+by)%by == of, nil
	}
}

func divisible(c *call, v any) (any, error) {
	by, err := c.intArg(0, "num", 0)
	if err != nil {
		return nil, err
	}
	m, err := integersOf("%", v, by)
	return m == int64(0), err
}

func integersOf(op string, v any, by int64) (any, error) {
	n, ok := integer(v)
	if !ok {
		return nil, failf(ErrValue, "%s is no integer", typeName(v))
	}
	return integers(op, n, by)
}

// related returns a test that compares a value with its argument.
func related(op string) filter {
	return func(c *call, v any) (any, error) {
		if len(c.args) != 1 {
			return nil, failf(ErrValue, "the test takes one argument, and %d are given", len(c.args))
		}
		return relation(op, v, c.args[0])
	}
}

// ofText returns a filter that works on the text of a value.
func ofText(f func(string) string) filter {
	return func(c *call, v any) (any, error) {
		s := text(v)
		return f(s), c.r.spend(len(s) / 64)
	}
}

// escapeHTML writes the characters of markup as jinja2 does.
var escapeHTML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + lower(s[n:])
}

func title(s string) string {
	begins := true
	return strings.Map(func(r rune) rune {
		was := begins
		begins = unicode.IsSpace(r) || strings.ContainsRune("-([{<", r)
		if was {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

// titleOfWords is str.title of Python, to which all but letters separate words.
func titleOfWords(s string) string {
	begins := true
	return strings.Map(func(r rune) rune {
		was := begins
		begins = !unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Uppercase, unicode.Other_Lowercase)
		if was {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func trim(c *call, v any) (any, error) {
	chars := c.arg(0, "chars", nil)
	if chars == nil {
		return strings.TrimFunc(text(v), isSpace), nil
	}
	return strings.Trim(text(v), text(chars)), nil
}

// isSpace is Python's white space: Unicode's and four ASCII separators.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// maxIndent bounds the spaces before a line.
const maxIndent = 1024

func toJSON(c *call, v any) (any, error) {
	w := &jsonWriter{item: ", ", key: ": "}
	if n := c.arg(0, "indent", nil); n != nil {
		spaces, ok := integer(n)
		if !ok || spaces < 0 || spaces > maxIndent {
			return nil, failf(ErrValue, "indent is %s: it must be from 0 to %d", text(n), maxIndent)
		}
		w.indent, w.item = strings.Repeat(" ", int(spaces)), ","
	}
	if sep, ok := c.named["separators"].(*list); ok && len(sep.items) == 2 {
		w.item, w.key = text(sep.items[0]), text(sep.items[1])
	}
	w.sorted, w.ascii = truthy(c.named["sort_keys"]), truthy(c.named["ensure_ascii"])
	if err := w.write(v, 0); err != nil {
		return nil, err
	}
	return string(w.out), c.r.spend(len(w.out) / 64)
}

func length(_ *call, v any) (any, error) {
	switch v := v.(type) {
	case string:
		return runes(v), nil
	case *list:
		return int64(len(v.items)), nil
	case *dict:
		return int64(len(v.keys)), nil
	case undefined:
		return int64(0), nil
	}
	return nil, failf(ErrValue, "%s has no length", typeName(v))
}

func joinItems(c *call, v any) (any, error) {
	all, err := c.items(v)
	if err != nil {
		return nil, err
	}
	between, name := text(c.arg(0, "d", "")), c.arg(1, "attribute", nil)
	var sb strings.Builder
	for i, item := range all {
		if i > 0 {
			sb.WriteString(between)
		}
		if name != nil {
			if item, err = attributePath(c, item, name); err != nil {
				return nil, err
			}
		}
		sb.WriteString(text(item))
		if sb.Len() > maxOutput {
			return nil, failf(ErrLimit, "a text has more than %d bytes", maxOutput)
		}
	}
	return sb.String(), c.r.spend(sb.Len() / 64)
}

// items returns the items of a value and counts a step for each.
func (c *call) items(v any) ([]any, error) { return c.r.items(v) }

// itemsOrNone is items; the value none has no items.
func (c *call) itemsOrNone(v any) ([]any, error) {
	if v == nil {
		return nil, nil
	}
	return c.items(v)
}

func toList(c *call, v any) (any, error) {
	all, err := c.items(v)
	return &list{items: slices.Clone(all)}, err
}

func byDefault(c *call, v any) (any, error) {
	_, missing := v.(undefined)
	if missing || truthy(c.arg(1, "boolean", false)) && !truthy(v) {
		return c.arg(0, "default_value", ""), nil
	}
	return v, nil
}

func first(c *call, v any) (any, error) { return c.end(v, 0) }
func last(c *call, v any) (any, error)  { return c.end(v, -1) }

func (c *call) end(v any, i int64) (any, error) {
	if _, err := iterate(v); err != nil {
		return nil, err
	}
	if d, ok := v.(*dict); ok {
		all, _ := iterate(d)
		v = &list{items: all}
	}
	return index(v, i)
}

func replaceText(c *call, v any) (any, error) {
	if len(c.args) < 2 {
		return nil, failf(ErrValue, "replace takes two arguments, and %d are given", len(c.args))
	}
	n, err := c.intArg(2, "count", -1)
	if err != nil {
		return nil, err
	}
	s, from, to := text(v), text(c.args[0]), text(c.args[1])
	if grown := strings.Count(s, from) * max(0, len(to)-len(from)); grown > maxOutput {
		return nil, failf(ErrLimit, "a text has more than %d bytes", maxOutput)
	} else if err := c.r.spend((len(s) + grown) / 64); err != nil {
		return nil, err
	}
	return strings.Replace(s, from, to, int(max(n, -1))), nil
}

func toInt(c *call, v any) (any, error) {
	switch v := v.(type) {
	case float64:
		if math.Abs(v) < 1<<62 {
			return int64(v), nil
		}
	case string:
		s := strings.TrimFunc(v, isSpace)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n, nil
		}
		if x, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(x) < 1<<62 {
			return int64(x), nil
		}
	}
	if n, ok := integer(v); ok {
		return n, nil
	}
	return c.arg(0, "default", int64(0)), nil
}

func toFloat(c *call, v any) (any, error) {
	if x, ok := number(v); ok {
		return x, nil
	}
	if s, ok := v.(string); ok {
		if x, err := strconv.ParseFloat(strings.TrimFunc(s, isSpace), 64); err == nil {
			return x, nil
		}
	}
	return c.arg(0, "default", 0.0), nil
}

func absolute(_ *call, v any) (any, error) {
	if n, ok := integer(v); ok {
		return max(n, -n), nil
	}
	if x, ok := v.(float64); ok {
		return math.Abs(x), nil
	}
	return nil, failf(ErrValue, "%s has no absolute value", typeName(v))
}

func round(c *call, v any) (any, error) {
	x, ok := number(v)
	digits, err := c.intArg(0, "precision", 0)
	if !ok || err != nil || digits < 0 || digits > 15 {
		return nil, failf(ErrValue, "%s cannot be rounded to %d digits", typeName(v), digits)
	}
	scale := math.Pow(10, float64(digits))
	method := text(c.arg(1, "method", "common"))
	how := map[string]func(float64) float64{"common": math.RoundToEven, "ceil": math.Ceil, "floor": math.Floor}[method]
	if how == nil {
		return nil, failf(ErrValue, "round has no such method")
	}
	if n, whole := integer(v); whole && method == "common" {
		return n, nil
	}
	return how(x*scale) / scale, nil
}

func sum(c *call, v any) (any, error) {
	all, err := c.items(v)
	if err != nil {
		return nil, err
	}
	total := c.arg(1, "start", int64(0))
	for _, item := range all {
		if name := c.arg(0, "attribute", nil); name != nil {
			if item, err = attributePath(c, item, name); err != nil {
				return nil, err
			}
		}
		if total, err = c.r.binary("+", total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// extreme is min or max, by the sign.
func extreme(sign int) filter {
	return func(c *call, v any) (any, error) {
		all, err := c.items(v)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return undefined{"an item of an empty list"}, nil
		}
		best := all[0]
		for _, item := range all[1:] {
			o, err := order(item, best)
			if err != nil {
				return nil, err
			}
			if o*sign > 0 {
				best = item
			}
		}
		return best, nil
	}
}

// sortedItems sorts items by keys; letters of either case are equal.
func sortedItems(items, keys []any, descending bool) ([]any, error) {
	positions := make([]int, len(items))
	for i := range positions {
		positions[i] = i
		if s, ok := keys[i].(string); ok {
			keys[i] = lower(s)
		}
	}
	var failed error
	slices.SortStableFunc(positions, func(i, j int) int {
		o, err := order(keys[i], keys[j])
		if err != nil {
			failed = err
		}
		if descending {
			return -o
		}
		return o
	})
	return permute.Pick(items, positions), failed
}

func sorted(c *call, v any) (any, error) {
	all, err := c.items(v)
	if err != nil {
		return nil, err
	}
	keys := slices.Clone(all)
	if name := c.arg(2, "attribute", nil); name != nil {
		for i := range keys {
			if keys[i], err = attributePath(c, keys[i], name); err != nil {
				return nil, err
			}
		}
	}
	out, err := sortedItems(all, keys, truthy(c.arg(0, "reverse", false)))
	return &list{items: out}, err
}

// sortedKeys returns the keys of a mapping in order; strings and integers have none together.
func sortedKeys(d *dict) (keys []any, err error) {
	keys = slices.Clone(d.keys)
	slices.SortFunc(keys, func(a, b any) int {
		o, failed := order(a, b)
		err = cmp.Or(err, failed)
		return o
	})
	return keys, err
}

func unique(c *call, v any) (any, error) {
	all, err := c.items(v)
	if err != nil {
		return nil, err
	}
	out := &list{lazy: true}
	for _, item := range all {
		if err := c.r.spend(len(out.items)); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out.items, func(other any) bool { return same(item, other) }) {
			out.items = append(out.items, item)
		}
	}
	return out, nil
}

func reversed(c *call, v any) (any, error) {
	all, err := c.items(v)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(all)
	slices.Reverse(out)
	if _, ok := v.(string); !ok {
		return &list{items: out, lazy: true}, nil
	}
	var sb strings.Builder
	for _, r := range out {
		sb.WriteString(r.(string))
	}
	return sb.String(), nil
}

func items(c *call, v any) (any, error) {
	d, ok := v.(*dict)
	if _, missing := v.(undefined); !ok && !missing {
		return nil, failf(ErrValue, "%s has no items", typeName(v))
	}
	out := &list{lazy: true}
	if d == nil {
		return out, nil
	}
	for _, k := range d.keys {
		out.items = append(out.items, &list{items: []any{k, d.values[k]}, tuple: true})
	}
	return out, c.r.spend(len(d.keys))
}

func dictSort(c *call, v any) (any, error) {
	all, err := items(c, v)
	if err != nil {
		return nil, err
	}
	pairs := all.(*list).items
	keys := make([]any, len(pairs))
	by := 0
	if text(c.arg(1, "by", "key")) == "value" {
		by = 1
	}
	for i, p := range pairs {
		keys[i] = p.(*list).items[by]
	}
	out, err := sortedItems(pairs, keys, truthy(c.arg(2, "reverse", false)))
	return &list{items: out}, err
}

func indent(c *call, v any) (any, error) {
	width, err := c.intArg(0, "width", 4)
	if err != nil || width < 0 || width > maxIndent {
		return nil, failf(ErrValue, "the width of indent must be from 0 to %d", maxIndent)
	}
	space := strings.Repeat(" ", int(width))
	lines := strings.Split(text(v), "\n")
	if err := c.r.spend(len(lines) * (1 + int(width)/64)); err != nil {
		return nil, err
	}
	for i, line := range lines {
		wanted := line != "" || truthy(c.arg(2, "blank", false))
		if i == 0 {
			wanted = truthy(c.arg(1, "first", false))
		}
		if wanted {
			lines[i] = space + line
		}
	}
	return strings.Join(lines, "\n"), nil
}

// attributePath returns the attribute of an item at a path such as "a.b", or an item of a list by its number.
func attributePath(c *call, v, name any) (any, error) {
	if n, ok := integer(name); ok {
		return index(v, n)
	}
	for part := range strings.SplitSeq(text(name), ".") {
		var err error
		if n, bad := strconv.ParseInt(part, 10, 64); bad == nil {
			v, err = index(v, n)
		} else if d, ok := v.(*dict); ok {
			v, err = index(d, part)
		} else {
			v, err = c.r.attribute(v, part)
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

func attr(c *call, v any) (any, error) {
	name, err := c.textArg("name")
	if err != nil {
		return nil, err
	}
	return c.r.attribute(v, name)
}

// mapItems applies a filter to each item, or takes an attribute of each.
func mapItems(c *call, v any) (any, error) {
	all, err := c.itemsOrNone(v)
	if err != nil {
		return nil, err
	}
	out := &list{items: make([]any, len(all)), lazy: true}
	name, byAttribute := c.named["attribute"]
	for i, item := range all {
		if byAttribute {
			if item, err = attributePath(c, item, name); err != nil {
				return nil, err
			}
			if _, missing := item.(undefined); missing {
				if d, ok := c.named["default"]; ok {
					item = d
				}
			}
		} else if item, err = c.apply(filters, "filter", c.args, item); err != nil {
			return nil, err
		}
		out.items[i] = item
	}
	return out, nil
}

// apply calls the filter or test that the first of some arguments names, with the others.
func (c *call) apply(of map[string]filter, kind string, args []any, v any) (any, error) {
	if len(args) == 0 {
		return nil, failf(ErrValue, "the name of a %s is missing", kind)
	}
	f := of[text(args[0])]
	if f == nil {
		return nil, failf(ErrValue, "the %s %q is not known", kind, text(args[0]))
	}
	if err := c.r.enter(); err != nil {
		return nil, err
	}
	defer func() { c.r.depth-- }()
	return f(&call{c.r, args[1:], c.named}, v)
}

// selecting keeps the items, or those with the attribute that the first argument names, for which a test
// holds or does not.
func selecting(keep, byAttribute bool) filter {
	return func(c *call, v any) (any, error) {
		all, err := c.itemsOrNone(v)
		if err != nil {
			return nil, err
		}
		args := c.args
		if byAttribute {
			if len(args) == 0 {
				return nil, failf(ErrValue, "the name of an attribute is missing")
			}
			args = args[1:]
		}
		out := &list{lazy: true}
		for _, item := range all {
			var held any = item
			if byAttribute {
				if held, err = attributePath(c, item, c.args[0]); err != nil {
					return nil, err
				}
			}
			if len(args) > 0 {
				if held, err = c.apply(tests, "test", args, held); err != nil {
					return nil, err
				}
			}
			if truthy(held) == keep {
				out.items = append(out.items, item)
			}
		}
		return out, nil
	}
}
