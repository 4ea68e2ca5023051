package generate_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
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

// allowed returns the tokens that may follow, and their bits.
func allowed(p pieces, f func([]int32, []uint32), result []int32) (ids []int32, bits []uint32) {
	bits = make([]uint32, (len(p)+31)/32)
	f(result, bits)
	for id := range p {
		if bits[id/32]>>(id%32)&1 != 0 {
			ids = append(ids, int32(id))
		}
	}
	return ids, bits
}

// has reports whether a grammar over the vocabulary of ascii has a text, character by character, and a hash of what
// it allows on the way.
func has(g *generate.Grammar, text string) (ok bool, masks uint32) {
	p := ascii()
	f := g.Allow()
	hash := fnv.New32a()
	var result []int32
	next := func() []int32 {
		ids, words := allowed(p, f, result)
		_ = binary.Write(hash, binary.LittleEndian, words)
		return ids
	}
	for _, c := range text {
		id := int32(slices.Index(p, string(c)))
		if !slices.Contains(next(), id) {
			return false, 0
		}
		result = append(result, id)
	}
	return slices.Contains(next(), int32(len(p)-1)), hash.Sum32()
}

var update = flag.Bool("update", false, "write testdata/grammar.json")

// texts are those that a grammar has, with the hashes of what it allows on the way, and some that it lacks.
type texts struct {
	Yes map[string]uint32 `json:"yes"`
	No  []string          `json:"no"`
}

// grammarTable is testdata/grammar.json, which the tests of the npm package read, too.
type grammarTable struct {
	Functions []struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters,omitempty"`
	} `json:"functions"`
	Schemas []struct {
		Schema string `json:"schema"`
		texts
	} `json:"schemas"`
	Calls []struct {
		Required bool `json:"required"`
		Once     bool `json:"once"`
		texts
	} `json:"calls"`
	Bad []struct {
		Schema string `json:"schema"`
		Want   string `json:"want"`
	} `json:"bad"`
}

const grammarFile = "testdata/grammar.json"

func readGrammars(t *testing.T) (table grammarTable) {
	t.Helper()
	data, err := os.ReadFile(grammarFile)
	if err == nil {
		err = json.Unmarshal(data, &table)
	}
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// check compares the texts of a grammar.
func (x texts) check(t *testing.T, what string, g *generate.Grammar, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for text, want := range x.Yes {
		ok, masks := has(g, text)
		if !ok {
			t.Errorf("%s lacks %q", what, text)
		}
		if *update {
			x.Yes[text] = masks
		} else if masks != want {
			t.Errorf("%s allows other tokens within %q", what, text)
		}
	}
	for _, text := range x.No {
		if ok, _ := has(g, text); ok {
			t.Errorf("%s has %q", what, text)
		}
	}
}

// TestGrammar has texts that grammars must have and must not have: of values by a schema, and of results that call
// functions.
func TestGrammar(t *testing.T) {
	v, table := generate.NewVocabulary(ascii()), readGrammars(t)
	for _, c := range table.Schemas {
		g, err := v.JSON(schemaOf(c.Schema))
		c.check(t, c.Schema, g, err)
	}
	var functions []generate.Function
	for _, f := range table.Functions {
		functions = append(functions, generate.Function{Name: f.Name, Parameters: f.Parameters})
	}
	for _, c := range table.Calls {
		options := generate.CallOptions{Required: c.Required, Once: c.Once}
		g, err := v.Calls(functions, options)
		c.check(t, fmt.Sprintf("%+v", options), g, err)
	}
	if *update {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		if err := errors.Join(e.Encode(table), os.WriteFile(grammarFile, out.Bytes(), 0o666)); err != nil {
			t.Fatal(err)
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
				ids, _ := allowed(p, f, result)
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

// halves is a tokenizer whose token 1 is a space and the first bytes of a character.
type halves struct {
	pieces
	last int32
}

func (h halves) Stream() generate.Stream { return &halves{pieces: h.pieces} }

func (h *halves) Next(token int32) string {
	h.last = token
	return h.pieces[token]
}

func (h *halves) Rest() string {
	if h.last == 1 {
		return "\ufffd"
	}
	return ""
}

// TestPartsOfCharacters has a token that ends in a part of a character where a string may have it, and not where a
// space alone may be. A smaller set of bits has the tokens that fit.
func TestPartsOfCharacters(t *testing.T) {
	p := pieces{" ", " ", `"`, ""}
	for len(p) < 40 {
		p = append(p[:len(p)-1], "~", "")
	}
	v := generate.NewVocabulary(halves{pieces: p})
	if v.Text(0) != " " || v.Text(1) != " \ufffd" || v.Text(2) != `"` {
		t.Errorf("texts %q %q %q", v.Text(0), v.Text(1), v.Text(2))
	}
	g, err := v.JSON(json.RawMessage(`{"type": "string"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []int{2, 1, 3} {
		for _, c := range []struct {
			result []int32
			want   uint32
		}{{nil, 0b101}, {[]int32{2}, 0xffff_ffff}, {[]int32{2, 1, 2}, 0}} {
			bits := make([]uint32, words)
			g.Allow()(c.result, bits)
			if bits[0] != c.want {
				t.Errorf("after %v: %b, want %b", c.result, bits[0], c.want)
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
	bad := readGrammars(t).Bad
	bad = append(bad, struct {
		Schema string `json:"schema"`
		Want   string `json:"want"`
	}{`{"enum": ["` + strings.Repeat("a", 1<<16) + `"]}`, `more than 32768 symbols`})
	for _, c := range bad {
		if _, err := v.JSON(json.RawMessage(c.Schema)); !errors.Is(err, generate.ErrRequest) || !strings.Contains(err.Error(), c.Want) {
			t.Errorf("%.80s: %v, want %s", c.Schema, err, c.Want)
		}
	}
}
