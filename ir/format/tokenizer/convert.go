package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
)

// The types of tokens that only writing needs.
const (
	typeNormal = 1
	typeUnused = 5
	typeByte   = 6
)

// probe is a text on which pre-tokenizers differ: numbers of several lengths, contractions, cases, runs of
// spaces and line ends, punctuation, and letters of several scripts.
const probe = "Hello  World! I'm we'LL don't 1 12 123 1234567 3.14e-5 foo_bar(x, y)=>{z;}\n\n\t  if a<b:\r\n" +
	"    return  `x` $5.00 ^~| émigré É Ünï camelCaseWord HTTPServer 你好，世界。 こんにちは Привет мир 𝔘 🚀🚀 ... !!! /path/to\n ﬁ … the end"

// preferred are the pre-tokenizers that are tried first, of several that split alike.
var preferred = []string{"gpt-2", "llama-bpe", "qwen2", "smollm", "gpt-4o", "tekken", "deepseek-v3", "falcon", "bloom", "dbrx", "default"}

// settings is tokenizer_config.json.
type settings struct {
	BOS          specialText     `json:"bos_token"`
	EOS          specialText     `json:"eos_token"`
	UNK          specialText     `json:"unk_token"`
	PAD          specialText     `json:"pad_token"`
	AddBOS       *bool           `json:"add_bos_token"`
	AddEOS       *bool           `json:"add_eos_token"`
	ChatTemplate json.RawMessage `json:"chat_template"`
}

// specialText is a token, a text or an object with it.
type specialText string

func (s *specialText) UnmarshalJSON(data []byte) error {
	var of struct {
		Content string `json:"content"`
	}
	if len(data) > 0 && data[0] == '{' {
		err := json.Unmarshal(data, &of)
		*s = specialText(of.Content)
		return err
	}
	return json.Unmarshal(data, (*string)(s))
}

// chat returns the chat template: one, or that named default of several.
func (s *settings) chat() string {
	var one string
	if json.Unmarshal(s.ChatTemplate, &one) == nil {
		return one
	}
	var several []struct{ Name, Template string }
	if json.Unmarshal(s.ChatTemplate, &several) == nil {
		for _, c := range several {
			if c.Name == "default" {
				return c.Template
			}
		}
	}
	return ""
}

// ToGGUF returns the keys of a GGUF file for a tokenizer.json with byte-pair encoding, byte-level
// or SentencePiece's, and its tokenizer_config.json, which may be nil. It picks the pre-tokenizer
// of llama.cpp that splits sample texts alike. The error is of kind [ErrDamaged], or
// [ir.ErrUnsupported] for another kind of tokenizer and for one that GGUF has no name for.
func ToGGUF(text, config []byte) ([]gguf.Pair, error) {
	t, err := Read(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	var s settings
	if config != nil {
		if err := json.Unmarshal(config, &s); err != nil {
			return nil, damaged("tokenizer_config.json: %v", err)
		}
	}
	b, ok := t.model.(*bpe)
	if !ok || !b.withoutAffix {
		return nil, ir.Errorf(ir.ErrUnsupported, "the tokenizer is not of byte-pair encoding without prefix and suffix, the only kind that is written to GGUF")
	}
	w := &pairs{t: t, bpe: b, s: s}
	if t.byteLevel {
		return w.bytePairs()
	}
	return w.sentencePiece()
}

// pairs collects keys.
type pairs struct {
	t    *Tokenizer
	bpe  *bpe
	s    settings
	list []gguf.Pair
}

func (w *pairs) add(key string, value any) {
	w.list = append(w.list, gguf.Pair{Key: metadataPrefix + key, Value: value})
}

// tokens adds the tokens and their types.
func (w *pairs) tokens(kind func(token string) int32) (types []int32) {
	tokens := make([]string, len(w.t.tokens))
	types = make([]int32, len(tokens))
	for i, token := range w.t.tokens {
		id := int32(i)
		tokens[i], types[i] = token, kind(token)
		switch {
		case !w.t.present[i]:
			tokens[i], types[i] = "[PAD"+strconv.Itoa(i)+"]", typeUnused
		case token == string(w.s.UNK) || id == w.bpe.unk:
			types[i] = typeUnknown
		case w.t.added.special[id]:
			types[i] = typeControl
		case w.t.ids[token] == id && w.isAdded(token):
			types[i] = typeUserDefined
		}
	}
	w.add("tokens", tokens)
	w.add("token_type", types)
	return types
}

func (w *pairs) isAdded(token string) bool {
	_, ok := w.t.ids[token]
	return ok
}

// roles adds the special tokens and whether a text begins or ends with them.
func (w *pairs) roles() {
	around, _ := w.t.template.single(nil)
	id := func(role, token string) int32 {
		if token == "" {
			return -1
		}
		id, ok := w.t.ID(token)
		if !ok {
			return -1
		}
		w.add(role+"_token_id", uint32(id))
		return id
	}
	bos, eos := id("bos", string(w.s.BOS)), id("eos", string(w.s.EOS))
	id("unknown", string(w.s.UNK))
	id("padding", string(w.s.PAD))
	given := func(p *bool, otherwise bool) bool {
		if p != nil {
			return *p
		}
		return otherwise
	}
	w.add("add_bos_token", bos >= 0 && given(w.s.AddBOS, slices.Contains(around, bos)))
	w.add("add_eos_token", eos >= 0 && given(w.s.AddEOS, slices.Contains(around, eos)))
	if chat := w.s.chat(); chat != "" {
		w.list = append(w.list, gguf.Pair{Key: "tokenizer.chat_template", Value: chat})
	}
}

// ranked returns the pairs that are merged, in the order of their ranks.
func (m *bpe) ranked() []pair {
	list := slices.Collect(maps.Keys(m.merges))
	slices.SortFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(m.merges[a].rank, m.merges[b].rank), cmp.Compare(a.left, b.left), cmp.Compare(a.right, b.right))
	})
	return list
}

func (w *pairs) bytePairs() ([]gguf.Pair, error) {
	w.add("model", "gpt2")
	w.tokens(func(string) int32 { return typeNormal })
	var merges []string
	for _, p := range w.bpe.ranked() {
		merges = append(merges, w.t.tokens[p.left]+" "+w.t.tokens[p.right])
	}
	w.add("merges", merges)
	w.roles()
	names := slices.Clone(preferred)
	for _, name := range slices.Sorted(maps.Keys(preTokenizers)) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		list := append(slices.Clip(w.list), gguf.Pair{Key: metadataPrefix + "pre", Value: name})
		if same, err := w.reads(list); same || err != nil {
			return list, err
		}
	}
	return nil, ir.Errorf(ir.ErrUnsupported, "no pre-tokenizer of GGUF splits text as this one does; the known ones are %q", names)
}

// sentencePiece writes scores in place of merges: a token's is the rank of the first merge that makes it.
func (w *pairs) sentencePiece() ([]gguf.Pair, error) {
	w.add("model", "llama")
	scores := make([]float32, len(w.t.tokens))
	order := w.bpe.ranked()
	for i := range scores {
		scores[i] = -float32(len(order) + i)
	}
	for rank, p := range slices.Backward(order) {
		scores[w.bpe.merges[p].id] = -float32(rank)
	}
	for i, kind := range w.tokens(func(token string) int32 {
		if len(token) == 6 && token[:3] == "<0x" && token[5] == '>' {
			return typeByte
		}
		return typeNormal
	}) {
		if kind != typeNormal {
			scores[i] = 0
		}
	}
	w.add("scores", scores)
	words, err := w.t.wordsOf("x")
	if err != nil {
		return nil, err
	}
	w.add("add_space_prefix", strings.HasPrefix(words[0], defaultMark))
	w.roles()
	same, err := w.reads(w.list)
	if err == nil && !same {
		err = ir.Errorf(ir.ErrUnsupported, "GGUF stores scores for SentencePiece, and by scores text would have other tokens than by these merges")
	}
	return w.list, err
}

// reads reports whether the tokenizer that keys describe has the same tokens for the probe.
func (w *pairs) reads(list []gguf.Pair) (bool, error) {
	var file bytes.Buffer
	if err := gguf.Write(&file, list, nil); err != nil {
		return false, err
	}
	f, err := gguf.OpenAt(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		return false, err
	}
	t, err := FromGGUF(f)
	if err != nil {
		return false, err
	}
	return sameTokens(w.t, t)
}

// sameTokens reports whether two tokenizers have the same words and ids for the probe.
func sameTokens(a, b *Tokenizer) (bool, error) {
	for _, of := range []func(t *Tokenizer) (any, error){
		func(t *Tokenizer) (any, error) { return t.wordsOf(probe) },
		func(t *Tokenizer) (any, error) { return t.encode(probe, EncodeOptions{SpecialAsText: true}) },
	} {
		x, err := of(a)
		if err != nil {
			return false, err
		}
		y, err := of(b)
		if err != nil || !reflect.DeepEqual(x, y) {
			return false, err
		}
	}
	return true, nil
}

// wordsOf returns the words of a text, or for SentencePiece, where merges do not depend on them, the text that
// they make. A tiny vocabulary has the same ids for different words.
func (t *Tokenizer) wordsOf(text string) ([]string, error) {
	if t.normalizer != nil {
		var err error
		if text, err = t.normalizer.normalize(text); err != nil {
			return nil, err
		}
	}
	pieces, err := t.split(piece{text, true})
	var out []string
	for _, p := range pieces {
		out = append(out, p.text)
	}
	if !t.byteLevel {
		out = []string{strings.Join(out, "")}
	}
	return out, err
}
