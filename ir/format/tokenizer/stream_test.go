package tokenizer_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
)

var kinds = []string{"gpt2", "llama3", "qwen2", "gpt4o", "deepseek", "llama2", "metaspace", "clip", "unigram", "unigrambytes", "bert", "wordpiece"}

// stream decodes ids one by one, and fails where a piece divides a character.
func stream(t *testing.T, tok *tokenizer.Tokenizer, ids []int32, o tokenizer.DecodeOptions) string {
	t.Helper()
	s := tok.Stream(o)
	var sb strings.Builder
	for _, id := range ids {
		text, err := s.Push(id)
		if err != nil || !utf8.ValidString(text) {
			t.Fatalf("%q %v", text, err)
		}
		sb.WriteString(text)
	}
	text, err := s.Flush()
	if err != nil {
		t.Fatal(err)
	}
	return sb.String() + text
}

// A stream yields what decoding at once does, for the tokens of a text.
func TestStream(t *testing.T) {
	for _, kind := range kinds {
		tok := open(t, kind)
		for i := range 300 {
			ids, err := tok.Encode(randomString(i), tokenizer.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			o := tokenizer.DecodeOptions{OmitSpecial: i%2 == 0}
			want, err := tok.Decode(ids, o)
			if got := stream(t, tok, ids, o); err != nil || got != want {
				t.Errorf("%s: %q: got %q, want %q (%v)", kind, randomString(i), got, want, err)
			}
			stream(t, tok, randomIDs(i, tok.Size()), o) // bytes that are no UTF-8, too
		}
	}
}

// A character comes with its last byte, and not later.
func TestStreamIsPrompt(t *testing.T) {
	for _, kind := range []string{"llama3", "llama2"} {
		tok := open(t, kind)
		ids, err := tok.Encode("a🙂𐍈z", tokenizer.EncodeOptions{OmitSpecial: true})
		if err != nil {
			t.Fatal(err)
		}
		s := tok.Stream(tokenizer.DecodeOptions{})
		written := ""
		for i, id := range ids {
			text, err := s.Push(id)
			written += text
			whole, _ := tok.Decode(ids[:i+1], tokenizer.DecodeOptions{})
			if want := strings.TrimRight(whole, "\uFFFD"); err != nil || len(written) < len(want) {
				t.Errorf("%s: after %d tokens %q, want %q (%v)", kind, i+1, written, want, err)
			}
		}
	}
}

func TestUnknownID(t *testing.T) {
	tok := open(t, "llama3")
	for _, id := range []int32{-1, int32(tok.Size()), 1 << 30} {
		if _, err := tok.Decode([]int32{id}, tokenizer.DecodeOptions{}); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("%d: %v", id, err)
		}
		if _, err := tok.Stream(tokenizer.DecodeOptions{}).Push(id); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("%d: %v", id, err)
		}
		if _, ok := tok.Token(id); ok || tok.Special(id) {
			t.Errorf("%d is a token", id)
		}
	}
}

// User text cannot forge special tokens where it is encoded as text.
func TestSpecialAsText(t *testing.T) {
	for _, kind := range kinds {
		tok := open(t, kind)
		for _, text := range []string{"<|end|>", "a </s> b", "x[MASK]y <s>"} {
			ids, err := tok.Encode(text, tokenizer.EncodeOptions{OmitSpecial: true, SpecialAsText: true})
			unk, _ := tok.ID("<unk>")
			for _, id := range ids {
				if text, _ := tok.Token(id); tok.Special(id) && id != unk && !strings.HasPrefix(text, "<0x") {
					t.Errorf("%s: %q has the special token %q", kind, text, text)
				}
			}
			if err != nil || len(ids) == 0 {
				t.Errorf("%s: %q: %v %v", kind, text, ids, err)
			}
		}
	}
}

// A quoted text forges no special tokens within a larger one, whose own are tokens.
func TestQuote(t *testing.T) {
	for _, kind := range kinds {
		tok := open(t, kind)
		end, _ := tok.ID("<|end|>")
		for _, text := range []string{"<|end|>", "a <|end|> b", "<<|end|><|end|>", "half <|en", "<", "[mask]", "plain"} {
			quoted, err := tok.Quote(text)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := tok.Encode("<|end|>"+quoted+"<|end|>", tokenizer.EncodeOptions{OmitSpecial: true, Quoted: true})
			found := 0
			for _, id := range ids {
				if id == end {
					found++
				}
			}
			if err != nil || found != 2 {
				t.Errorf("%s: %q: %v (%v)", kind, text, ids, err)
			}
			as := tokenizer.EncodeOptions{OmitSpecial: true, SpecialAsText: true}
			plain, _ := tok.Encode(text, as)
			as.Quoted = true
			if ids, err := tok.Encode(quoted, as); err != nil || !equal(ids, plain) {
				t.Errorf("%s: %q: %v (%v), want %v", kind, text, ids, err, plain)
			}
		}
		// two quoted texts whose concatenation is a special token
		first, _ := tok.Quote("<|en")
		second, _ := tok.Quote("d|>")
		if ids, err := tok.Encode(first+second, tokenizer.EncodeOptions{OmitSpecial: true, Quoted: true}); err != nil || slices.Contains(ids, end) {
			t.Errorf("%s: %v %v", kind, ids, err)
		}
	}
}

// Goroutines share a tokenizer and the cache of its words.
func TestConcurrentUse(t *testing.T) {
	tok := open(t, "gpt4o")
	want, err := tok.Encode(randomString(7), tokenizer.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				if _, err := tok.Encode(randomString(i*4+g), tokenizer.EncodeOptions{}); err != nil {
					t.Error(err)
				}
				if got, err := tok.Encode(randomString(7), tokenizer.EncodeOptions{}); err != nil || len(got) != len(want) {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
}

// A pair has the tokens and types of the tokenizers library 0.23.3: encode("the", "and") by bert.json and
// gpt2.json.
func TestPair(t *testing.T) {
	for kind, want := range map[string][2][]int32{"bert": pairOfBERT, "gpt2": pairOfGPT2} {
		ids, types, err := open(t, kind).EncodePair("the", "and", tokenizer.EncodeOptions{})
		if err != nil || !equal(ids, want[0]) || !equal(types, want[1]) {
			t.Errorf("%s: %v %v %v, want %v", kind, ids, types, err, want)
		}
	}
}

// Characters that are not assigned stay, private and format characters go (tokenizers 0.23.3).
func TestUnassigned(t *testing.T) {
	for kind, want := range map[string][]int32{"bert": {1, 1695, 0, 1695, 2}, "wordpiece": {1, 1732, 0, 1733, 1732, 2}} {
		ids, err := open(t, kind).Encode("the \U0004fcb5and \ue000\u200bthe", tokenizer.EncodeOptions{})
		if err != nil || !equal(ids, want) {
			t.Errorf("%s: %v %v, want %v", kind, ids, err, want)
		}
	}
}

var (
	pairOfBERT = [2][]int32{{1, 1695, 2, 1697, 2}, {0, 0, 0, 1, 1}}
	pairOfGPT2 = [2][]int32{{1, 275, 2, 2, 279, 2}, {0, 0, 0, 0, 0, 0}}
)
