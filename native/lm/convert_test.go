package lm_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx/ir"
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
			if name == "qwen2" || name == "gemma2" || name == "gemma3" { // windows by layer, and another scale
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

func load(t *testing.T, path string, o ...irlm.BindOptions) *lm.Model {
	t.Helper()
	m, err := lm.Load(path, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}
