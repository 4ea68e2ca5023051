package tokenizer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
)

func equal(a, b []int32) bool { return slices.Equal(a, b) }

// bpeWith is a tokenizer.json with a model of BPE and further parts.
func bpeWith(model, parts string) string {
	return `{"model": {"type": "BPE", ` + model + `}` + parts + `}`
}

func TestHostileFiles(t *testing.T) {
	const vocab = `"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]`
	deep := strings.Repeat(`{"type": "Sequence", "normalizers": [`, 60) + strings.Repeat("]}", 60)
	for i, c := range []struct {
		file string
		kind error
		text string
	}{
		{``, tokenizer.ErrDamaged, "JSON"},
		{`[]`, tokenizer.ErrDamaged, "array"},
		{`{}`, tokenizer.ErrDamaged, "no model"},
		{`{"model": {"type": "BPE"}}`, tokenizer.ErrDamaged, "model.vocab"},
		{`{"model": {"type": "Neural", "vocab": {}}}`, ir.ErrUnsupported, "Neural"},
		{bpeWith(`"vocab": {"a": -1}, "merges": []`, ""), tokenizer.ErrDamaged, "-1"},
		{bpeWith(`"vocab": {"a": 2000000000}, "merges": []`, ""), tokenizer.ErrDamaged, "2000000000"},
		{bpeWith(`"vocab": {"a": 99999999999}, "merges": []`, ""), tokenizer.ErrDamaged, "99999999999"},
		{bpeWith(`"vocab": {"a": 0, "b": 0}, "merges": []`, ""), tokenizer.ErrDamaged, "same id"},
		{bpeWith(`"vocab": {"a": 0}, "merges": ["a a"]`, ""), tokenizer.ErrDamaged, `lacks "aa"`},
		{bpeWith(`"vocab": {"a": 0}, "merges": ["a"]`, ""), tokenizer.ErrDamaged, "merge"},
		{bpeWith(`"vocab": {"a": 0}, "merges": [["a","a","a"]]`, ""), tokenizer.ErrDamaged, "merge of 3"},
		{bpeWith(`"vocab": {"a": 0}, "merges": [], "unk_token": "?"`, ""), tokenizer.ErrDamaged, `"?"`},
		{bpeWith(vocab, `, "normalizer": `+deep), tokenizer.ErrDamaged, "nested"},
		{bpeWith(vocab, `, "normalizer": {"type": "Upper"}`), ir.ErrUnsupported, "Upper"},
		{bpeWith(vocab, `, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}`), tokenizer.ErrDamaged, "precompiled_charsmap"},
		{bpeWith(vocab, `, "pre_tokenizer": {"type": "Mecab"}`), ir.ErrUnsupported, "Mecab"},
		{bpeWith(vocab, `, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}`), ir.ErrUnsupported, "missing"},
		{bpeWith(vocab, `, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "((a{1000}){1000}){1000}"}, "behavior": "Isolated"}`), ir.ErrUnsupported, "instructions"},
		{bpeWith(vocab, `, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "`+strings.Repeat("(", 5000)+`"}, "behavior": "Isolated"}`), ir.ErrUnsupported, "deep"},
		{bpeWith(vocab, `, "pre_tokenizer": {"type": "Split", "pattern": {}, "behavior": "Isolated"}`), tokenizer.ErrDamaged, "pattern"},
		{bpeWith(vocab, `, "decoder": {"type": "Spell"}`), ir.ErrUnsupported, "Spell"},
		{bpeWith(vocab, `, "decoder": {"type": "Strip", "content": "a", "start": -1}`), tokenizer.ErrDamaged, "-1"},
		{bpeWith(vocab, `, "post_processor": {"type": "BertProcessing", "sep": ["a", 7], "cls": ["a", 0]}`), tokenizer.ErrDamaged, "7"},
		{bpeWith(vocab, `, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}]}`), tokenizer.ErrDamaged, `"x"`},
		{`{"model": {"type": "Unigram", "vocab": [["a"]]}}`, tokenizer.ErrDamaged, "token"},
		{`{"model": {"type": "Unigram", "vocab": [["a", 1]], "unk_id": 1}}`, tokenizer.ErrDamaged, "unk_id"},
	} {
		_, err := tokenizer.Read(strings.NewReader(c.file))
		if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%d: %v, want %v and %q", i, err, c.kind, c.text)
		}
	}
}

// Text that the vocabulary does not cover is an error if there is no unknown token.
func TestTextOutsideTheVocabulary(t *testing.T) {
	for _, model := range []string{
		`{"type": "Unigram", "vocab": [["a", 1]]}`, `{"type": "WordPiece", "vocab": {"a": 0}}`, `{"type": "WordLevel", "vocab": {"a": 0}}`,
	} {
		tok, err := tokenizer.Read(strings.NewReader(`{"model": ` + model + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tok.Encode("b", tokenizer.EncodeOptions{}); !errors.Is(err, tokenizer.ErrUnknownToken) {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// A pattern that would backtrack without end is given up.
func TestPatternsAreBounded(t *testing.T) {
	tok, err := tokenizer.Read(strings.NewReader(bpeWith(`"vocab": {"a": 0}, "merges": []`,
		`, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "((a+)+)+b"}, "behavior": "Isolated"}`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tok.Encode(strings.Repeat("a", 64), tokenizer.EncodeOptions{}); !errors.Is(err, ir.ErrUnsupported) {
		t.Error(err)
	}
}

// Long words and runs take time in proportion: squares of these lengths would take minutes.
func TestLongTexts(t *testing.T) {
	const length = 1 << 16
	for _, kind := range kinds {
		tok := open(t, kind)
		for _, unit := range []string{"a", " ", "\n", "ab", "中", "1", "!", "▁", "\u0301"} {
			begin := time.Now()
			ids, err := tok.Encode(strings.Repeat(unit, length/len(unit)), tokenizer.EncodeOptions{})
			if took := time.Since(begin); err != nil || took > 20*time.Second {
				t.Errorf("%s, %q: %d ids in %v: %v", kind, unit, len(ids), took, err)
			}
		}
	}
}

// FuzzRead reads files and encodes by them.
func FuzzRead(f *testing.F) {
	f.Add(small, "hi")
	f.Add(bpeWith(`"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "unk_token": "a"`, `, "normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\s+(?!\\S)|[^a]"}, "behavior": "MergedWithNext"}`), "ab é")
	f.Add(`{"model": {"type": "Unigram", "vocab": [["a", -1], ["<unk>", 0]], "unk_id": 1}, "decoder": {"type": "Metaspace"}}`, "abc")
	f.Add(`{"model": {"type": "WordPiece", "vocab": {"a": 0, "##b": 1, "?": 2}, "unk_token": "?"}, "normalizer": {"type": "BertNormalizer"}}`, "abc ab")
	f.Fuzz(func(t *testing.T, file, text string) {
		tok, err := tokenizer.Read(strings.NewReader(file))
		if err != nil {
			return
		}
		ids, err := tok.Encode(text, tokenizer.EncodeOptions{})
		if err != nil {
			return
		}
		for _, id := range ids {
			if _, ok := tok.Token(id); !ok {
				t.Fatalf("%q has the id %d of no token", text, id)
			}
		}
		if _, err := tok.Decode(ids, tokenizer.DecodeOptions{}); err != nil && !errors.Is(err, ir.ErrUnsupported) {
			t.Fatal(err)
		}
	})
}

// FuzzEncode encodes and decodes by the tokenizers of testdata. Byte-level text comes back.
func FuzzEncode(f *testing.F) {
	f.Add("The capital\n\n of  France's 12345 中文 👩‍👩‍👧 <|end|>", true)
	f.Add("\xff\xe4\xbd a\u0301\r\n", false)
	var all []*tokenizer.Tokenizer
	for _, kind := range kinds {
		all = append(all, open(f, kind))
	}
	f.Fuzz(func(t *testing.T, text string, asText bool) {
		for i, tok := range all {
			ids, err := tok.Encode(text, tokenizer.EncodeOptions{SpecialAsText: asText, OmitSpecial: true})
			if err != nil {
				t.Fatalf("%s: %v", kinds[i], err)
			}
			back, err := tok.Decode(ids, tokenizer.DecodeOptions{})
			if err != nil {
				t.Fatalf("%s: %v", kinds[i], err)
			}
			if lossless := kinds[i] == "llama3" || kinds[i] == "deepseek"; lossless && utf8.ValidString(text) && back != text {
				t.Fatalf("%s: %q came back as %q", kinds[i], text, back)
			}
			stream(t, tok, ids, tokenizer.DecodeOptions{})
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "The %dth line says that plans are made of kernels, and it isn't %s.\n", i, randomString(i%50))
	}
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			tok := open(b, kind)
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				if _, err := tok.Encode(text.String(), tokenizer.EncodeOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Classes in classes that ignore case are asked once for each character, not 2ⁿ times.
func TestNestedClasses(t *testing.T) {
	nested := `(?i)` + strings.Repeat("[", 60) + "b" + strings.Repeat("]", 60) + `|[a-z&&[:upper:]]`
	tok, err := tokenizer.Read(strings.NewReader(bpeWith(`"vocab": {"a": 0, "b": 1, "B": 2, "ab": 3, "aB": 4, "ba": 5}, "merges": ["a b", "a B", "b a"]`,
		`, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "`+nested+`"}, "behavior": "Isolated"}`)))
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.Encode("abaBab", tokenizer.EncodeOptions{})
	if want := []int32{0, 1, 0, 2, 0, 1}; err != nil || !equal(ids, want) {
		t.Errorf("%v, %v: want %v", ids, err, want)
	}
}
