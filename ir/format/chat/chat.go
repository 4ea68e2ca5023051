package chat

import (
	"time"
)

// Template is a chat template. It may be used by several goroutines.
type Template struct{ body []*node }

// Message is a turn of a conversation.
type Message struct {
	Role    string // "system", "user", "assistant", "tool"
	Content string
	// More are further keys of the message, such as "tool_calls", as values of [Template.Render].
	More map[string]any
}

func (m Message) value(depth int) (any, error) {
	d := newDict()
	d.set("role", m.Role)
	d.set("content", m.Content)
	more, err := fromGo(m.More, depth)
	if err != nil {
		return nil, err
	}
	for _, k := range more.(*dict).keys {
		d.set(k, more.(*dict).values[k])
	}
	return d, nil
}

// Parse reads a template. The error is an [*Error] of kind [ErrSyntax] or [ErrLimit].
func Parse(source string) (*Template, error) {
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{cursor: cursor{tokens: tokens}}
	body := p.block()
	if p.err != nil {
		return nil, p.err
	}
	return &Template{body}, nil
}

// Options are the options of [Template.RenderWith].
type Options struct {
	// Now is the time for strftime_now; the zero value is the time of the call.
	Now time.Time
	// Quote rewrites each text of the messages, and of other lists and mappings among the
	// variables. A tokenizer's Quote keeps them from forging special tokens. Nil changes nothing.
	Quote func(string) string
}

// Render returns the text for the given variables: nil, bool, integers, floats, strings, [Message],
// [JSON], and slices and string-keyed maps of these, which are iterated in the order of their keys.
// Templates read messages, add_generation_prompt, bos_token, eos_token and tools. The error is an
// [*Error], of kind [ErrRaised] if the template refuses the conversation.
func (t *Template) Render(variables map[string]any) (string, error) {
	return t.RenderWith(variables, Options{})
}

// RenderWith is [Template.Render] with options.
func (t *Template) RenderWith(variables map[string]any, o Options) (string, error) {
	if t == nil {
		return "", &Error{Kind: ErrValue, Reason: "the template is nil: it must be from Parse"}
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	globals, err := fromGo(variables, 0)
	if err != nil {
		return "", at(1, err)
	}
	if o.Quote != nil {
		for _, v := range globals.(*dict).values {
			quote(v, o.Quote)
		}
	}
	r := &run{now: o.Now, steps: maxSteps}
	s := &scope{names: make(map[string]any, len(variables))}
	for name := range variables {
		s.names[name] = globals.(*dict).values[name]
	}
	if _, err := r.block(t.body, s); err != nil {
		return "", err
	}
	return string(r.out), nil
}
