package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
	"github.com/rlx-go/rlx/ir/lm"
	nativelm "github.com/rlx-go/rlx/native/lm"
)

// Loaded is a model of a file or a folder with its tokenizer.
type Loaded struct {
	Model
	// Words is the tokenizer. It encodes the texts of special tokens as these tokens, for chat
	// templates.
	Words *tokenizer.Tokenizer
	// ChatTemplate is the template of conversations, in Jinja's language; "" if there is none.
	ChatTemplate string
	file         *nativelm.Model
}

// Load opens a model with its tokenizer and chat template: a GGUF file, or a folder of Hugging Face with
// tokenizer.json. Errors are those of [nativelm.Load] and of package tokenizer, and one of kind
// [os.ErrNotExist] for a folder without a tokenizer.
func Load(path string, o ...lm.BindOptions) (*Loaded, error) {
	file, err := nativelm.Load(path, o...)
	if err != nil {
		return nil, err
	}
	l := &Loaded{Model: Of(file), file: file}
	ends, err := l.readTokenizer(path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l.Tokenizer = WithTokenizer(l.Words, ends...)
	return l, nil
}

// Close closes the files. Engines made before stay usable.
func (l *Loaded) Close() error {
	if l == nil {
		return ir.Attrf("the model is nil: it must be from Load")
	}
	return l.file.Close()
}

// readTokenizer sets the tokenizer and the template, and returns the tokens that end a text.
func (l *Loaded) readTokenizer(path string) (ends []int32, err error) {
	name := l.file.Tokenizer
	switch {
	case name == "":
		return nil, fmt.Errorf("%s: tokenizer.json: %w", path, os.ErrNotExist)
	case strings.EqualFold(filepath.Ext(name), ".gguf"):
		f, err := gguf.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if l.Words, err = tokenizer.FromGGUF(f); err != nil {
			return nil, err
		}
		l.ChatTemplate = l.Words.ChatTemplate()
		return nil, nil
	}
	if l.Words, err = tokenizer.Open(name); err != nil {
		return nil, err
	}
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := readJSON(filepath.Join(path, "tokenizer_config.json"), &config); err != nil {
		return nil, err
	}
	_ = json.Unmarshal(config.Template, &l.ChatTemplate) // a list of named templates is not supported: treated as none
	if text, err := os.ReadFile(filepath.Join(path, "chat_template.jinja")); err == nil {
		l.ChatTemplate = string(text)
	}
	for _, name := range []string{"generation_config.json", "config.json"} {
		var c struct {
			End json.RawMessage `json:"eos_token_id"`
		}
		if err := readJSON(filepath.Join(path, name), &c); err != nil {
			return nil, err
		}
		var one int32
		if json.Unmarshal(c.End, &one) == nil {
			ends = append(ends, one)
		}
		var several []int32
		if json.Unmarshal(c.End, &several) == nil {
			ends = append(ends, several...)
		}
	}
	return ends, nil
}

// readJSON reads a file, which may be missing.
func readJSON(name string, to any) error {
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// endNames are the special tokens that end a text or a turn in the families of package lm.
var endNames = []string{"</s>", "<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<eos>", "<end_of_turn>"}

// WithTokenizer returns a tokenizer for [Model.Tokenizer]. A text ends at the tokens given, the end of a text
// that a GGUF file names, and the special tokens that end texts and turns in the families of package lm.
func WithTokenizer(t *tokenizer.Tokenizer, ends ...int32) Tokenizer {
	ends = slices.Clone(ends)
	if id, ok := t.SpecialID("eos"); ok {
		ends = append(ends, id)
	}
	for _, name := range endNames {
		if id, ok := t.ID(name); ok && t.Special(id) {
			ends = append(ends, id)
		}
	}
	slices.Sort(ends)
	return words{t, slices.Compact(ends)}
}

// words is a tokenizer of package tokenizer.
type words struct {
	t    *tokenizer.Tokenizer
	ends []int32
}

func (w words) Encode(text string) ([]int32, error) {
	ids, err := w.t.Encode(text, tokenizer.EncodeOptions{SpecialAsText: true})
	if err != nil {
		return nil, refuse("%v", err)
	}
	return ids, nil
}

func (w words) Stream() Stream {
	return wordStream{w.t.Stream(tokenizer.DecodeOptions{OmitSpecial: true})}
}

func (w words) End() []int32 { return w.ends }
func (w words) Size() int    { return w.t.Size() }

// wordStream is a stream of package tokenizer. An id without a token, as in padded vocabularies,
// has no text.
type wordStream struct{ s *tokenizer.Stream }

func (w wordStream) Next(token int32) string {
	text, err := w.s.Push(token)
	if err != nil {
		return ""
	}
	return text
}

func (w wordStream) Rest() string {
	text, err := w.s.Flush()
	if err != nil {
		return ""
	}
	return text
}
