package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/lm/generate"
	"github.com/rlx-go/rlx/native/lm/perplexity"
)

var perplexityCommand = command{
	name: "perplexity", args: "MODEL TEXT", short: "measure how well a language model predicts a text",
	long: `Writes the perplexity of a text, a file, with a language model, a GGUF file or a folder of Hugging Face:
the exponential of the mean negative logarithm of the probabilities of its tokens. The less, the better.

The text is cut into windows of -context tokens. Without -stride the predictions of the second half of each
window count, as those of llama.cpp's llama-perplexity do by default; with it windows overlap, and the last
-stride predictions of each count.`,
	define: func(f *flag.FlagSet) runner {
		o := &perplexityOptions{}
		f.IntVar(&o.perplexity.Context, "context", 0, "`TOKENS` of a window; 0 for 512")
		f.IntVar(&o.perplexity.Stride, "stride", 0, "`TOKENS` from a window to the next; 0 for -context")
		deviceFlag(f, &o.device)
		activationsFlag(f, &o.bind.ActivationBits)
		return func(ctx context.Context, std stdio, args []string) error {
			if len(args) != 2 {
				return usagef("MODEL and TEXT are %d arguments: two must be given", len(args))
			}
			r, _, err := o.measure(ctx, args[0], args[1], std)
			if err != nil {
				return err
			}
			fmt.Fprintf(std.out, "perplexity: %.4f ± %.4f, of %d tokens\n", r.Perplexity(), r.Error(), r.Tokens)
			return nil
		}
	},
}

// perplexityOptions are the flags of commands that measure a perplexity.
type perplexityOptions struct {
	perplexity perplexity.Options
	device     string
	bind       irlm.BindOptions
}

// measure returns the perplexity of the text of a file with a model, and the bytes of the model's weights.
func (o *perplexityOptions) measure(ctx context.Context, path, file string, std stdio) (perplexity.Result, int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return perplexity.Result{}, 0, err
	}
	words, err := wordsOf(path)
	if err != nil {
		return perplexity.Result{}, 0, err
	}
	m, err := lm.Load(path, o.bind)
	if err != nil {
		return perplexity.Result{}, 0, err
	}
	defer m.Close()
	tokens, err := words.Encode(string(text), tokenizer.EncodeOptions{})
	if err != nil {
		return perplexity.Result{}, 0, err
	}
	session, err := rlx.Open(o.device)
	if err != nil {
		return perplexity.Result{}, 0, err
	}
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	p := o.perplexity
	if around, err := words.Encode("", tokenizer.EncodeOptions{}); err == nil && len(around) > 0 {
		p.Begin = &around[0]
	}
	show, clearLine := progressOn(std.err)
	p.Progress = func(done, of int, r perplexity.Result) {
		show("%d of %d windows, perplexity %.4f", done, of, r.Perplexity())
	}
	r, err := perplexity.Measure(ctx, session, m, tokens, p)
	clearLine()
	if err != nil {
		return r, 0, fmt.Errorf("%s: %w", file, err)
	}
	bytes := int64(0)
	for _, name := range m.Weights.Names() {
		if t, ok := m.Weights.Type(name); ok {
			n, _ := t.Bytes()
			bytes += int64(n)
		}
	}
	return r, bytes, nil
}

// wordsOf opens the tokenizer of a model.
func wordsOf(path string) (*tokenizer.Tokenizer, error) {
	loaded, err := generate.Load(path)
	if err != nil {
		return nil, err
	}
	return loaded.Words, loaded.Close()
}
