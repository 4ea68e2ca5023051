package generate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/native/lm/generate"
)

// pieces is a tokenizer of given texts; the last token ends a text.
type pieces []string

func (pieces) Encode(string) ([]int32, error) { return []int32{0}, nil }
func (p pieces) Stream() generate.Stream      { return p }
func (p pieces) Next(token int32) string      { return p[token] }
func (pieces) Rest() string                   { return "" }
func (p pieces) End() []int32                 { return []int32{int32(len(p) - 1)} }
func (p pieces) Size() int                    { return len(p) }

// ascii has a token for each character, some longer ones, and the end.
func ascii() pieces {
	p := pieces{"é", `{"`, `":`, `", "`, "]}", "true", "tru", "alse", `\u00`, " [", "\n    ", "}}", `"name": "`, `x"}`}
	for c := rune(' '); c < 127; c++ {
		p = append(p, string(c))
	}
	return append(p, "\n", "")
}

// allowed returns the tokens that may follow.
func allowed(p pieces, f func([]int32, []uint32), result []int32) (ids []int32) {
	bits := make([]uint32, (len(p)+31)/32)
	f(result, bits)
	for id := range p {
		if bits[id/32]>>(id%32)&1 != 0 {
			ids = append(ids, int32(id))
		}
	}
	return ids
}

// accepts reports whether a grammar has a text, character by character.
func accepts(t *testing.T, schema, text string) bool {
	t.Helper()
	g, err := generate.NewVocabulary(ascii()).JSON(schemaOf(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return has(g, text)
}

// has reports whether a grammar over the vocabulary of ascii has a text, character by character.
func has(g *generate.Grammar, text string) bool {
	p := ascii()
	f := g.Allow()
	var result []int32
	for _, c := range text {
		id := int32(slices.Index(p, string(c)))
		if !slices.Contains(allowed(p, f, result), id) {
			return false
		}
		result = append(result, id)
	}
	return slices.Contains(allowed(p, f, result), int32(len(p)-1))
}

// TestCalls has results that call functions, and some that must not be.
func TestCalls(t *testing.T) {
	v := generate.NewVocabulary(ascii())
	functions := []generate.Function{{Name: "f", Parameters: json.RawMessage(person)}, {Name: "g"}}
	const f, g = `{"name": "f", "arguments": {"name": "x"}}`, `{"name":"g","parameters":{}}`
	marked := func(text string) string { return generate.CallBegin + "\n" + text + "\n" + generate.CallEnd }
	for _, c := range []struct {
		options generate.CallOptions
		yes, no []string
	}{
		{generate.CallOptions{}, []string{"", "x < y", "<tool_cal", "<tool x_call>", "<<tool", "a" + marked(f) + marked(g) + "b", marked("{\"name\":\"g\",\"arguments\":{\"s\":\"" + generate.CallEnd + "\"}}"), f}, []string{generate.CallBegin, "<tool<tool_call>", marked(`{"name":"h","arguments":{}}`), marked(f) + generate.CallBegin, marked(`{"name":"f","arguments":{}}`)}},
		{generate.CallOptions{Once: true}, []string{"", "a" + marked(f)}, []string{marked(f) + "b", marked(f) + marked(g)}},
		{generate.CallOptions{Required: true}, []string{f, g, marked(f), marked(f) + "\n" + marked(g)}, []string{"", "a", f + g, f + marked(g), marked(f) + "x"}},
		{generate.CallOptions{Required: true, Once: true}, []string{f, marked(g)}, []string{"", marked(f) + marked(g)}},
	} {
		grammar, err := v.Calls(functions, c.options)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range c.yes {
			if !has(grammar, text) {
				t.Errorf("%+v lacks %q", c.options, text)
			}
		}
		for _, text := range c.no {
			if has(grammar, text) {
				t.Errorf("%+v has %q", c.options, text)
			}
		}
	}
	for _, bad := range [][]generate.Function{nil, {{Name: "f", Parameters: json.RawMessage(`{"pattern": "a"}`)}}} {
		if _, err := v.Calls(bad, generate.CallOptions{}); !errors.Is(err, generate.ErrRequest) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func schemaOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

const person = `{"type": "object", "title": "Person", "properties": {"name": {"type": "string"}, "age": {"type": ["integer", "null"]}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}},
	"required": ["name"], "additionalProperties": false}`

const tree = `{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"v": {"type": "number"}, "of": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["v", "of"]}}}`

// TestGrammar has texts that a grammar must have and must not have.
func TestGrammar(t *testing.T) {
	for _, c := range []struct {
		schema string
		yes    []string
		no     []string
	}{
		{"", []string{`{}`, `{"a":1}`, `{"a": [1, -2.5e+3, {"b": null}], "c": "\"\u00e9é"}`, "{\n  \"a\": true\n}", ` {"":""}`}, []string{`[]`, `1`, `{"a":01}`, `{"a":1,}`, `{a:1}`, `{"a":+1}`, `{"a":"\x"}`, `{"a":1}}`, `{"a"`, `{"a":.5}`, `{"a":1.}`}},
		{"true", []string{`[]`, `17`, `"a"`, `null`, `-0.5`}, []string{`nul`, `[1,]`, `--1`}},
		{person, []string{`{"name":"x"}`, `{"name": "x", "age": 3}`, `{"name":"x","age":null,"tags":["a","b"]}`, `{"name":"x","tags":[]}`}, []string{`{}`, `{"age":3}`, `{"age":3,"name":"x"}`, `{"name":"x","age":3.5}`, `{"name":"x","tags":["c"]}`, `{"name":"x","tags":["a","a","a"]}`, `{"name":"x","z":1}`}},
		{tree, []string{`{"v":1,"of":[{"v":2,"of":[]},{"v":-3e5,"of":[{"v":0,"of":[]}]}]}`}, []string{`{"v":1}`, `{"v":1,"of":[1]}`}},
		{`{"type": "array", "items": {"type": "boolean"}, "minItems": 2}`, []string{`[true,false]`, `[true,true,true]`}, []string{`[]`, `[true]`}},
		{`{"type": "array", "maxItems": 0}`, []string{`[]`}, []string{`[1]`}},
		{`{"anyOf": [{"const": {"a": [1]}}, {"type": "object", "additionalProperties": {"type": "integer"}}]}`, []string{`{"a":[1]}`, `{"q":3}`, `{}`}, []string{`{"a":[2]}`}},
		{`{"anyOf": [{"type": "string"}, {"$ref": "#"}]}`, []string{`"a"`}, []string{`1`}},
		{`{"properties": {"a": {}, "b": {"type": "null"}}}`, []string{`{}`, `{"a":[1]}`, `{"b":null}`, `{"a":"x","b":null}`}, []string{`{"b":null,"a":1}`, `{,"b":null}`}},
	} {
		for _, text := range c.yes {
			if !accepts(t, c.schema, text) {
				t.Errorf("%s lacks %s", c.schema, text)
			}
		}
		for _, text := range c.no {
			if accepts(t, c.schema, text) {
				t.Errorf("%s has %s", c.schema, text)
			}
		}
	}
}

// TestGrammarsResults takes random tokens of those that are allowed, until the text may end: it is JSON, and has the
// fields of the schema.
func TestGrammarsResults(t *testing.T) {
	p := ascii()
	v := generate.NewVocabulary(p)
	r := rand.New(rand.NewPCG(1, 2))
	for _, schema := range []string{"", person, tree} {
		g, err := v.JSON(schemaOf(schema))
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			f := g.Allow()
			var result []int32
			var text strings.Builder
			for end := int32(len(p) - 1); len(result) < 1000; {
				ids := allowed(p, f, result)
				if len(ids) == 0 {
					t.Fatalf("nothing may follow %s", &text)
				}
				id := ids[r.IntN(len(ids))]
				if len(result) > 20 { // ends what has begun
					for _, c := range strings.Split(`" } ] : 0 [ { ,`, " ") {
						if close := int32(slices.Index(p, c)); slices.Contains(ids, close) {
							id = close
							break
						}
					}
				}
				if slices.Contains(ids, end) {
					break
				}
				result = append(result, id)
				text.WriteString(p[id])
			}
			d := json.NewDecoder(bytes.NewReader([]byte(text.String())))
			d.DisallowUnknownFields()
			var into any = &map[string]any{}
			switch schema {
			case person:
				into = &struct {
					Name string
					Age  *int
					Tags []string
				}{}
			case tree:
				into = &node{}
			}
			if err := d.Decode(into); err != nil {
				t.Fatalf("%s: %v", &text, err)
			}
		}
	}
}

type node struct {
	V  *float64
	Of []node
}

// TestBadSchemas has schemas that are refused.
func TestBadSchemas(t *testing.T) {
	v := generate.NewVocabulary(ascii())
	for _, c := range []struct{ schema, want string }{
		{`{"type": "string", "pattern": "a+"}`, `"pattern": supported are type,`},
		{`{"type": "text"}`, `the type "text"`},
		{`{"type": 3}`, `the type 3`},
		{`{"type": []}`, `the type []`},
		{`{"$ref": "#"}`, `refers to itself`},
		{`{"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}`, `refers to itself`},
		{`{"$ref": "#/$defs/a"}`, `the $ref "#/$defs/a"`},
		{`{"$ref": "other.json"}`, `the $ref "other.json"`},
		{`{"enum": []}`, `empty enum`},
		{`{"anyOf": []}`, `empty anyOf`},
		{`{"properties": {"a": {}}, "required": ["b"]}`, `requires "b"`},
		{`{"required": ["b"], "type": "object"}`, `requires "b"`},
		{`{"type": "array", "minItems": 3, "maxItems": 2}`, `minItems 3 and maxItems 2`},
		{`{"type": "array", "maxItems": 1000000000}`, `maxItems 1000000000`},
		{`{"properties": []}`, `properties that are no object`},
		{`[1]`, `an object or a boolean`},
		{`false`, `allows no value`},
		{`{"minItems": "x"}`, `malformed`},
		{`{"enum": ["` + strings.Repeat("a", 1<<16) + `"]}`, `more than 32768 symbols`},
	} {
		if _, err := v.JSON(json.RawMessage(c.schema)); !errors.Is(err, generate.ErrRequest) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, want %s", c.schema, err, c.want)
		}
	}
}
