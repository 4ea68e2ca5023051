package generate

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Bounds of a schema.
const (
	maxSymbols = 1 << 15
	maxItems   = 1024 // minItems and maxItems
	maxDigits  = 16
	maxIndent  = 16
)

// schemaCompiler makes the symbols of a grammar from a JSON schema.
type schemaCompiler struct {
	root    json.RawMessage
	refs    map[string]*symbol // by $ref
	symbols int
	space   *symbol
	value   *symbol // any value
	err     error
}

// newSchemaCompiler returns a compiler of a schema, which its $ref refer to.
func newSchemaCompiler(schema json.RawMessage) *schemaCompiler {
	c := &schemaCompiler{root: schema, refs: map[string]*symbol{}}
	c.space = c.choice(c.sequence(), c.text(" "), c.sequence(c.text("\n"), c.times(c.text(" "), 0, maxIndent)))
	c.value = &symbol{kind: choice}
	c.value.parts = []*symbol{c.anyObject(c.value), c.array(c.value, 0, -1), c.string(), c.number(), c.text("true"), c.text("false"), c.text("null")}
	return c
}

// jsonGrammar returns the grammar of the values that a schema describes; nil describes objects.
func jsonGrammar(schema json.RawMessage) (*symbol, error) {
	c := newSchemaCompiler(schema)
	of := c.value.parts[0]
	if schema != nil {
		of = c.schema(schema)
	}
	root := c.sequence(c.space, of)
	if m := (&machine{}); c.err == nil && m.start(of) == nil {
		c.refuse("allows no value: it refers to itself alone")
	}
	return root, c.err
}

func (c *schemaCompiler) refuse(text string, args ...any) *symbol {
	if c.err == nil {
		c.err = refuse("the JSON schema "+text, args...)
	}
	return c.value
}

func (c *schemaCompiler) add(s symbol) *symbol {
	if c.symbols++; c.symbols > maxSymbols {
		c.refuse("has more than %d symbols", maxSymbols)
	}
	return &s
}

func (c *schemaCompiler) sequence(parts ...*symbol) *symbol {
	return c.add(symbol{kind: sequence, parts: parts})
}

func (c *schemaCompiler) choice(parts ...*symbol) *symbol {
	return c.add(symbol{kind: choice, parts: parts})
}

func (c *schemaCompiler) many(x *symbol) *symbol {
	return c.add(symbol{kind: repeated, parts: []*symbol{x}})
}

// oneOf returns a byte of a range for each pair of its ends.
func (c *schemaCompiler) oneOf(ends string) *symbol {
	s := symbol{kind: oneByte}
	for i := 0; i < len(ends); i += 2 {
		for b := int(ends[i]); b <= int(ends[i+1]); b++ {
			s.bytes[b/64] |= 1 << (b % 64)
		}
	}
	return c.add(s)
}

func (c *schemaCompiler) text(text string) *symbol {
	parts := make([]*symbol, len(text))
	for i := range len(text) {
		parts[i] = c.oneOf(text[i:i+1] + text[i:i+1])
	}
	return c.sequence(parts...)
}

// times returns x from least to most times.
func (c *schemaCompiler) times(x *symbol, least, most int) *symbol {
	s := c.sequence()
	for i := range most {
		if s = c.sequence(x, s); i < most-least {
			s = c.choice(c.sequence(), s)
		}
	}
	return s
}

func (c *schemaCompiler) string() *symbol {
	hex := c.oneOf("09afAF")
	escape := c.sequence(c.text(`\`), c.choice(c.oneOf(`""\\//bbffnnrrtt`), c.sequence(c.text("u"), hex, hex, hex, hex)))
	return c.sequence(c.text(`"`), c.many(c.choice(c.oneOf(" !#[]\xff"), escape)), c.text(`"`))
}

func (c *schemaCompiler) integer() *symbol {
	digits := c.choice(c.text("0"), c.sequence(c.oneOf("19"), c.times(c.oneOf("09"), 0, maxDigits-1)))
	return c.sequence(c.choice(c.sequence(), c.text("-")), digits)
}

func (c *schemaCompiler) number() *symbol {
	digit := c.oneOf("09")
	fraction := c.sequence(c.text("."), c.times(digit, 1, maxDigits))
	exponent := c.sequence(c.oneOf("eeEE"), c.choice(c.sequence(), c.oneOf("++--")), c.times(digit, 1, 2))
	return c.sequence(c.integer(), c.choice(c.sequence(), fraction), c.choice(c.sequence(), exponent))
}

// list returns items between brackets, separated by commas: least or more of them, at most most of them if that is not negative.
func (c *schemaCompiler) list(brackets string, item *symbol, least, most int) *symbol {
	next := c.sequence(c.text(","), c.space, item)
	var items *symbol
	switch {
	case most == 0:
		items = c.sequence()
	case most > 0:
		items = c.sequence(c.space, item, c.times(next, max(least-1, 0), most-1))
	default:
		items = c.sequence(c.space, item, c.times(next, max(least-1, 0), max(least-1, 0)), c.many(next))
	}
	if least == 0 {
		items = c.choice(c.sequence(), items)
	}
	return c.sequence(c.text(brackets[:1]), items, c.space, c.text(brackets[1:]))
}

func (c *schemaCompiler) array(item *symbol, least, most int) *symbol {
	return c.list("[]", item, least, most)
}

func (c *schemaCompiler) anyObject(value *symbol) *symbol {
	return c.list("{}", c.sequence(c.string(), c.text(":"), c.space, value), 0, -1)
}

// schemaKeys are the keywords of a schema that restrict values.
type schemaKeys struct {
	Type       json.RawMessage   `json:"type"`
	Properties json.RawMessage   `json:"properties"`
	Required   []string          `json:"required"`
	Additional json.RawMessage   `json:"additionalProperties"`
	Items      json.RawMessage   `json:"items"`
	MinItems   *int              `json:"minItems"`
	MaxItems   *int              `json:"maxItems"`
	Enum       []json.RawMessage `json:"enum"`
	Const      json.RawMessage   `json:"const"`
	AnyOf      []json.RawMessage `json:"anyOf"`
	OneOf      []json.RawMessage `json:"oneOf"`
	Ref        string            `json:"$ref"`
}

// ignoredKeys are keywords that restrict nothing; knownKeys are those of schemaKeys, and aloneKeys those beside which only a
// type may be: a conjunction is not computed.
var (
	aloneKeys   = []string{"$ref", "const", "enum", "anyOf", "oneOf"}
	ignoredKeys = []string{"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions"}
	knownKeys   = []string{"type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "enum", "const", "anyOf", "oneOf", "$ref"}
)

// schema returns the values of a schema.
func (c *schemaCompiler) schema(data json.RawMessage) *symbol {
	if c.err != nil {
		return c.value
	}
	switch text := string(bytes.TrimSpace(data)); text {
	case "true":
		return c.value
	case "false":
		return c.refuse("has a false, which allows no value")
	}
	names, _, err := members(data)
	if err != nil {
		return c.refuse("has %.40q: it must be an object or a boolean", string(data))
	}
	for _, name := range names {
		if !slices.Contains(ignoredKeys, name) && !slices.Contains(knownKeys, name) {
			return c.refuse("has %q: supported are %s", name, strings.Join(knownKeys, ", "))
		}
	}
	if i := slices.IndexFunc(aloneKeys, func(name string) bool { return slices.Contains(names, name) }); i >= 0 {
		for _, other := range knownKeys {
			if other != "type" && other != aloneKeys[i] && slices.Contains(names, other) {
				return c.refuse("has %q beside %q: only type may be beside it", other, aloneKeys[i])
			}
		}
	}
	var k schemaKeys
	if err := json.Unmarshal(data, &k); err != nil {
		return c.refuse("is malformed: %v", err)
	}
	return c.of(&k)
}

func (c *schemaCompiler) of(k *schemaKeys) *symbol {
	switch {
	case k.Ref != "":
		return c.ref(k.Ref)
	case k.Const != nil:
		return c.literals(k.Const)
	case k.Enum != nil:
		return c.literals(k.Enum...)
	case k.AnyOf != nil || k.OneOf != nil:
		s := c.choice()
		for _, x := range append(k.AnyOf, k.OneOf...) {
			s.parts = append(s.parts, c.schema(x))
		}
		if len(s.parts) == 0 {
			return c.refuse("has an empty anyOf or oneOf")
		}
		return s
	}
	types, err := namesOf(k.Type)
	if err != nil || k.Type != nil && len(types) == 0 {
		return c.refuse("has the type %s: it must be a name or a list of names", k.Type)
	}
	switch {
	case len(types) > 0:
	case k.Properties != nil || k.Required != nil || k.Additional != nil:
		types = []string{"object"}
	case k.Items != nil || k.MinItems != nil || k.MaxItems != nil:
		types = []string{"array"}
	default:
		return c.value
	}
	s := c.choice()
	for _, name := range types {
		s.parts = append(s.parts, c.typed(name, k))
	}
	return s
}

// namesOf returns a string or a list of strings.
func namesOf(data json.RawMessage) (names []string, err error) {
	var one string
	if data == nil || json.Unmarshal(data, &one) == nil {
		return slices.DeleteFunc([]string{one}, func(s string) bool { return s == "" }), nil
	}
	return names, json.Unmarshal(data, &names)
}

// typed returns the values of a type.
func (c *schemaCompiler) typed(name string, k *schemaKeys) *symbol {
	switch name {
	case "string":
		return c.string()
	case "number":
		return c.number()
	case "integer":
		return c.integer()
	case "boolean":
		return c.choice(c.text("true"), c.text("false"))
	case "null":
		return c.text("null")
	case "array":
		return c.arrayOf(k)
	case "object":
		return c.object(k)
	}
	return c.refuse("has the type %q: it must be string, number, integer, boolean, null, array or object", name)
}

func (c *schemaCompiler) arrayOf(k *schemaKeys) *symbol {
	least, most := 0, -1
	if k.MinItems != nil {
		least = *k.MinItems
	}
	if k.MaxItems != nil {
		most = *k.MaxItems
	}
	if least < 0 || least > maxItems || most > maxItems || k.MaxItems != nil && most < least {
		return c.refuse("has minItems %d and maxItems %d: they must be in order and in [0, %d]", least, most, maxItems)
	}
	item := c.value
	if k.Items != nil {
		item = c.schema(k.Items)
	}
	return c.array(item, least, most)
}

// object returns objects with the properties of a schema, in its order.
func (c *schemaCompiler) object(k *schemaKeys) *symbol {
	if k.Properties == nil {
		return c.freeObject(k)
	}
	names, schemas, err := members(k.Properties)
	if err != nil {
		return c.refuse("has properties that are no object")
	}
	if i := slices.IndexFunc(k.Required, func(name string) bool { return !slices.Contains(names, name) }); i >= 0 {
		return c.refuse("requires %q, which is not among its properties", k.Required[i])
	}
	// first and later are what follows before and after the first property that there is.
	first, later := c.sequence(), c.sequence()
	for i, name := range slices.Backward(names) {
		member := c.sequence(c.space, c.text(quote(name)), c.text(":"), c.space, c.schema(schemas[i]), later)
		next := c.sequence(c.text(","), member)
		if slices.Contains(k.Required, name) {
			first, later = member, next
		} else {
			first, later = c.choice(member, first), c.choice(next, later)
		}
	}
	return c.sequence(c.text("{"), first, c.space, c.text("}"))
}

// quote returns a string as JSON, as models write it: with <, > and & as they are.
func quote(s string) string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has no errors
	return strings.TrimSuffix(text.String(), "\n")
}

// freeObject returns objects whose properties have any names.
func (c *schemaCompiler) freeObject(k *schemaKeys) *symbol {
	switch {
	case len(k.Required) > 0:
		return c.refuse("requires %q, which is not among its properties", k.Required[0])
	case string(bytes.TrimSpace(k.Additional)) == "false":
		return c.text("{}")
	case k.Additional != nil:
		return c.anyObject(c.schema(k.Additional))
	}
	return c.anyObject(c.value)
}

// literals returns one of some values.
func (c *schemaCompiler) literals(values ...json.RawMessage) *symbol {
	s := c.choice()
	for _, v := range values {
		var text bytes.Buffer
		if err := json.Compact(&text, v); err != nil {
			return c.refuse("has a malformed value: %v", err)
		}
		s.parts = append(s.parts, c.text(text.String()))
	}
	if len(s.parts) == 0 {
		return c.refuse("has an empty enum")
	}
	return s
}

// ref returns the values of a schema that "#" or a path such as "#/$defs/name" names.
func (c *schemaCompiler) ref(name string) *symbol {
	if s, ok := c.refs[name]; ok {
		return s
	}
	parts := strings.Split(name, "/")
	data, found := c.root, parts[0] == "#"
	for _, key := range parts[1:] {
		names, values, err := members(data)
		i := slices.Index(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
		if found = found && err == nil && i >= 0; !found {
			break
		}
		data = values[i]
	}
	if !found {
		return c.refuse("has the $ref %q: it must name a part of the schema, such as #/$defs/name", name)
	}
	s := c.choice()
	c.refs[name] = s
	s.parts = []*symbol{c.schema(data)}
	return s
}

// members returns the names and values of a JSON object, in its order.
func members(data json.RawMessage) (names []string, values []json.RawMessage, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.Join(err, errors.New("no object"))
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, nil, err
		}
		names, values = append(names, t.(string)), append(values, v)
	}
	return names, values, nil
}
