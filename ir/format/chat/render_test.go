package chat_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir/format/chat"
)

// outcome is what jinja2 makes of a template: its text, the message by which the template refuses, or the
// text of another error.
type outcome struct {
	Text, Raised, Error, Syntax *string
}

// rendered is testdata/rendered.json, which suite/render.py writes by jinja2 3.1.6 in the environment of the
// transformers library.
type rendered struct {
	Common        map[string]string
	Conversations []map[string]json.RawMessage
	Templates     map[string][]outcome
	Values        json.RawMessage
	Snippets      [][2]json.RawMessage
}

// now is NOW of suite/render.py.
var now = chat.Options{Now: time.Date(2026, 3, 7, 9, 5, 2, 0, time.UTC)}

func load(t *testing.T) rendered {
	t.Helper()
	data, err := os.ReadFile("testdata/rendered.json")
	if err != nil {
		t.Fatal(err)
	}
	var r rendered
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// check renders a template and compares with the outcome.
func check(t *testing.T, name, source string, variables map[string]any, want outcome) {
	t.Helper()
	template, err := chat.Parse(source)
	got := ""
	if err == nil {
		got, err = template.RenderWith(variables, now)
	}
	switch {
	case want.Text != nil:
		if err != nil || got != *want.Text {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, *want.Text)
		}
	case want.Raised != nil:
		if !errors.Is(err, chat.ErrRaised) || !strings.HasSuffix(err.Error(), *want.Raised) {
			t.Errorf("%s: %q (%v), want the refusal %q", name, got, err, *want.Raised)
		}
	case want.Syntax != nil:
		if !errors.Is(err, chat.ErrSyntax) {
			t.Errorf("%s: %q (%v), want the syntax error %q", name, got, err, *want.Syntax)
		}
	default:
		if !errors.Is(err, chat.ErrValue) {
			t.Errorf("%s: %q (%v), want the error %q", name, got, err, *want.Error)
		}
	}
}

// TestTemplates renders templates of the formats of Llama 2 and 3, Qwen 2 and 3, Mistral, Gemma, Phi-3, SmolLM2,
// DeepSeek and ChatML for conversations with system messages, tools, calls, and turns out of order.
func TestTemplates(t *testing.T) {
	r := load(t)
	if len(r.Templates) < 10 {
		t.Fatalf("%d templates", len(r.Templates))
	}
	for name, outcomes := range r.Templates {
		source, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range outcomes {
			variables := map[string]any{}
			for k, v := range r.Common {
				variables[k] = v
			}
			for k, v := range r.Conversations[i] {
				variables[k] = chat.JSON(v)
			}
			check(t, name, string(source), variables, want)
		}
	}
}

// TestSnippets renders the expressions and statements of testdata/snippets.txt.
func TestSnippets(t *testing.T) {
	r := load(t)
	var values map[string]json.RawMessage
	if err := json.Unmarshal(r.Values, &values); err != nil {
		t.Fatal(err)
	}
	variables := map[string]any{}
	for k, v := range values {
		variables[k] = chat.JSON(v)
	}
	for _, snippet := range r.Snippets {
		var source string
		var want outcome
		if err := errors.Join(json.Unmarshal(snippet[0], &source), json.Unmarshal(snippet[1], &want)); err != nil {
			t.Fatal(err)
		}
		check(t, source, source, maps.Clone(variables), want)
	}
}
