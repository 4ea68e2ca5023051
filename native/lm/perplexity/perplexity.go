// Package perplexity measures how well a language model predicts a text. The input is an open model
// and the tokens of the text; the output is the exponential of the mean negative log probability of
// the tokens. Smaller is better.
//
//	model, err := lm.Load("model.gguf")
//	result, err := perplexity.Measure(ctx, session, model, tokens, perplexity.Options{})
//
// The file to read is this one.
package perplexity

import (
	"context"
	"math"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/lm"
)

// Options are the options of [Measure].
type Options struct {
	// Context is the number of tokens of a window; 0 means 512, or the model's context if that is less.
	Context int
	// Stride is the distance of consecutive windows in tokens. With 0 windows do not overlap, and
	// the predictions in the second half of each count, as in llama.cpp's llama-perplexity. With a
	// stride the last Stride predictions of each window count, and all of the first one (Hugging
	// Face's "Perplexity of fixed-length models").
	Stride int
	// Begin, if not nil, replaces the first token of each window by one that begins texts, as
	// llama.cpp does for models whose tokenizer adds one. It is used without a stride.
	Begin *int32
	// Progress, if not nil, is called after each window.
	Progress func(done, of int, r Result)
}

// Result is a measurement.
type Result struct {
	// Tokens is the number of predictions that count.
	Tokens int
	// Loss is their mean negative logarithm of the probability, in nats, and Deviation the standard
	// deviation of that mean.
	Loss, Deviation float64
}

// Perplexity returns e^Loss.
func (r Result) Perplexity() float64 { return math.Exp(r.Loss) }

// Error returns the standard deviation of the perplexity, to first order.
func (r Result) Error() float64 { return r.Perplexity() * r.Deviation }

const entry = "losses"

// Measure returns the perplexity of a text. The error is of kind [ir.ErrAttr] for a context or a stride out of
// range, [ir.ErrShape] for a text shorter than a window, and otherwise those of the session.
func Measure(ctx context.Context, s *rlx.Session, m *lm.Model, tokens []int32, o Options) (Result, error) {
	if s == nil || m == nil {
		return Result{}, ir.Attrf("the session or the model is nil: both must be open")
	}
	if o.Context == 0 {
		o.Context = min(512, m.Config.Context)
	}
	switch {
	case o.Context < 4 || o.Context > m.Config.Context:
		return Result{}, ir.Attrf("the context is %d; it must be from 4 to that of the model, %d", o.Context, m.Config.Context)
	case o.Stride < 0 || o.Stride >= o.Context:
		return Result{}, ir.Attrf("the stride is %d; it must be from 0 to %d, less than the context", o.Stride, o.Context-1)
	case len(tokens) < o.Context+1:
		return Result{}, ir.Shapef("the text has %d tokens; it needs %d, one more than the context", len(tokens), o.Context+1)
	}
	p, err := compile(ctx, s, m, o.Context)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = p.Close(ctx) }()
	step := o.Stride
	if step == 0 {
		step = o.Context
	}
	var sums sums
	windows := (len(tokens)-1-o.Context)/step + 1
	for w := range windows {
		at := w * step
		losses, err := o.window(ctx, p, tokens[at:][:o.Context+1])
		if err != nil {
			return Result{}, err
		}
		sums.add(losses[o.first(w):])
		if o.Progress != nil {
			o.Progress(w+1, windows, sums.result())
		}
	}
	return sums.result(), nil
}

// first returns the first prediction of a window that counts: prediction i is of token i + 1.
func (o Options) first(window int) int {
	switch {
	case o.Stride == 0:
		return o.Context / 2
	case window == 0:
		return 0
	}
	return o.Context - o.Stride
}

// compile returns a program with the loss of each prediction of a window.
func compile(ctx context.Context, s *rlx.Session, m *lm.Model, n int) (*rlx.Program, error) {
	g, err := ir.Build(entry, func(b *ir.Builder) {
		nn.Infer(b)
		tokens, next := b.Input("tokens", ir.I32, ir.Dims(1, n)...), b.Input("next", ir.I32, ir.Dims(1, n)...)
		b.Output("losses", m.Loss(b, tokens, next, irlm.LossOptions{Context: n, Reduction: ops.LossNone}))
	})
	if err != nil {
		return nil, err
	}
	module, err := ir.NewModule("perplexity", ir.Entry{Name: entry, Graph: g})
	if err != nil {
		return nil, err
	}
	p, err := s.Compile(ctx, module)
	if err != nil {
		return nil, err
	}
	return p, m.Set(ctx, p)
}

// window returns the losses of a window of tokens. The last token is only predicted.
func (o Options) window(ctx context.Context, p *rlx.Program, tokens []int32) ([]float32, error) {
	n := len(tokens) - 1
	in := append([]int32(nil), tokens[:n]...)
	if o.Begin != nil && o.Stride == 0 {
		in[0] = *o.Begin
	}
	out, err := p.Call(ctx, entry, rlx.Inputs{"tokens": rlx.Int32s(in, 1, n), "next": rlx.Int32s(tokens[1:], 1, n)})
	if err != nil {
		return nil, err
	}
	return out["losses"].Float32s()
}

// sums are those of the losses and of their squares.
type sums struct {
	n           int
	one, square float64
}

func (s *sums) add(losses []float32) {
	for _, x := range losses {
		s.n, s.one, s.square = s.n+1, s.one+float64(x), s.square+float64(x)*float64(x)
	}
}

func (s *sums) result() Result {
	if s.n == 0 {
		return Result{}
	}
	mean := s.one / float64(s.n)
	r := Result{Tokens: s.n, Loss: mean}
	if s.n > 1 {
		r.Deviation = math.Sqrt(max(s.square/float64(s.n)-mean*mean, 0) / float64(s.n-1))
	}
	return r
}
