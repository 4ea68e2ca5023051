package serve

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir/format/chat"
	"github.com/rlx-go/rlx/native/lm/generate"
	"github.com/rlx-go/rlx/native/lm/internal/mark"
)

// tools are the functions that the model may call in a chat.
type tools struct {
	texts     []json.RawMessage // as the template reads them
	functions []generate.Function
	options   generate.CallOptions
}

// names reports whether there is a function of a name.
func (t *tools) names(name string) bool {
	return slices.ContainsFunc(t.functions, func(f generate.Function) bool { return f.Name == name })
}

// tools returns the functions that the model may call; nil if there are none, or tool_choice is none.
func (b *body) tools(s *Server) (*tools, error) {
	choice, err := b.toolChoice()
	if err != nil || len(b.Tools) == 0 || choice == "none" {
		return nil, err
	}
	t := &tools{texts: b.Tools}
	for _, text := range b.Tools {
		f, err := functionOf(s, text)
		if err != nil {
			return nil, err
		}
		if t.names(f.Name) {
			return nil, refuse("tools", "tools has %q twice: names must differ", f.Name)
		}
		t.functions = append(t.functions, f)
	}
	t.options.Required = choice != "auto"
	t.options.Once = b.Parallel != nil && !*b.Parallel
	if t.options.Required && choice != "required" {
		name := strings.TrimPrefix(choice, named)
		if !t.names(name) {
			return nil, refuse("tool_choice", "tool_choice names %q: tools must have it", name)
		}
		t.functions = slices.DeleteFunc(t.functions, func(f generate.Function) bool { return f.Name != name })
	}
	switch {
	case b.IgnoreEOS:
		return nil, refuse("ignore_eos", "ignore_eos is true with tools: a call must end")
	case b.ResponseFormat != nil && b.ResponseFormat.Type != "text":
		return nil, refuse("response_format", "response_format and tools are given: one must be left out")
	}
	return t, nil
}

// named precedes the name of a function in results of toolChoice.
const named = "function:"

// toolChoice returns none, auto, required, or the name of the function that must be called, after named.
func (b *body) toolChoice() (string, error) {
	if !given(b.ToolChoice) {
		return "auto", nil
	}
	var choice string
	var one struct {
		Type     string
		Function struct{ Name string }
	}
	switch {
	case len(b.Tools) == 0 && string(b.ToolChoice) != `"none"`:
		return "", refuse("tool_choice", "tool_choice is given without tools: it must be left out")
	case json.Unmarshal(b.ToolChoice, &choice) == nil && slices.Contains([]string{"none", "auto", "required"}, choice):
		return choice, nil
	case json.Unmarshal(b.ToolChoice, &one) == nil && one.Type == "function":
		return named + one.Function.Name, nil
	}
	return "", refuse("tool_choice", "tool_choice is %.80s: it must be none, auto, required, or an object with a function", b.ToolChoice)
}

// functionOf returns the function of an element of tools. A schema that grammars do not support is that of any object,
// unless the function is strict.
func functionOf(s *Server, text json.RawMessage) (f generate.Function, err error) {
	var x struct {
		Type     string
		Function struct {
			Name       string
			Parameters json.RawMessage
			Strict     bool
		}
	}
	if err := json.Unmarshal(text, &x); err != nil || x.Type != "function" || x.Function.Name == "" {
		return f, refuse("tools", "tools has %.80s: it must have the type function, and a function with a name", text)
	}
	f.Name = x.Function.Name
	if !given(x.Function.Parameters) {
		return f, nil
	}
	if _, err := s.words().JSON(x.Function.Parameters); err == nil {
		f.Parameters = x.Function.Parameters
	} else if x.Function.Strict {
		return f, refuse("tools", "the function %q: %s", f.Name, requestText(err))
	}
	return f, nil
}

// call is a call of a function in a result.
type call struct{ name, arguments string }

// caller divides a result that arrives in pieces into text and calls.
type caller struct {
	tools *tools
	begun bool   // there was text or a call
	after bool   // the last of them was a call, and white space that follows is none of the text
	held  string // what may belong to a call
}

// add returns the text and the calls that the next piece completes.
func (c *caller) add(piece string) (text string, calls []call) {
	c.held += piece
	if !c.begun {
		if c.held = strings.TrimLeft(c.held, " \n"); c.held == "" || strings.ContainsAny(c.held[:1], "{[") {
			return "", nil // the whole may be a call, or a list of calls
		}
	}
	for {
		if c.after {
			c.held = strings.TrimLeft(c.held, " \n")
		}
		before, after, found := strings.Cut(c.held, generate.CallBegin)
		if !found {
			before = c.held[:len(c.held)-mark.Begun(c.held, generate.CallBegin)]
		}
		text, c.held = text+before, c.held[len(before):]
		c.begun, c.after = c.begun || before != "", c.after && before == ""
		if !found {
			return text, calls
		}
		next, rest, ok := c.marked(after)
		if !ok {
			return text, calls
		}
		calls, c.held, c.begun, c.after = append(calls, next), rest, true, true
	}
}

// marked returns the call before the mark that ends it, and what follows. A text in a call may contain the mark.
func (c *caller) marked(text string) (x call, rest string, ok bool) {
	for at := 0; ; at += len(generate.CallEnd) {
		i := strings.Index(text[at:], generate.CallEnd)
		if i < 0 {
			return call{}, "", false
		}
		at += i
		if calls := c.calls(text[:at]); len(calls) == 1 {
			return calls[0], text[at+len(generate.CallEnd):], true
		}
	}
}

// divide leaves the text of a part of a result, and adds the calls that it completes.
func (c *caller) divide(x *piece) {
	x.text, x.calls = c.add(x.text)
	if x.finish != nil {
		text, calls := c.rest()
		x.text, x.calls = x.text+text, append(x.calls, calls...)
	}
}

// rest returns the rest at the end of an answer: text, or calls without marks.
func (c *caller) rest() (text string, calls []call) {
	held := c.held
	c.held = ""
	if !c.begun {
		if calls := c.calls(held); len(calls) > 0 {
			return "", calls
		}
	}
	return held, nil
}

// calls returns the calls that a text of JSON describes: an object, a list, or several objects, as Llama separates them
// by semicolons, and as they are where the marks are special tokens, which have no text. It returns none for anything else.
func (c *caller) calls(text string) (all []call) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimLeft(text, "; \n") {
		d := json.NewDecoder(strings.NewReader(text))
		var next json.RawMessage
		if d.Decode(&next) != nil {
			return nil
		}
		list := make([]described, 1)
		if json.Unmarshal(next, &list[0]) != nil && json.Unmarshal(next, &list) != nil {
			return nil
		}
		for _, x := range list {
			arguments := x.Arguments
			if arguments == nil {
				arguments = x.Parameters
			}
			if !c.tools.names(x.Name) || !bytes.HasPrefix(arguments, []byte("{")) {
				return nil
			}
			all = append(all, call{x.Name, string(arguments)})
		}
		text = text[d.InputOffset():]
	}
	return all
}

// described is a call as models write it.
type described struct {
	Name                  string
	Arguments, Parameters json.RawMessage
}

// callIn is a call in a message of an earlier answer.
type callIn struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// templateCalls returns calls as templates read them, with arguments that are objects.
func templateCalls(calls []callIn) (chat.JSON, error) {
	out := []any{}
	for _, x := range calls {
		arguments := json.RawMessage(x.Function.Arguments)
		if x.Type != "function" || x.Function.Name == "" || !json.Valid(arguments) {
			return nil, refuse("messages", "a message has the call %q: it must have the type function, a name, and arguments in JSON", x.ID)
		}
		out = append(out, map[string]any{"id": x.ID, "type": x.Type, "function": map[string]any{"name": x.Function.Name, "arguments": arguments}})
	}
	return json.Marshal(out)
}
