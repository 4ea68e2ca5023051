package perplexity_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/lm/perplexity"
	"github.com/rlx-go/rlx/native/safetensors"
)

// The losses are those of the logits that transformers has computed of the prompt of a tiny model.
func TestMeasure(t *testing.T) {
	folder := filepath.Join("..", "testdata", "qwen3")
	m, err := lm.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tensors, _, err := safetensors.ReadFile(filepath.Join(folder, "expected.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := tensors["prompt"].Int32s()
	if err != nil {
		t.Fatal(err)
	}
	logits, err := tensors["logits"].Float32s()
	if err != nil {
		t.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	defer func() { _ = session.Close(ctx) }()

	n, vocabulary := len(tokens)-1, m.Config.Vocabulary
	loss := func(i int) float64 { // of the prediction at i
		sum := 0.
		for _, x := range logits[i*vocabulary:][:vocabulary] {
			sum += math.Exp(float64(x))
		}
		return math.Log(sum) - float64(logits[i*vocabulary+int(tokens[i+1])])
	}
	mean := func(from int) float64 {
		sum := 0.
		for i := from; i < n; i++ {
			sum += loss(i)
		}
		return sum / float64(n-from)
	}
	for _, c := range []struct {
		o     perplexity.Options
		count int
		want  float64
	}{
		{perplexity.Options{Context: n}, n - n/2, mean(n / 2)},
		{perplexity.Options{Context: n, Stride: 4}, n, mean(0)},
	} {
		r, err := perplexity.Measure(ctx, session, m, tokens, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Tokens != c.count || !(math.Abs(r.Loss-c.want) <= 1e-4) || !(math.Abs(r.Perplexity()-math.Exp(c.want)) <= 1e-2) {
			t.Errorf("%+v: %+v, want %d tokens and a loss of %v", c.o, r, c.count, c.want)
		}
	}
	// A window of 8 moves by 5: the losses that count are of 8, 5 and 5 predictions.
	done := 0
	r, err := perplexity.Measure(ctx, session, m, tokens, perplexity.Options{Context: 8, Stride: 5, Progress: func(int, int, perplexity.Result) { done++ }})
	if err != nil || r.Tokens != 18 || done != 3 {
		t.Errorf("%+v in %d windows, %v", r, done, err)
	}
	for _, o := range []perplexity.Options{{Context: 3}, {Context: 1000}, {Context: 8, Stride: 8}} {
		if _, err := perplexity.Measure(ctx, session, m, tokens, o); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := perplexity.Measure(ctx, session, m, tokens[:8], perplexity.Options{Context: 8}); !errors.Is(err, ir.ErrShape) {
		t.Errorf("a short text: %v", err)
	}
}
