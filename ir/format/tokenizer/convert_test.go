package tokenizer_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
)

// asGGUF returns a file with the keys.
func asGGUF(t *testing.T, list []gguf.Pair) *gguf.File {
	t.Helper()
	var file bytes.Buffer
	if err := gguf.Write(&file, list, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenAt(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A tokenizer.json, written to GGUF and back, has the same tokens at each station, and the pre-tokenizer has
// the name by which llama.cpp knows it.
func TestConvertedTokenizers(t *testing.T) {
	config := []byte(`{"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": "{{ messages }}"}`)
	texts := []string{"", "Hello world", "it's 12345  spaces\n\n", "naïve Ünïcode 你好", strings.Repeat("ab ", 40)}
	for kind, pre := range map[string]string{
		"llama3": "llama-bpe", "qwen2": "qwen2", "gpt4o": "gpt-4o", "deepseek": "deepseek-v3", "llama2": "",
	} {
		t.Run(kind, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + kind + ".json")
			if err != nil {
				t.Fatal(err)
			}
			list, err := tokenizer.ToGGUF(text, config)
			if err != nil {
				t.Fatal(err)
			}
			file := asGGUF(t, list)
			if got, _ := file.Text("tokenizer.ggml.pre"); got != pre {
				t.Errorf("the pre-tokenizer is %q, not %q", got, pre)
			}
			first, err := tokenizer.Read(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			second, err := tokenizer.FromGGUF(file)
			if err != nil {
				t.Fatal(err)
			}
			if second.ChatTemplate() != "{{ messages }}" {
				t.Errorf("the chat template is %q", second.ChatTemplate())
			}
			back, settings, err := tokenizer.ToJSON(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(settings, []byte("messages")) {
				t.Errorf("tokenizer_config.json is %s", settings)
			}
			third, err := tokenizer.Read(bytes.NewReader(back))
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range texts {
				a, b, c := idsOf(t, first, x), idsOf(t, second, x), idsOf(t, third, x)
				if !slices.Equal(a, b) || !slices.Equal(a, c) {
					t.Errorf("%q is %v, in GGUF %v and written back %v", x, a, b, c)
				}
			}
		})
	}
}

func idsOf(t *testing.T, tok *tokenizer.Tokenizer, text string) []int32 {
	t.Helper()
	ids, err := tok.Encode(text, tokenizer.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// Other kinds are refused, and a space before the text of a byte-level tokenizer, which GGUF cannot say.
func TestUnconvertibleTokenizers(t *testing.T) {
	for _, kind := range []string{"bert", "unigram", "clip", "gpt2"} {
		text, err := os.ReadFile("testdata/" + kind + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tokenizer.ToGGUF(text, nil); !errors.Is(err, ir.ErrUnsupported) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := tokenizer.ToGGUF([]byte("{"), nil); !errors.Is(err, tokenizer.ErrDamaged) {
		t.Errorf("damaged: %v", err)
	}
}
