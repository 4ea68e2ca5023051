package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/native/safetensors"
)

// TestShowListsTensors writes the same two tensors in three formats.
func TestShowListsTensors(t *testing.T) {
	dir := t.TempDir()
	tensors := map[string]rlx.Tensor{"w": rlx.Float32s([]float32{1, 2, 3, 4, 5, 6}, 2, 3), "b": rlx.Float32s([]float32{7, 8}, 2)}
	files := map[string]string{ggufFormat: filepath.Join(dir, "m.gguf"), safetensorsFormat: filepath.Join(dir, "m.safetensors"), npzFormat: filepath.Join(dir, "m.npz")}
	if err := safetensors.WriteFile(files[safetensorsFormat], tensors, map[string]string{"made by": "a\ntest"}); err != nil {
		t.Fatal(err)
	}
	if err := writeTensors(files[npzFormat], tensors); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[ggufFormat], ggufFile(t, tensors), 0o644); err != nil {
		t.Fatal(err)
	}
	for format, file := range files {
		code, out, stderr := call(t, "", "show", file, "-json")
		var v weightsView
		if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
			t.Errorf("%s: exit status %d: %s, %v", format, code, stderr, err)
			continue
		}
		if v.Format != format || v.Elements != 8 || v.Bytes != 32 || len(v.Tensors) != 2 {
			t.Errorf("%s: %+v", format, v)
		}
		if w := v.Tensors[1]; w.Name != "w" || !strings.EqualFold(w.Type, "f32") || w.Bytes != 24 || len(w.Dims) != 2 || w.Dims[0] != 2 || w.Dims[1] != 3 {
			t.Errorf("%s: %+v", format, w)
		}
		code, out, _ = call(t, "", "show", file)
		if code != 0 || !strings.HasPrefix(out, format+" file: 2 tensors, 8 elements, 32 B\n") || !strings.Contains(out, "[2 3]  24 B") {
			t.Errorf("%s: exit status %d:\n%s", format, code, out)
		}
		if format == safetensorsFormat && !strings.Contains(out, "made by  a test\n") {
			t.Errorf("metadata are not on one line:\n%s", out)
		}
		for _, verb := range []string{"run", "bench", "check"} {
			if code, _, stderr := call(t, "", verb, file); code != exitError || !strings.Contains(stderr, "is a "+format+" file") || !strings.Contains(stderr, "rlx show") {
				t.Errorf("%s %s: exit status %d: %s", verb, format, code, stderr)
			}
		}
	}
	if code, _, stderr := call(t, "", "show", filepath.Join(dir, "none.gguf")); code != exitError || !strings.Contains(stderr, "none.gguf") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

// ggufFile returns a file with f32 tensors.
func ggufFile(t *testing.T, tensors map[string]rlx.Tensor) []byte {
	t.Helper()
	var entries []gguf.Entry
	for _, name := range []string{"b", "w"} {
		x := tensors[name]
		entries = append(entries, gguf.Entry{Name: name, Type: gguf.F32, Dims: x.Dims, Write: func(w io.Writer) error {
			_, err := w.Write(x.Data)
			return err
		}})
	}
	var sb strings.Builder
	if err := gguf.Write(&sb, []gguf.Pair{{Key: "general.name", Value: "m"}}, entries); err != nil {
		t.Fatal(err)
	}
	return []byte(sb.String())
}
