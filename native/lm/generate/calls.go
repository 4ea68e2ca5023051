package generate

import (
	"encoding/json"
)

// Marks around a call of a function, as Hermes, Qwen and models after them write it.
const (
	CallBegin = "<tool_call>"
	CallEnd   = "</tool_call>"
)

// Function is a function that a model may ask its user to call.
type Function struct {
	Name string
	// Parameters is the JSON schema of the arguments, an object; nil describes any object.
	Parameters json.RawMessage
}

// CallOptions are the options of [Vocabulary.Calls].
type CallOptions struct {
	// Required has a result consist of calls. Otherwise it is any text, in which each [CallBegin] begins a call.
	Required bool
	// Once allows one call at most, with which the result ends.
	Once bool
}

// Calls returns the grammar of results that call functions. A call is an object of JSON with a name and
// arguments, or parameters, that the schema of the function describes. It is between [CallBegin] and [CallEnd]; a
// required one may stand alone instead. The error is that of [Vocabulary.JSON], for the first schema that is not
// supported, or of kind [ErrRequest] without functions.
func (v *Vocabulary) Calls(functions []Function, o CallOptions) (*Grammar, error) {
	if len(functions) == 0 {
		return nil, refuse("there are no functions to call")
	}
	c := newSchemaCompiler(nil)
	call := c.choice()
	for _, f := range functions {
		arguments, err := jsonGrammar(f.Parameters)
		if err != nil {
			return nil, err
		}
		call.parts = append(call.parts, c.call(f.Name, arguments))
	}
	marked := c.sequence(c.text(CallBegin), c.space, call, c.space, c.text(CallEnd))
	var root *symbol
	switch {
	case !o.Required:
		root = c.textWith(marked, o.Once)
	case o.Once:
		root = c.sequence(c.space, c.choice(call, marked))
	default:
		root = c.sequence(c.space, c.choice(call, c.sequence(marked, c.many(c.sequence(c.space, marked)))))
	}
	return &Grammar{root: root, words: v}, c.err
}

// call returns the object that calls a function.
func (c *schemaCompiler) call(name string, arguments *symbol) *symbol {
	return c.sequence(
		c.text("{"), c.space, c.text(`"name":`), c.space, c.text(quote(name)), c.text(","), c.space,
		c.choice(c.text(`"arguments":`), c.text(`"parameters":`)), arguments, c.space, c.text("}"))
}

// textWith returns any text in which marked follows where CallBegin could; the text ends with it if it may be there
// once. The symbols are an automaton: after[n] follows n bytes of CallBegin, whose first byte is not repeated in it.
func (c *schemaCompiler) textWith(marked *symbol, once bool) *symbol {
	var after [len(CallBegin)]*symbol
	for n := range after {
		after[n] = c.choice()
	}
	first := c.text(CallBegin[:1])
	for n, s := range after {
		next := c.oneOf(CallBegin[n:n+1] + CallBegin[n:n+1])
		other := &symbol{kind: oneByte, free: true}
		for i := range other.bytes {
			other.bytes[i] = ^(next.bytes[i] | first.parts[0].bytes[i])
		}
		s.parts = []*symbol{c.sequence(), c.sequence(other, after[0])}
		if n > 0 {
			s.parts = append(s.parts, c.sequence(first, after[1]))
		}
		if n+1 < len(after) {
			s.parts = append(s.parts, c.sequence(next, after[n+1]))
		}
	}
	rest := after[0]
	if once {
		rest = c.sequence()
	}
	// The last byte of CallBegin begins what follows it in a call.
	tail := c.sequence(marked.parts[1:]...)
	last := after[len(after)-1]
	last.parts = append(last.parts, c.sequence(c.text(CallBegin[len(CallBegin)-1:]), tail, rest))
	return after[0]
}
