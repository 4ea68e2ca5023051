package serve

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/rlx-go/rlx/native/lm/generate"
)

// TestFormats finds calls in texts as models write them: as their chat templates write the calls of earlier answers, by
// transformers 5.24, without special tokens. Each text arrives in two pieces, divided anywhere.
func TestFormats(t *testing.T) {
	const (
		arguments = `{"city": "Łódź \"x\"\n", "days": 2, "n": null, "l": [1, "a", {"b": 1e+21}]}`
		weather   = `{"name": "get_weather", "arguments": ` + arguments + `}`
		stop      = `{"name": "stop", "arguments": {}}`
	)
	one, two := []call{{"get_weather", arguments}}, []call{{"get_weather", arguments}, {"stop", "{}"}}
	use := &tools{functions: []generate.Function{{Name: "get_weather"}, {Name: "stop"}}}
	for _, c := range []struct {
		name, result, text string
		calls              []call
	}{
		{"Qwen 2.5 and 3, Hermes", "<tool_call>\n" + weather + "\n</tool_call>", "", one},
		{"two of these", "<tool_call>\n" + weather + "\n</tool_call>\n<tool_call>\n" + stop + "\n</tool_call>", "", two},
		{"after thoughts", "<think>\nhm\n</think>\n\n<tool_call>\n" + weather + "\n</tool_call>", "<think>\nhm\n</think>\n\n", one},
		{"with marks that are special tokens", "\n" + weather + "\n\n\n" + stop + "\n", "", two},
		{"Llama 3.1", `{"name": "get_weather", "parameters": ` + arguments + `}`, "", one},
		{"two of these", `{"name": "get_weather", "parameters": ` + arguments + `}; {"name": "stop", "parameters": {}}`, "", two},
		{"Mistral", ` [{"name": "get_weather", "arguments": ` + arguments + `, "id": "call00001"}, {"name": "stop", "arguments": {}, "id": "call00002"}]`, "", two},
		{"another function", `{"name": "go", "arguments": {}}`, `{"name": "go", "arguments": {}}`, nil},
		{"JSON", `{"name": "stop"}`, `{"name": "stop"}`, nil},
		{"a list", "[1] says so", "[1] says so", nil},
		{"text", "a < b", "a < b", nil},
	} {
		for at := range len(c.result) + 1 {
			var text string
			var calls []call
			parser := &caller{tools: use}
			for _, piece := range []string{c.result[:at], c.result[at:]} {
				more, found := parser.add(piece)
				text, calls = text+more, append(calls, found...)
			}
			more, found := parser.rest()
			if text, calls = text+more, append(calls, found...); text != c.text || !reflect.DeepEqual(calls, c.calls) {
				t.Fatalf("%s: %q, divided at %d: the text is %q, the calls are %q; want %q and %q", c.name, c.result, at, text, calls, c.text, c.calls)
			}
		}
	}
}

// TestIDs checks that ids of calls are those that templates of Mistral accept: nine letters or digits, and no two the same.
func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range (&answer{}).callsOf(piece{calls: make([]call, 100)}, true) {
		id, _ := x["id"].(string)
		if text, err := json.Marshal(id); err != nil || len(id) != 9 || len(text) != 11 || seen[id] {
			t.Errorf("the id %q", id)
		}
		seen[id] = true
	}
}
