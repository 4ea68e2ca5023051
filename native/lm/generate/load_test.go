package generate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/native/lm/generate"
)

// folder returns a folder with a tiny model of native/lm, and a tokenizer of its 64 tokens: letters from 'A' on,
// and the special tokens given by number. Its template puts the texts of messages in a row.
func folder(t *testing.T, special map[int]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"config.json", "model.safetensors"} {
		data, err := os.ReadFile(filepath.Join("..", "testdata", "llama", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vocabulary, added := map[string]int{}, []map[string]any{}
	for i := range 64 {
		if name, ok := special[i]; ok {
			added = append(added, map[string]any{"id": i, "content": name, "special": true})
			continue
		}
		vocabulary[string(rune('A'+i))] = i
	}
	write := func(name string, x any) {
		data, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tokenizer.json", map[string]any{
		"version": "1.0", "added_tokens": added, "decoder": map[string]any{"type": "Fuse"},
		"model": map[string]any{"type": "BPE", "vocab": vocabulary, "merges": []string{}},
	})
	write("tokenizer_config.json", map[string]any{
		"chat_template": "{% for m in messages %}{% if m['role'] == 'robot' %}{{ raise_exception('no robots') }}{% endif %}{{ m['content'] }}{{ eos_token }}{% endfor %}",
	})
	write("generation_config.json", map[string]any{"eos_token_id": []int{7, 2}})
	return dir
}

func TestLoad(t *testing.T) {
	l, err := generate.Load(folder(t, map[int]string{2: "</s>", 3: "<|im_end|>"}))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ends := l.Tokenizer.End(); !slices.Equal(ends, []int32{2, 3, 7}) {
		t.Errorf("texts end at %v", ends)
	}
	prompt, err := l.Chat([]generate.Message{{Role: "user", Content: "EF"}, {Role: "assistant", Content: "G"}})
	if want := []int32{4, 5, 2, 6, 2}; err != nil || !slices.Equal(prompt, want) {
		t.Errorf("a conversation is %v %v, want %v", prompt, err, want)
	}
	// Marks that a user types are text: of these characters the vocabulary has the s alone, 50.
	prompt, err = l.Chat([]generate.Message{{Role: "user", Content: "E</s>F"}, {Role: "user", Content: "</"}, {Role: "user", Content: "s>"}})
	if want := []int32{4, 50, 5, 2, 2, 50, 2}; err != nil || !slices.Equal(prompt, want) {
		t.Errorf("a conversation with marks is %v %v, want %v", prompt, err, want)
	}
	if _, err := l.Chat([]generate.Message{{Role: "robot"}}); !errors.Is(err, generate.ErrRequest) {
		t.Error(err)
	}
	l.ChatTemplate = ""
	if _, err := l.Chat(nil); !errors.Is(err, generate.ErrRequest) {
		t.Error(err)
	}
	e := engineOf(t, l.Model, generate.Options{Context: 20})
	r := whole(t, e, generate.Request{Prompt: "EFG", MaxTokens: 10, IgnoreEnd: true})[0]
	text := ""
	for _, id := range r.Tokens {
		if id != 2 && id != 3 {
			text += fmt.Sprint(string('A' + id))
		}
	}
	if r.Text != text || r.Stats.PromptTokens != 3 {
		t.Errorf("%q, want %q", r.Text, text)
	}
}

func TestLoadRefusesFolders(t *testing.T) {
	dir := folder(t, nil)
	if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := generate.Load(dir); err == nil {
		t.Error("a damaged configuration is taken")
	}
	if err := os.Remove(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := generate.Load(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a tokenizer: %v", err)
	}
}
