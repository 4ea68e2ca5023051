package lm_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/native/lm"
)

// TestConvertedModels holds the logits of models that were converted from safetensors to GGUF, and from those
// back, to those of transformers.
func TestConvertedModels(t *testing.T) {
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			e := expectedOf(t, name)
			path := filepath.Join(t.TempDir(), "model.gguf")
			err := lm.Convert(filepath.Join("testdata", name), path, lm.ConvertOptions{})
			switch name {
			case "qwen2", "gemma2", "gemma3", // windows by layer, and another scale: see TestConvertedGemma
				"falcon", "gpt_neox", "gptj": // read alone
				if !errors.Is(err, ir.ErrUnsupported) {
					t.Errorf("error %v, not that GGUF cannot say it", err)
				}
				if _, err := os.Stat(path); err == nil {
					t.Error("a file is left")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m := load(t, path)
			near(t, "GGUF", logits(t, program(t, m, e, false), "whole", e.prompt), e.logits)
			back := filepath.Join(t.TempDir(), "back")
			if err := lm.Convert(path, back, lm.ConvertOptions{}); err != nil {
				t.Fatal(err)
			}
			near(t, "safetensors", logits(t, program(t, load(t, back), e, false), "whole", e.prompt), e.logits)
		})
	}
}

// TestConvertedGemma converts Gemma 2 and 3 with the scale and the layers of windows that llama.cpp fixes for them: logits
// are those of transformers with these, which has them of the file of testdata, too.
func TestConvertedGemma(t *testing.T) {
	for name, change := range map[string][2]string{
		"gemma2": {`"query_pre_attn_scalar": 10`, `"query_pre_attn_scalar": 6`}, "gemma3": {`"full_attention",`, `"sliding_attention",`},
	} {
		e, from := expectedOf(t, name), filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(from, os.DirFS(filepath.Join("testdata", name))); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(from, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
		if err := os.WriteFile(filepath.Join(from, "config.json"), changed, 0o644); err != nil || bytes.Equal(text, changed) {
			t.Fatalf("config.json of %s: %v", name, err)
		}
		path, back := filepath.Join(t.TempDir(), "model.gguf"), filepath.Join(t.TempDir(), "back")
		if err := lm.Convert(from, path, lm.ConvertOptions{}); err != nil {
			t.Fatal(err)
		}
		near(t, name+" as GGUF", logits(t, program(t, load(t, path), e, false), "whole", e.prompt), e.ofGGUF)
		if err := lm.Convert(path, back, lm.ConvertOptions{}); err != nil {
			t.Fatal(err)
		}
		near(t, name+" as safetensors", logits(t, program(t, load(t, back), e, false), "whole", e.prompt), e.ofGGUF)
	}
}

// A conversion replaces its own source only if asked, and after an error the source is unchanged.
func TestConvertOverItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := lm.Convert(filepath.Join("testdata", "qwen3"), path, lm.ConvertOptions{}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := lm.Convert(path, path, lm.ConvertOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, not that the file exists", err)
	}
	bad := lm.ConvertOptions{Force: true, Quantize: true, Type: gguf.IQ2S}
	if err := lm.Convert(path, path, bad); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("error %v, not that floats are not packed so", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file changed: %v", err)
	}
	steps := 0
	o := lm.ConvertOptions{Force: true, Quantize: true, Type: gguf.Q8_0, Progress: func(done, of int, _ string) { steps += of - done + 1 }}
	if err := lm.Convert(path, path, o); err != nil || steps == 0 {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if info, e := os.Stat(path); err != nil || e != nil || len(files) != 1 || info.Size() >= int64(len(before)) {
		t.Errorf("%v, %v, %v", files, err, e)
	}
}

func load(t *testing.T, path string, o ...irlm.BindOptions) *lm.Model {
	t.Helper()
	m, err := lm.Load(path, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}
