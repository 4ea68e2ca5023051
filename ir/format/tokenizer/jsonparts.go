package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// cutMerge divides "a b" at its space.
func cutMerge(text string) (left, right string, ok bool) {
	left, right, ok = strings.Cut(text, " ")
	return left, right, ok && left != "" && right != "" && !strings.Contains(right, " ")
}

// normalizerPart has the fields of all kinds of normalizers.
type normalizerPart struct {
	Normalizers         []json.RawMessage `json:"normalizers"`
	StripLeft           bool              `json:"strip_left"`
	StripRight          bool              `json:"strip_right"`
	Prepend             string            `json:"prepend"`
	Pattern             json.RawMessage   `json:"pattern"`
	Content             string            `json:"content"`
	PrecompiledCharsmap []byte            `json:"precompiled_charsmap"`
	CleanText           *bool             `json:"clean_text"`
	HandleChineseChars  *bool             `json:"handle_chinese_chars"`
	StripAccents        *bool             `json:"strip_accents"`
	Lowercase           *bool             `json:"lowercase"`
}

// isTrue is the value of an option, true by default.
func isTrue(option *bool) bool { return option == nil || *option }

// plainNormalizers are those without options.
var plainNormalizers = map[string]normalizer{
	"NFC": form(norm.NFC), "NFD": form(norm.NFD), "NFKC": form(norm.NFKC), "NFKD": form(norm.NFKD),
	"Lowercase": rewrite(lower), "StripAccents": keepIf(func(r rune) bool { return !isMark(r) }),
	"Nmt": rewrite(nmt), "ByteLevel": rewrite(toByteLevel),
}

func readNormalizer(data json.RawMessage, depth int) (normalizer, error) {
	if absent(data) {
		return nil, nil
	}
	kind, err := kindOf("normalizer", data, depth)
	if err != nil {
		return nil, err
	}
	if n, ok := plainNormalizers[kind]; ok {
		return n, nil
	}
	var p normalizerPart
	if err := read("normalizer", data, &p); err != nil {
		return nil, err
	}
	switch kind {
	case "Sequence":
		var all normalizers
		for _, each := range p.Normalizers {
			n, err := readNormalizer(each, depth+1)
			if err != nil {
				return nil, err
			}
			if n != nil {
				all = append(all, n)
			}
		}
		return all, nil
	case "Strip":
		return strip(p.StripLeft, p.StripRight), nil
	case "Prepend":
		return prepend(p.Prepend), nil
	case "Replace":
		found, err := readPattern("normalizer", p.Pattern)
		return replace{found, p.Content}, err
	case "Precompiled":
		if len(p.PrecompiledCharsmap) == 0 {
			return nil, nil
		}
		return newCharsmap(p.PrecompiledCharsmap)
	case "BertNormalizer":
		lowercase := isTrue(p.Lowercase)
		accents := lowercase
		if p.StripAccents != nil {
			accents = *p.StripAccents
		}
		return bert(isTrue(p.CleanText), isTrue(p.HandleChineseChars), accents, lowercase), nil
	}
	return nil, unknown("normalizer", kind)
}

// readPattern reads {"Regex": ...} or {"String": ...}.
func readPattern(part string, data json.RawMessage) (pattern, error) {
	var p struct{ Regex, String *string }
	if err := read(part+".pattern", data, &p); err != nil {
		return nil, err
	}
	switch {
	case p.Regex != nil:
		return compilePattern(*p.Regex)
	case p.String != nil:
		return literal(*p.String), nil
	}
	return nil, damaged("%s.pattern has no Regex and no String", part)
}

// splitterPart has the fields of all kinds of pre-tokenizers.
type splitterPart struct {
	Pretokenizers    []json.RawMessage `json:"pretokenizers"`
	AddPrefixSpace   *bool             `json:"add_prefix_space"`
	UseRegex         *bool             `json:"use_regex"`
	Replacement      string            `json:"replacement"`
	PrependScheme    string            `json:"prepend_scheme"`
	Split            *bool             `json:"split"`
	Pattern          json.RawMessage   `json:"pattern"`
	Behavior         string            `json:"behavior"`
	Invert           bool              `json:"invert"`
	IndividualDigits bool              `json:"individual_digits"`
	Delimiter        string            `json:"delimiter"`
}

// The pattern of GPT-2 and that of the pre-tokenizer Whitespace, for which the joiners U+200C and U+200D are letters.
const (
	gpt2Pattern       = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	whitespacePattern = "[\\w\u200c\u200d]+|[^\\w\u200c\u200d\\s]+"
)

// readSplitters reads a pre-tokenizer; a sequence is more than one.
func readSplitters(data json.RawMessage, depth int) ([]splitter, error) {
	if absent(data) {
		return nil, nil
	}
	kind, err := kindOf("pre_tokenizer", data, depth)
	if err != nil {
		return nil, err
	}
	var p splitterPart
	if err := read("pre_tokenizer", data, &p); err != nil {
		return nil, err
	}
	if kind != "Sequence" {
		s, err := p.splitter(kind)
		return []splitter{s}, err
	}
	var all []splitter
	for _, each := range p.Pretokenizers {
		s, err := readSplitters(each, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, s...)
	}
	return all, nil
}

func (p *splitterPart) splitter(kind string) (splitter, error) {
	switch kind {
	case "ByteLevel":
		b := byteLevel{prefixSpace: isTrue(p.AddPrefixSpace)}
		var err error
		if isTrue(p.UseRegex) {
			b.pattern, err = compilePattern(gpt2Pattern)
		}
		return b, err
	case "BertPreTokenizer":
		return bertSplit, nil
	case "WhitespaceSplit":
		return whitespaceSplit, nil
	case "Whitespace":
		found, err := compilePattern(whitespacePattern)
		return delimited{found, removed, true}, err
	case "Digits":
		then := contiguous
		if p.IndividualDigits {
			then = isolated
		}
		return delimited{eachRune(unicode.IsNumber), then, false}, nil
	case "CharDelimiterSplit":
		return delimited{literal(p.Delimiter), removed, false}, nil
	case "Metaspace":
		return p.metaspace(), nil
	case "Punctuation", "Split":
		return p.delimited(kind)
	}
	return nil, unknown("pre_tokenizer", kind)
}

func (p *splitterPart) delimited(kind string) (splitter, error) {
	if p.Behavior == "" && kind == "Punctuation" {
		p.Behavior = "Isolated"
	}
	then, ok := behaviours[p.Behavior]
	if !ok {
		return nil, unknown("pre_tokenizer.behavior", p.Behavior)
	}
	if kind == "Punctuation" {
		return delimited{eachRune(isPunctuation), then, false}, nil
	}
	found, err := readPattern("pre_tokenizer", p.Pattern)
	return delimited{found, then, p.Invert}, err
}

// defaultMark is SentencePiece's mark for a space, U+2581.
const defaultMark = "▁"

func (p *splitterPart) metaspace() metaspace {
	m := metaspace{mark: p.Replacement, prepend: p.PrependScheme, splits: isTrue(p.Split)}
	if m.mark == "" {
		m.mark = defaultMark
	}
	if m.prepend == "" {
		if m.prepend = prependAlways; !isTrue(p.AddPrefixSpace) {
			m.prepend = prependNever
		}
	}
	return m
}

// decoderPart has the fields of all kinds of decoders.
type decoderPart struct {
	Decoders           []json.RawMessage `json:"decoders"`
	Pattern            json.RawMessage   `json:"pattern"`
	Content            string            `json:"content"`
	Start              int               `json:"start"`
	Stop               int               `json:"stop"`
	Prefix             *string           `json:"prefix"`
	Cleanup            *bool             `json:"cleanup"`
	Suffix             *string           `json:"suffix"`
	PadToken           *string           `json:"pad_token"`
	WordDelimiterToken *string           `json:"word_delimiter_token"`
}

func textOr(text *string, otherwise string) string {
	if text == nil {
		return otherwise
	}
	return *text
}

// readDecoders reads a decoder; a sequence is more than one. Without any the result is nil.
func readDecoders(data json.RawMessage, depth int) ([]decoder, error) {
	if absent(data) {
		return nil, nil
	}
	kind, err := kindOf("decoder", data, depth)
	if err != nil {
		return nil, err
	}
	var p decoderPart
	if err := read("decoder", data, &p); err != nil {
		return nil, err
	}
	if kind != "Sequence" {
		d, err := p.decoder(kind, data)
		return []decoder{d}, err
	}
	all := []decoder{}
	for _, each := range p.Decoders {
		d, err := readDecoders(each, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, d...)
	}
	return all, nil
}

func (p *decoderPart) decoder(kind string, data json.RawMessage) (decoder, error) {
	switch kind {
	case "ByteLevel":
		return wholeDecoder(joinBytes), nil
	case "ByteFallback":
		return wholeDecoder(joinByteTokens), nil
	case "Fuse":
		return wholeDecoder(fuse), nil
	case "WordPiece":
		return wordPieceDecoder(textOr(p.Prefix, "##"), isTrue(p.Cleanup)), nil
	case "BPEDecoder":
		return suffixDecoder(textOr(p.Suffix, "</w>")), nil
	case "CTC":
		return ctc(textOr(p.PadToken, "<pad>"), textOr(p.WordDelimiterToken, "|"), isTrue(p.Cleanup)), nil
	case "Replace":
		found, err := readPattern("decoder", p.Pattern)
		return replaceDecoder{replace{found, p.Content}}, err
	case "Strip":
		if p.Start < 0 || p.Stop < 0 {
			return nil, damaged("decoder: start is %d and stop %d: neither must be negative", p.Start, p.Stop)
		}
		return stripDecoder(p.Content, p.Start, p.Stop), nil
	case "Metaspace":
		var s splitterPart
		if err := read("decoder", data, &s); err != nil {
			return nil, err
		}
		m := s.metaspace()
		return metaspaceDecoder(m.mark, m.prepend), nil
	}
	return nil, unknown("decoder", kind)
}

// templatePart has the fields of all kinds of post-processors.
type templatePart struct {
	Processors    []json.RawMessage  `json:"processors"`
	Single        []templateItem     `json:"single"`
	Pair          []templateItem     `json:"pair"`
	SpecialTokens map[string]special `json:"special_tokens"`
	Sep           tokenAndID         `json:"sep"`
	Cls           tokenAndID         `json:"cls"`
}

type templateItem struct {
	SpecialToken *templateRef `json:"SpecialToken"`
	Sequence     *templateRef `json:"Sequence"`
}

type templateRef struct {
	ID     string `json:"id"`
	TypeID int32  `json:"type_id"`
}

type special struct {
	IDs []int32 `json:"ids"`
}

// tokenAndID is ["[SEP]", 102].
type tokenAndID struct {
	token string
	id    int32
}

func (t *tokenAndID) UnmarshalJSON(data []byte) error {
	both := []any{&t.token, &t.id}
	return json.Unmarshal(data, &both)
}

// readTemplates sets the template by a post-processor. Of a sequence the last that adds tokens counts.
func (t *Tokenizer) readTemplates(data json.RawMessage, depth int) error {
	if absent(data) {
		return nil
	}
	kind, err := kindOf("post_processor", data, depth)
	if err != nil {
		return err
	}
	var p templatePart
	if err := read("post_processor", data, &p); err != nil {
		return err
	}
	switch kind {
	case "ByteLevel": // changes offsets alone
		return nil
	case "Sequence":
		for _, each := range p.Processors {
			if err := t.readTemplates(each, depth+1); err != nil {
				return err
			}
		}
		return nil
	case "BertProcessing", "RobertaProcessing":
		return t.setSeparators(p.Cls.id, p.Sep.id, kind == "RobertaProcessing")
	case "TemplateProcessing":
		one, err := t.templateParts(p.Single, p.SpecialTokens)
		if err != nil {
			return err
		}
		two, err := t.templateParts(p.Pair, p.SpecialTokens)
		t.template = partsTemplate{one, two}
		return err
	}
	return unknown("post_processor", kind)
}

// setSeparators sets BERT's template, or RoBERTa's, which has two separators and one type.
func (t *Tokenizer) setSeparators(cls, sep int32, twice bool) error {
	if !t.has(cls) || !t.has(sep) {
		return damaged("post_processor: the ids %d and %d must be those of tokens", cls, sep)
	}
	end := part{text: -1, ids: []int32{sep}}
	start := part{text: -1, ids: []int32{cls}}
	one := []part{start, {text: 0}, end}
	two := []part{start, {text: 0}, end, {text: 1, type_: 1}, {text: -1, ids: []int32{sep}, type_: 1}}
	if twice {
		two = []part{start, {text: 0}, end, end, {text: 1}, end}
	}
	t.template = partsTemplate{one, two}
	return nil
}

// maxTemplate bounds the tokens of a template.
const maxTemplate = 1024

func (t *Tokenizer) templateParts(items []templateItem, of map[string]special) ([]part, error) {
	var parts []part
	for _, item := range items {
		switch {
		case item.Sequence != nil && (item.Sequence.ID == "A" || item.Sequence.ID == "B"):
			parts = append(parts, part{text: int(item.Sequence.ID[0] - 'A'), type_: item.Sequence.TypeID})
		case item.SpecialToken != nil:
			tokens, ok := of[item.SpecialToken.ID]
			if !ok {
				return nil, damaged("post_processor: the special token %.50q is not among special_tokens", item.SpecialToken.ID)
			}
			for _, id := range tokens.IDs {
				if !t.has(id) {
					return nil, damaged("post_processor: no token has the id %d of %.50q", id, item.SpecialToken.ID)
				}
			}
			parts = append(parts, part{text: -1, ids: tokens.IDs, type_: item.SpecialToken.TypeID})
		default:
			return nil, damaged("post_processor: an item must be a SpecialToken, or a Sequence A or B")
		}
		if len(parts) > maxTemplate || len(parts) > 0 && len(parts[len(parts)-1].ids) > maxTemplate {
			return nil, damaged("post_processor: a template has more than %d parts", maxTemplate)
		}
	}
	return parts, nil
}
