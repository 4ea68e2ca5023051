package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// languageModel returns a folder with a tiny model and a tokenizer of its 64 tokens, letters from 'A' on.
func languageModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	vocabulary := map[string]int{}
	for i := range 64 {
		vocabulary[string(rune('A'+i))] = i
	}
	tokenizer, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": []any{}, "decoder": map[string]any{"type": "Fuse"},
		"model": map[string]any{"type": "BPE", "vocab": vocabulary, "merges": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"tokenizer.json": tokenizer, "tokenizer_config.json": []byte(`{"chat_template":"{% for m in messages %}{{ m.content }}{% endfor %}"}`)}
	for _, name := range []string{"config.json", "model.safetensors"} {
		if files[name], err = os.ReadFile(filepath.Join("..", "lm", "testdata", "llama", name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestGenerate writes a text from a flag, from an argument, from the standard input in chunks with drafts, and as a
// chat: greedy results are the same.
func TestGenerate(t *testing.T) {
	dir := languageModel(t)
	code, want, rates := call(t, "", "generate", dir, "-device", "cpu", "-prompt", "ABCDEFG", "-max", "6")
	if code != 0 || len([]rune(want)) < 2 || !strings.Contains(rates, "prompt: 7 tokens") {
		t.Fatalf("%d %q %q", code, want, rates)
	}
	for _, args := range [][]string{{"-chunk", "3", "-draft", "2"}, {"-draft-model", dir}, {"-max", "6", "-chat"}} {
		code, got, text := call(t, "ABCDEFG", append([]string{"generate", "-device", "cpu", dir, "-max", "6"}, args...)...)
		if code != 0 || got != want {
			t.Errorf("%v: %d %q %q, want %q", args, code, got, text, want)
		}
		if guessed := strings.Contains(text, "guessed: "); guessed != strings.HasPrefix(args[len(args)-2], "-draft") {
			t.Errorf("%v: %q", args, text)
		}
	}
	for _, args := range [][]string{{"-temperature", "-1"}, {"-context", "5"}, {"-context", "100000"}, {"-draft-model", "nowhere"}} {
		if code, _, text := call(t, "ABCDEFG", append([]string{"generate", "-device", "cpu", dir}, args...)...); code != exitError || text == "" {
			t.Errorf("%v: %d %q", args, code, text)
		}
	}
	if code, got, text := call(t, "ABCDEFG", "generate", "-device", "cpu", dir, "-max", "6", "-temperature", "9", "-top-p", "0"); code != 0 || got != want {
		t.Errorf("the likeliest tokens alone: %d %q %q, want %q", code, got, text, want)
	}
	if code, got, text := call(t, "", "generate", dir, "ABCDEFG", "-device", "cpu", "-max", "6"); code != 0 || got != want {
		t.Errorf("an argument: %d %q %q, want %q", code, got, text, want)
	}
	if code, _, text := call(t, "", "generate", dir, "A", "-prompt", "B"); code != exitUsage || !strings.Contains(text, "-prompt") {
		t.Errorf("two texts: %d %q", code, text)
	}
	if code, _, _ := call(t, "", "generate"); code != exitUsage {
		t.Errorf("without a model: %d", code)
	}
}

// TestServe asks a server for a text and interrupts it.
func TestServe(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	ended := make(chan int)
	var errs bytes.Buffer
	go func() {
		ended <- run(ctx, []string{"serve", languageModel(t), "-device", "cpu", "-slots", "2", "-address", "localhost:0", "-name", "tiny", "-embeddings", filepath.Join("..", "models", "testdata", "minilm")}, stdio{strings.NewReader(""), in, &errs})
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), ": ")
	if err != nil || !ok || !strings.HasPrefix(line, "tiny on ") {
		t.Fatalf("%q %v", line, err)
	}
	answer, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(`{"model":"tiny","messages":[{"role":"user","content":"ABC"}],"max_tokens":4,"temperature":0}`))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(data), `"completion_tokens":4`) {
		t.Errorf("%d %s %v", answer.StatusCode, data, err)
	}
	if answer, err = http.Post(url+"/embeddings", "application/json", strings.NewReader(`{"model":"tiny","input":"the cat"}`)); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("vectors: %d", answer.StatusCode)
	}
	interrupt()
	if code := <-ended; code != 0 {
		t.Errorf("the server ends with %d: %s", code, errs.String())
	}
}
