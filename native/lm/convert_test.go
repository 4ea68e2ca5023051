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
			case "qwen2", "gemma2", "gemma3", // windows by layer, and another scale
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
