package chat

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a run.
const (
	maxSteps  = 1 << 22 // evaluated nodes, and in them items and each 64 bytes of texts
	maxOutput = 16 << 20
	turnSteps = 8 // variables of a loop's iteration, besides those of its body
)

// run is a run of a template.
type run struct {
	out   []byte
	now   time.Time
	steps int
	depth int
}

// scope holds the variables of a block. A name that it lacks is looked up in the scope around it.
type scope struct {
	names map[string]any
	outer *scope
}

func (s *scope) inner() *scope { return &scope{map[string]any{}, s} }

func (s *scope) find(name string) (any, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// flow describes how a block ended: at its end, or by break or continue.
type flow int

const (
	flowOn flow = iota
	flowBreak
	flowContinue
)

// spend counts steps and fails beyond the limit.
func (r *run) spend(n int) error {
	if r.steps -= n; r.steps < 0 || n > maxSteps {
		r.steps = -1
		return failf(ErrLimit, "the template takes more than %d steps", maxSteps)
	}
	return nil
}

func (r *run) enter() error {
	if r.depth++; r.depth > 2*maxDepth {
		return failf(ErrLimit, "calls are nested too deeply")
	}
	return nil
}

// pay counts steps for an operation that reads whole values.
func (r *run) pay(values ...any) error {
	for _, v := range values {
		e, err := seal(v)
		if err == nil {
			err = r.spend(e.size)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) write(s string) error {
	if len(r.out)+len(s) > maxOutput {
		return failf(ErrLimit, "the text has more than %d bytes", maxOutput)
	}
	r.out = append(r.out, s...)
	return nil
}

func (r *run) block(body []*node, s *scope) (flow, error) {
	for _, n := range body {
		f, err := r.statement(n, s)
		if err != nil {
			return flowOn, at(n.line, err)
		}
		if f != flowOn {
			return f, nil
		}
	}
	return flowOn, nil
}

func (r *run) statement(n *node, s *scope) (flow, error) {
	if err := r.spend(1); err != nil {
		return flowOn, err
	}
	switch n.op {
	case opText:
		return flowOn, r.write(n.text)
	case opOutput:
		v, err := r.value(n.kids[0], s)
		if err != nil {
			return flowOn, err
		}
		if err := r.pay(v); err != nil {
			return flowOn, err
		}
		return flowOn, r.write(text(v))
	case opFor:
		return flowOn, r.loop(n, s)
	case opIf:
		v, err := r.value(n.kids[0], s)
		if err != nil {
			return flowOn, err
		}
		if truthy(v) {
			return r.block(n.body, s)
		}
		return r.block(n.other, s)
	case opSet:
		v, err := r.value(n.kids[0], s)
		if err != nil {
			return flowOn, err
		}
		return flowOn, r.assign(n, v, s)
	case opSetBlock:
		v, err := r.capture(n.body, s.inner())
		if err != nil {
			return flowOn, err
		}
		return flowOn, r.assign(n, v, s)
	case opMacro:
		s.names[n.text] = r.macro(n, s)
	case opBreak:
		return flowBreak, nil
	case opContinue:
		return flowContinue, nil
	case opGeneration:
		return r.block(n.body, s)
	case opFilterBlock:
		return flowOn, r.filtered(n, s)
	}
	return flowOn, nil
}

// capture returns the output of a block.
func (r *run) capture(body []*node, s *scope) (string, error) {
	outer := r.out
	r.out = nil
	_, err := r.block(body, s)
	written := string(r.out)
	r.out = outer
	return written, err
}

// filtered writes the text of a block after its filters.
func (r *run) filtered(n *node, s *scope) error {
	inner := s.inner()
	written, err := r.capture(n.body, inner)
	if err != nil {
		return err
	}
	inner.names[filteredName] = written
	v, err := r.value(n.kids[0], inner)
	if err != nil {
		return err
	}
	return r.write(text(v))
}

// assign sets names, or an attribute of a namespace.
func (r *run) assign(n *node, v any, s *scope) error {
	if n.text != "" {
		space, _ := s.find(n.names[0])
		d, ok := space.(*dict)
		if !ok || !d.space {
			return failf(ErrValue, "%s is no namespace: its attribute %s cannot be set", n.names[0], n.text)
		}
		d.set(n.text, v)
		return nil
	}
	return unpack(n.names, v, s)
}

// unpack sets a name, or several to the items of a list.
func unpack(names []string, v any, s *scope) error {
	if len(names) == 1 {
		s.names[names[0]] = v
		return nil
	}
	items, err := iterate(v)
	if err != nil {
		return err
	}
	if len(items) != len(names) {
		return failf(ErrValue, "%d values are given for %d names", len(items), len(names))
	}
	for i, name := range names {
		s.names[name] = items[i]
	}
	return nil
}

// iterate returns the items of a list, the keys of a mapping or the characters of a string.
func iterate(v any) ([]any, error) {
	switch v := v.(type) {
	case *list:
		return v.items, nil
	case *dict:
		return slices.Clone(v.keys), nil
	case string:
		var items []any
		for _, r := range v {
			items = append(items, string(r))
		}
		return items, nil
	case undefined:
		return nil, nil
	}
	return nil, failf(ErrValue, "%s has no items", typeName(v))
}

// items returns the items of a value and counts a step for each.
func (r *run) items(v any) ([]any, error) {
	if s, ok := v.(string); ok {
		if err := r.spend(len(s)); err != nil {
			return nil, err
		}
	}
	all, err := iterate(v)
	if err != nil {
		return nil, err
	}
	return all, r.spend(len(all))
}

func (r *run) loop(n *node, s *scope) error {
	over, err := r.value(n.kids[0], s)
	if err != nil {
		return err
	}
	items, err := r.items(over)
	if err != nil {
		return err
	}
	if n.kids[1] != nil {
		if items, err = r.only(n, items, s); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		_, err := r.block(n.other, s.inner())
		return err
	}
	for i := range items {
		if err := r.spend(turnSteps); err != nil {
			return err
		}
		inner := s.inner()
		inner.names["loop"] = loopAt(items, i)
		if err := unpack(n.names, items[i], inner); err != nil {
			return err
		}
		f, err := r.block(n.body, inner)
		if err != nil {
			return err
		}
		if f == flowBreak {
			break
		}
	}
	return nil
}

// only returns the items for which the condition of a loop holds.
func (r *run) only(n *node, items []any, s *scope) ([]any, error) {
	var kept []any
	for _, item := range items {
		inner := s.inner()
		if err := unpack(n.names, item, inner); err != nil {
			return nil, err
		}
		v, err := r.value(n.kids[1], inner)
		if err != nil {
			return nil, err
		}
		if truthy(v) {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

// loopAt is the value of the variable loop.
func loopAt(items []any, i int) *dict {
	d := newDict()
	d.opaque = true
	n := len(items)
	d.set("index", int64(i+1))
	d.set("index0", int64(i))
	d.set("revindex", int64(n-i))
	d.set("revindex0", int64(n-i-1))
	d.set("first", i == 0)
	d.set("last", i == n-1)
	d.set("length", int64(n))
	if i > 0 {
		d.set("previtem", items[i-1])
	}
	if i+1 < n {
		d.set("nextitem", items[i+1])
	}
	d.set("cycle", function(func(c *call) (any, error) {
		if len(c.args) == 0 {
			return nil, failf(ErrValue, "cycle takes one argument or more")
		}
		return c.args[i%len(c.args)], nil
	}))
	return d
}

// call holds the arguments of a function call.
type call struct {
	r     *run
	args  []any
	named map[string]any
}

// arg returns an argument by its position or name, otherwise a default.
func (c *call) arg(i int, name string, otherwise any) any {
	if i < len(c.args) {
		return c.args[i]
	}
	if v, ok := c.named[name]; ok {
		return v
	}
	return otherwise
}

// textArg returns the first argument, a string: "" if it is missing.
func (c *call) textArg(name string) (string, error) {
	v := c.arg(0, name, "")
	s, ok := v.(string)
	if !ok {
		return "", failf(ErrValue, "argument 1 is %s: it must be a string", typeName(v))
	}
	return s, nil
}

// intArg is arg for an integer.
func (c *call) intArg(i int, name string, otherwise int64) (int64, error) {
	v := c.arg(i, name, otherwise)
	n, ok := integer(v)
	if !ok {
		return 0, failf(ErrValue, "argument %d is %s: it must be an integer", i+1, typeName(v))
	}
	return n, nil
}

func (r *run) macro(n *node, s *scope) function {
	return func(c *call) (any, error) {
		if err := r.enter(); err != nil {
			return nil, err
		}
		defer func() { r.depth-- }()
		inner := s.inner()
		if len(c.args) > len(n.names) {
			return nil, failf(ErrValue, "macro %s takes %d arguments, and %d are given", n.text, len(n.names), len(c.args))
		}
		for i, name := range n.names {
			v := c.arg(i, name, undefined{name})
			if _, missing := v.(undefined); missing && n.kids[i] != nil {
				var err error
				if v, err = r.value(n.kids[i], inner); err != nil {
					return nil, err
				}
			}
			inner.names[name] = v
		}
		return r.capture(n.body, inner)
	}
}

// value evaluates an expression.
func (r *run) value(n *node, s *scope) (any, error) {
	err := r.spend(1)
	if err == nil {
		var v any
		if v, err = r.evaluate(n, s); err == nil {
			if _, err = seal(v); err == nil {
				return v, nil
			}
		}
	}
	return nil, at(n.line, err)
}

func (r *run) evaluate(n *node, s *scope) (any, error) {
	switch n.op {
	case opLiteral:
		return n.value, nil
	case opName:
		if v, ok := s.find(n.text); ok {
			return v, nil
		}
		if f, ok := globals[n.text]; ok {
			return f, nil
		}
		return undefined{n.text}, nil
	case opAnd, opOr, opChoose:
		return r.choose(n, s)
	case opCall:
		return r.call(n, s)
	case opFilter:
		return r.apply(filters, "filter", n, s)
	case opTest:
		return r.apply(tests, "test", n, s)
	case opCompare:
		return r.compare(n, s)
	}
	kids, err := r.values(n.kids, s)
	if err != nil {
		return nil, err
	}
	switch n.op {
	case opList, opTuple:
		return &list{items: kids, tuple: n.op == opTuple}, nil
	case opDict:
		return makeDict(kids)
	case opAttribute:
		return r.attribute(kids[0], n.text)
	case opIndex:
		if s, ok := kids[0].(string); ok {
			if err := r.spend(len(s)); err != nil {
				return nil, err
			}
		}
		return index(kids[0], kids[1])
	case opSlice:
		if err := r.pay(kids[0]); err != nil {
			return nil, err
		}
		return slice(kids[0], kids[1:])
	case opNot:
		return !truthy(kids[0]), nil
	case opUnary:
		return negative(n.text, kids[0])
	}
	return r.binary(n.text, kids[0], kids[1])
}

func (r *run) values(kids []*node, s *scope) ([]any, error) {
	out := make([]any, len(kids))
	for i, k := range kids {
		if k == nil {
			continue
		}
		var err error
		if out[i], err = r.value(k, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// choose evaluates the operators that do not evaluate all of their operands.
func (r *run) choose(n *node, s *scope) (any, error) {
	first, err := r.value(n.kids[0], s)
	if err != nil {
		return nil, err
	}
	is := truthy(first)
	switch {
	case n.op == opAnd && !is, n.op == opOr && is:
		return first, nil
	case n.op != opChoose, is:
		return r.value(n.kids[1], s)
	case n.kids[2] == nil:
		return undefined{"the value without else"}, nil
	}
	return r.value(n.kids[2], s)
}

func (r *run) compare(n *node, s *scope) (any, error) {
	left, err := r.value(n.kids[0], s)
	if err != nil {
		return nil, err
	}
	for i, op := range n.names {
		right, err := r.value(n.kids[i+1], s)
		if err != nil {
			return nil, err
		}
		if err := r.pay(left, right); err != nil {
			return nil, err
		}
		holds, err := relation(op, left, right)
		if err != nil || !holds {
			return false, err
		}
		left = right
	}
	return true, nil
}

func (r *run) call(n *node, s *scope) (any, error) {
	kids, err := r.values(n.kids, s)
	if err != nil {
		return nil, err
	}
	f, ok := kids[0].(function)
	if !ok {
		return nil, failf(ErrValue, "%s cannot be called", typeName(kids[0]))
	}
	if err := r.pay(kids[1:]...); err != nil {
		return nil, err
	}
	return f(r.arguments(n, kids[1:]))
}

// arguments divides values into those by position and those by name.
func (r *run) arguments(n *node, values []any) *call {
	plain := len(values) - len(n.names)
	c := &call{r: r, args: values[:plain], named: map[string]any{}}
	for i, name := range n.names {
		c.named[name] = values[plain+i]
	}
	return c
}

// apply evaluates a filter or a test. As in jinja2, an unknown one is an error only once it is
// evaluated: templates may test whether a filter exists before they use it.
func (r *run) apply(of map[string]filter, kind string, n *node, s *scope) (any, error) {
	f := of[n.text]
	if f == nil {
		return nil, failf(ErrSyntax, "the %s %q is not known", kind, n.text)
	}
	kids, err := r.values(n.kids, s)
	if err != nil {
		return nil, err
	}
	if len(kids) > 1 || kind == "filter" && !cheap[n.text] {
		if err := r.pay(kids...); err != nil {
			return nil, err
		}
	}
	return f(r.arguments(n, kids[1:]), kids[0])
}

// cheap lists the filters that do not read the whole value.
var cheap = map[string]bool{"length": true, "count": true, "first": true, "last": true, "default": true, "d": true}

func makeDict(kids []any) (any, error) {
	d := newDict()
	for i := 0; i < len(kids); i += 2 {
		switch kids[i].(type) {
		case string, int64:
			d.set(kids[i], kids[i+1])
		default:
			return nil, failf(ErrValue, "a key is %s: it must be a string or an integer", typeName(kids[i]))
		}
	}
	return d, nil
}

// attribute returns v.name: a method, or an item of a mapping.
func (r *run) attribute(v any, name string) (any, error) {
	if u, ok := v.(undefined); ok {
		return nil, failf(ErrValue, "%s is not defined: it has no attribute %s", u.name, name)
	}
	if d, ok := v.(*dict); ok {
		if f, ok := dictMethods[name]; ok && !d.space {
			return bind(f, v), nil
		}
		if item, ok := d.values[name]; ok {
			return item, nil
		}
		return undefined{name}, nil
	}
	if s, ok := v.(string); ok {
		if f, ok := stringMethods[name]; ok {
			return bind(func(c *call, _ any) (any, error) { return f(c, s) }, v), nil
		}
	}
	if _, ok := v.(*list); ok {
		if f, ok := listMethods[name]; ok {
			return bind(f, v), nil
		}
	}
	return undefined{name}, nil
}

func bind(f func(*call, any) (any, error), v any) function {
	return func(c *call) (any, error) {
		if err := c.r.pay(v); err != nil {
			return nil, err
		}
		return f(c, v)
	}
}

// index returns v[i].
func index(v, i any) (any, error) {
	switch v := v.(type) {
	case undefined:
		return nil, failf(ErrValue, "%s is not defined: it has no items", v.name)
	case *dict:
		if item, ok := v.item(i); ok {
			return item, nil
		}
		return undefined{text(i)}, nil
	}
	at, ok := integer(i)
	if !ok {
		return undefined{text(i)}, nil
	}
	if s, ok := v.(string); ok {
		return character(s, at), nil
	}
	items, err := iterate(v)
	if err != nil {
		return undefined{text(i)}, nil
	}
	if at < 0 {
		at += int64(len(items))
	}
	if at < 0 || at >= int64(len(items)) {
		return undefined{text(i)}, nil
	}
	return items[at], nil
}

// character returns the character at a position, which counts from the end if it is negative.
func character(s string, at int64) any {
	for rest := s; at < 0 && rest != ""; at++ {
		r, size := utf8.DecodeLastRuneInString(rest)
		if at == -1 {
			return string(r)
		}
		rest = rest[:len(rest)-size]
	}
	for _, r := range s {
		if at == 0 {
			return string(r)
		}
		at--
	}
	return undefined{"a character"}
}

// slice returns v[start:stop:step].
func slice(v any, bounds []any) (any, error) {
	items, err := iterate(v)
	if _, isDict := v.(*dict); isDict || err != nil {
		return nil, failf(ErrValue, "%s has no slices", typeName(v))
	}
	n := int64(len(items))
	step := int64(1)
	if bounds[2] != nil {
		var ok bool
		if step, ok = integer(bounds[2]); !ok || step == 0 {
			return nil, failf(ErrValue, "the step of a slice is %s: it must be an integer other than 0", text(bounds[2]))
		}
	}
	low, high := int64(0), n // bounds of start and stop
	start, stop := low, high
	if step < 0 {
		low, high = -1, n-1
		start, stop = high, low
	}
	for i, to := range []*int64{&start, &stop} {
		if bounds[i] == nil {
			continue
		}
		at, ok := integer(bounds[i])
		if !ok {
			return nil, failf(ErrValue, "a bound of a slice is %s: it must be an integer", typeName(bounds[i]))
		}
		if at < 0 {
			at += n
		}
		*to = min(max(at, low), high)
	}
	out := &list{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		out.items = append(out.items, items[i])
		if step > n || step < -n {
			break
		}
	}
	if _, ok := v.(string); ok {
		var sb strings.Builder
		for _, item := range out.items {
			sb.WriteString(item.(string))
		}
		return sb.String(), nil
	}
	return out, nil
}
