package generate

import (
	"encoding/json"
	"errors"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/chat"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
)

// Message is a message of a conversation.
type Message = chat.Message

// Chat returns the prompt of a conversation, by the model's chat template, whose next message is the
// assistant's. Tools are the functions that it may call, each as an element of tools in OpenAI's API; a template that
// does not know tools ignores them. Special tokens in the messages and tools are text: a user who types "<|im_end|>" ends
// no turn. Errors are of kind [ErrRequest] for a model without a template, and for messages that the template refuses.
func (l *Loaded) Chat(messages []Message, tools ...json.RawMessage) ([]int32, error) {
	if l == nil {
		return nil, ir.Attrf("the model is nil: it must be from Load")
	}
	if l.ChatTemplate == "" {
		return nil, refuse("the model has no chat template: a prompt must be given")
	}
	t, err := chat.Parse(l.ChatTemplate)
	if err != nil {
		return nil, refuse("%v", err)
	}
	var failed error
	quote := func(text string) string {
		quoted, err := l.Words.Quote(text)
		failed = errors.Join(failed, err)
		return quoted
	}
	var list any // none without tools, as templates expect
	if len(tools) > 0 {
		each := make([]any, len(tools))
		for i, tool := range tools {
			each[i] = chat.JSON(tool)
		}
		list = each
	}
	text, err := t.RenderWith(map[string]any{
		"messages": messages, "tools": list, "add_generation_prompt": true, "bos_token": l.special("bos", "<s>", "<|begin_of_text|>", "<bos>"), "eos_token": l.special("eos", endNames...),
	}, chat.Options{Quote: quote})
	if err = errors.Join(err, failed); err != nil {
		return nil, refuse("%v", err)
	}
	ids, err := l.Words.Encode(text, tokenizer.EncodeOptions{OmitSpecial: true, Quoted: true})
	if err != nil {
		return nil, refuse("%v", err)
	}
	return ids, nil
}

// special returns the text of the token of a role, or the first special token of the names.
func (l *Loaded) special(role string, names ...string) string {
	if id, ok := l.Words.SpecialID(role); ok {
		text, _ := l.Words.Token(id)
		return text
	}
	for _, name := range names {
		if id, ok := l.Words.ID(name); ok && l.Words.Special(id) {
			return name
		}
	}
	return ""
}
