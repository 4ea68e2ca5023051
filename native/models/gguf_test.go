package models_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/lm"
	irmodels "github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/native/models"
	"github.com/rlx-go/rlx/native/safetensors"
)

// TestEncodersInGGUF has the hidden states and the vectors of texts that transformers computes by the GGUF files of
// testdata/encoders.py: one of an older converter, with the weights of minilm in f16, and one in blocks, with
// another pooling and the token that begins a text under another key.
func TestEncodersInGGUF(t *testing.T) {
	s := cpu(t)
	for name, pooling := range map[string]irmodels.Pooling{"minilm": irmodels.MeanPooling, "packed": irmodels.FirstPooling} {
		t.Run(name, func(t *testing.T) {
			m, err := models.Open(filepath.Join("testdata", name, "model.gguf"))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			expected, _, err := safetensors.ReadFile(filepath.Join("testdata", name, "expected.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			f := folder{m, expected}
			if m.Kind != irmodels.TextKind || m.Config.Text.Types != 2 || m.Config.Text.Context != 32 {
				t.Errorf("kind %q, %+v", m.Kind, m.Config.Text)
			}
			in := rlx.Inputs{"tokens": expected["tokens"], "mask": expected["mask"], "types": expected["types"]}
			out := f.call(t, in, func(b *ir.Builder) {
				input := func(name string) ir.Value { return b.Input(name, ir.I32, ir.Dims(in[name].Dims...)...) }
				tokens, mask, types := input("tokens"), input("mask"), input("types")
				b.Output("hidden", irmodels.TextEncoder(b, *m.Config.Text, tokens, irmodels.TextOptions{Mask: mask, Types: types}))
			})
			near(t, "hidden", floats(t, out, "hidden"), f.floats(t, "hidden"), f.ints(t, "mask"))
			x, err := models.NewTexts(t.Context(), s, m, models.TextsOptions{MaxTokens: 16, Batch: 3})
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close(context.Background())
			vectors, err := x.Embed(t.Context(), texts...)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "vectors", slices.Concat(vectors...), f.floats(t, "vectors"), nil)
			if _, got, err := irmodels.FromGGUF(openGGUF(t, filepath.Join("testdata", name, "model.gguf"))); err != nil || got != pooling {
				t.Errorf("pooling %q %v, want %q", got, err, pooling)
			}
		})
	}
}

func openGGUF(t *testing.T, path string) *gguf.File {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestBadEncodersInGGUF changes a key of a file so that it cannot be opened, by an error that names it.
func TestBadEncodersInGGUF(t *testing.T) {
	good, err := os.ReadFile("testdata/minilm/model.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		kind     error
		want     string
	}{
		{"bert.block_count", "bert.block_coun_", lm.ErrConfig, "bert.block_count"},
		{"bert.attention.head_count", "bert.attention.head_coun_", lm.ErrConfig, "head_count"},
		{"bert.attention.layer_norm_epsilon", "bert.attention.layer_norm_epsilo_", lm.ErrConfig, "layer_norm_epsilon"},
		{"bert.pooling_type\x04\x00\x00\x00\x01", "bert.pooling_type\x04\x00\x00\x00\x04", ir.ErrUnsupported, "pooling_type is 4"},
		{"bert.attention.head_count\x04\x00\x00\x00\x04", "bert.attention.head_count\x04\x00\x00\x00\x05", lm.ErrConfig, "number of heads 5"},
		{"blk.1.ffn_up.weight", "blk.1.ffn_op.weight", ir.ErrName, "blk.1.ffn_op.weight"},
		{"\x04\x00\x00\x00\x00\x00\x00\x00bert", "\x04\x00\x00\x00\x00\x00\x00\x00bird", ir.ErrUnsupported, "bird"},
	} {
		path := filepath.Join(t.TempDir(), "bad.gguf")
		bad := bytes.Replace(good, []byte(c.from), []byte(c.to), 1)
		if bytes.Equal(bad, good) {
			t.Fatalf("%q is not in the file", c.from)
		}
		if err := os.WriteFile(path, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := models.Open(path)
		if err == nil {
			_ = m.Close()
		}
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %v with %q", c.to, err, c.kind, c.want)
		}
	}
	if _, _, err := irmodels.FromGGUF(nil); !errors.Is(err, ir.ErrAttr) {
		t.Error(err)
	}
}
