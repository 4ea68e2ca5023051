package tokenizer

import (
	"bytes"
	"encoding/json"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
)

// object is an object of JSON.
type object = map[string]any

// ToJSON returns the tokenizer.json and the tokenizer_config.json of the tokenizer of a GGUF file, of the models
// gpt2 and llama. The errors are those of [FromGGUF], and of kind [ir.ErrUnsupported] for another model.
func ToJSON(f *gguf.File) (text, config []byte, err error) {
	t, err := FromGGUF(f)
	if err != nil {
		return nil, nil, err
	}
	b, ok := t.model.(*bpe)
	if !ok {
		model, _ := f.Text(metadataPrefix + "model")
		return nil, nil, ir.Errorf(ir.ErrUnsupported, "%smodel is %.50q; those of gpt2 and llama are written as tokenizer.json", metadataPrefix, model)
	}
	w := jsonWriter{t}
	doc := object{"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": w.added(f), "post_processor": w.template()}
	model := object{
		"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
		"fuse_unk": b.fuseUnk, "byte_fallback": b.bytes != nil, "ignore_merges": b.wholeWords, "vocab": b.vocab, "merges": w.merges(b),
	}
	if b.unk >= 0 {
		model["unk_token"] = t.tokens[b.unk]
	}
	doc["model"] = model
	if t.byteLevel {
		pre, _ := f.Text(metadataPrefix + "pre")
		byteLevelJSON(doc, preTokenizers[pre])
	} else {
		prefix, given := f.Value(metadataPrefix + "add_space_prefix").(bool)
		spaceMarksJSON(doc, prefix || !given)
	}
	if text, err = json.Marshal(doc); err != nil {
		return nil, nil, damaged("%v", err)
	}
	read, err := Read(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	if same, err := sameTokens(t, read); err != nil || !same {
		return nil, nil, ir.Errorf(ir.ErrUnsupported, "tokenizer.json would have other tokens for a text: %v", err)
	}
	config, err = w.config()
	return text, config, err
}

// jsonWriter writes the parts of a tokenizer in the format of tokenizer.json.
type jsonWriter struct{ of *Tokenizer }

// merges lists the merges.
func (w jsonWriter) merges(b *bpe) [][2]string {
	out := [][2]string{}
	for _, p := range b.ranked() {
		out = append(out, [2]string{w.of.tokens[p.left], w.of.tokens[p.right]})
	}
	return out
}

// added lists the tokens that are found in a text as they are.
func (w jsonWriter) added(f *gguf.File) []addedToken {
	out := []addedToken{}
	types, _ := f.Value(metadataPrefix + "token_type").([]int32)
	for id, kind := range types {
		if special := kind == typeControl || kind == typeUnknown; special || kind == typeUserDefined {
			out = append(out, addedToken{ID: int32(id), Content: w.of.tokens[id], Special: special})
		}
	}
	return out
}

// template is the template of one text and of a pair.
func (w jsonWriter) template() any {
	parts, ok := w.of.template.(partsTemplate)
	if !ok || len(parts.one) == 1 {
		return nil
	}
	tokens := object{}
	list := func(of []part) []object {
		out := []object{}
		for _, p := range of {
			if p.text >= 0 {
				out = append(out, object{"Sequence": object{"id": string("AB"[p.text]), "type_id": p.type_}})
				continue
			}
			for _, id := range p.ids {
				token := w.of.tokens[id]
				tokens[token] = object{"id": token, "ids": []int32{id}, "tokens": []string{token}}
				out = append(out, object{"SpecialToken": object{"id": token, "type_id": p.type_}})
			}
		}
		return out
	}
	one, two := list(parts.one), list(parts.two)
	return object{"type": "TemplateProcessing", "single": one, "pair": two, "special_tokens": tokens}
}

func byteLevelJSON(doc object, rule preTokenizer) {
	if rule.compose {
		doc["normalizer"] = object{"type": "NFC"}
	}
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	list := []object{}
	for _, p := range rule.patterns {
		list = append(list, object{"type": "Split", "pattern": object{"Regex": p}, "behavior": "Isolated", "invert": false})
	}
	doc["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": append(list, level)}
	doc["decoder"] = level
}

// spaceMarksJSON has spaces as marks, with one before the text.
func spaceMarksJSON(doc object, prefix bool) {
	marks := object{"type": "Replace", "pattern": object{"String": " "}, "content": defaultMark}
	normalizers := []object{marks}
	decoders := []object{
		{"type": "Replace", "pattern": object{"String": defaultMark}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
	}
	if prefix {
		normalizers = []object{{"type": "Prepend", "prepend": defaultMark}, marks}
		decoders = append(decoders, object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	doc["normalizer"] = object{"type": "Sequence", "normalizers": normalizers}
	doc["decoder"] = object{"type": "Sequence", "decoders": decoders}
}

// config is tokenizer_config.json: the special tokens and the chat template.
func (w jsonWriter) config() ([]byte, error) {
	all := object{"tokenizer_class": "PreTrainedTokenizerFast"}
	for _, role := range []string{"bos", "eos", "unk", "pad"} {
		if id, ok := w.of.special[role]; ok {
			all[role+"_token"] = w.of.tokens[id]
		}
	}
	if w.of.chat != "" {
		all["chat_template"] = w.of.chat
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, damaged("%v", err)
	}
	return append(text, '\n'), nil
}
