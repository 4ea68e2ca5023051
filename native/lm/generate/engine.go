package generate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
	nativelm "github.com/rlx-go/rlx/native/lm"
)

// Model is a model that an engine can run.
type Model struct {
	Config lm.Config
	// Decoder adds the model to a graph: [lm.Decoder] with the weights as stored.
	Decoder func(b *ir.Builder, tokens ir.Value, o ...lm.DecoderOptions) ir.Value
	// Set sets the parameters of a program.
	Set func(ctx context.Context, p nativelm.Setter) error
	// Tokenizer is required for requests and results that are texts; nil allows tokens only.
	Tokenizer Tokenizer
}

// Of returns an open model without a tokenizer; of nil the zero Model, which [New] refuses.
func Of(m *nativelm.Model) Model {
	if m == nil {
		return Model{}
	}
	return Model{Config: m.Config, Decoder: m.Decoder, Set: m.Set}
}

// Tokenizer converts texts to tokens and back. It may be used by several goroutines.
type Tokenizer interface {
	// Encode returns the tokens of a prompt, including those that begin every text.
	Encode(text string) ([]int32, error)
	// Stream returns a decoder for one sequence of tokens.
	Stream() Stream
	// End returns the tokens that end a text.
	End() []int32
	// Size is the number of tokens; every token is below it.
	Size() int
}

// Stream decodes tokens one after the other.
type Stream interface {
	// Next returns the text that a token completes. It buffers the bytes of an incomplete
	// character.
	Next(token int32) string
	// Rest returns the text of the buffered bytes.
	Rest() string
}

// Options are the options of [New].
type Options struct {
	// Slots is the number of sequences that are decoded at once; 0 means 1.
	Slots int
	// Context is the number of positions of a slot, prompt and result included; 0 means the
	// model's, but at most 2,048.
	Context int
	// Positions is the number of positions of all slots together; 0 means Slots·Context, and Context is
	// the least. Memory of keys and values is proportional to it. Slots take pages of it as they grow. If none
	// is left, the request that began last waits and is processed anew later, with the same result.
	Positions int
	// Page is the number of positions of a page; 0 means 128, and a multiple for a Context of more than
	// 8,192.
	Page int
	// Chunk is the number of prompt positions processed by one run; 0 means 128. Other slots are
	// served between the chunks of a long prompt.
	Chunk int
	// InFlight is the maximum number of started runs whose results have not been read; 0 means 3.
	InFlight int
	// Draft is the number of tokens that speculative decoding proposes for a run; 0 means none, or 4
	// with a DraftModel. The model verifies a draft in one run and keeps the tokens that it would have
	// chosen itself, so results do not change. Requests without penalties and Allow then decode one
	// slot at a time, which pays off for few slots.
	Draft int
	// DraftModel proposes the tokens: a much smaller model with the same tokenizer. nil means prompt
	// lookup, which pays off for texts that repeat parts of the prompt. Of its tokenizer the size alone is compared.
	DraftModel *Model
	// Precision is that of products, see [rlx.Precision]; the zero value computes them as the model has them. With
	// MixedBF16 or MixedF16 prompts whose Chunk is 64 or more multiply packed weights in 16 bits: on
	// tensor cores of CUDA, many times as fast. Results of packed weights of fewer than 64 rows stay in f32.
	Precision rlx.Precision
	// Alternatives is the number of likeliest tokens that each run returns, for Request.Alternatives; 0 means none.
	Alternatives int
	// NoReuse disables the reuse of keys and values of an earlier request with a common prefix.
	NoReuse bool
}

// Kernels of attention read a page in a workgroup and combine the results of all pages.
const (
	pagePositions = 128 // of a page
	maxPages      = 64  // of a slot whose pages have pagePositions
)

// maxAlternatives bounds Options.Alternatives.
const maxAlternatives = 20

// slotPages returns the number of pages of a whole slot.
func (o *Options) slotPages() int { return (o.Context + o.Page - 1) / o.Page }

// pages returns the number of pages of all slots: a slot may have one that is filled in part.
func (o *Options) pages() int {
	return min(o.Slots*o.slotPages(), max(o.Positions/o.Page, o.slotPages()))
}

// complete checks the options and sets their defaults.
func (o *Options) complete(c lm.Config) error {
	set := func(x *int, name string, value int) error {
		if *x < 0 {
			return fmt.Errorf("generate: %s is %d: it must not be negative", name, *x)
		}
		if *x == 0 {
			*x = value
		}
		return nil
	}
	draft := 0
	if o.DraftModel != nil {
		draft = 4
	}
	for _, err := range []error{
		set(&o.Slots, "Slots", 1), set(&o.Context, "Context", min(c.Context, 2048)), set(&o.Chunk, "Chunk", 128),
		set(&o.Positions, "Positions", 0), set(&o.Page, "Page", 0), set(&o.InFlight, "InFlight", 3), set(&o.Draft, "Draft", draft),
		set(&o.Alternatives, "Alternatives", 0),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case o.Context > c.Context:
		return fmt.Errorf("generate: Context is %d: it must be at most that of the model, %d", o.Context, c.Context)
	case o.Context < 2 || o.Slots > math.MaxInt16 || o.Draft >= o.Context:
		return fmt.Errorf("generate: Context is %d, Slots %d and Draft %d: Context must be 2 or more and more than Draft, and Slots at most %d", o.Context, o.Slots, o.Draft, math.MaxInt16)
	}
	if o.Alternatives > maxAlternatives {
		return fmt.Errorf("generate: Alternatives is %d: it must be at most %d", o.Alternatives, maxAlternatives)
	}
	o.Alternatives = min(o.Alternatives, c.Vocabulary)
	o.Chunk = min(o.Chunk, o.Context)
	if o.Page == 0 {
		o.Page = pagePositions * ((o.Context + pagePositions*maxPages - 1) / (pagePositions * maxPages))
	}
	o.Page = min(o.Page, o.Context)
	if o.Positions == 0 {
		o.Positions = o.Slots * o.Context
	}
	if o.Positions < o.Context {
		return fmt.Errorf("generate: Positions is %d: it must be at least Context, %d", o.Positions, o.Context)
	}
	return nil
}

// Engine generates texts. Its methods may be called by several goroutines.
type Engine struct {
	model   Model
	options Options
	program *rlx.Program
	drafter *drafter // nil without a DraftModel
	words   int      // words of a mask
	rows    []int    // rows of the decode entries, ascending

	mu      sync.Mutex
	waiting []*request
	failed  error
	wake    chan struct{} // signals a change to the loop
	done    chan struct{} // closed when the loop has ended
}

// New compiles the entries of a model for a session, sets the parameters, and starts the loop. The
// tokenizer's tokens must be in the vocabulary. [Engine.Close] releases the program.
func New(ctx context.Context, s *rlx.Session, m Model, o Options) (*Engine, error) {
	for _, m := range []*Model{&m, o.DraftModel} {
		if m != nil && (m.Decoder == nil || m.Set == nil) {
			return nil, fmt.Errorf("generate: the model has no Decoder or no Set: it must have both")
		}
	}
	if err := o.complete(m.Config); err != nil {
		return nil, err
	}
	if t := m.Tokenizer; t != nil && t.Size() > m.Config.Vocabulary {
		return nil, fmt.Errorf("generate: the tokenizer has %d tokens: it must have at most those of the model, %d", t.Size(), m.Config.Vocabulary)
	}
	if d := o.DraftModel; d != nil && d.Tokenizer != nil && m.Tokenizer != nil && d.Tokenizer.Size() != m.Tokenizer.Size() {
		return nil, fmt.Errorf("generate: the tokenizer of DraftModel has %d tokens: it must be that of the model, which has %d", d.Tokenizer.Size(), m.Tokenizer.Size())
	}
	e := &Engine{model: m, options: o, words: (m.Config.Vocabulary + 31) / 32, rows: rowsOf(o.Slots), wake: make(chan struct{}, 1), done: make(chan struct{})}
	module, err := e.module()
	if err != nil {
		return nil, err
	}
	if e.program, err = m.compile(ctx, s, module, o.Precision); err != nil {
		return nil, err
	}
	if o.DraftModel != nil {
		if e.drafter, err = newDrafter(ctx, s, *o.DraftModel, o); err != nil {
			return nil, errors.Join(fmt.Errorf("draft model: %w", err), e.program.Close(ctx))
		}
	}
	go e.loop(context.WithoutCancel(ctx))
	return e, nil
}

// compile compiles entries that declare the model's parameters, and sets these.
func (m Model) compile(ctx context.Context, s *rlx.Session, entries *ir.Module, p rlx.Precision) (*rlx.Program, error) {
	program, err := s.CompileWith(ctx, entries, rlx.CompileOptions{Precision: p})
	if err != nil {
		return nil, err
	}
	if err := m.Set(ctx, program); err != nil {
		return nil, errors.Join(err, program.Close(ctx))
	}
	return program, nil
}

// Options returns the options with their defaults.
func (e *Engine) Options() Options { return e.options }

// Model returns the model.
func (e *Engine) Model() Model { return e.model }

// Close ends all requests with [ErrClosed] and releases the program.
func (e *Engine) Close(ctx context.Context) error {
	if e == nil {
		return ir.Attrf("the engine is nil: it must be from New")
	}
	e.fail(ErrClosed)
	select {
	case <-e.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := e.program.Close(ctx)
	if e.drafter != nil {
		err = errors.Join(err, e.drafter.program.Close(ctx))
	}
	return err
}

// fail makes the engine refuse all further requests with err, unless it already refuses them.
func (e *Engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil {
		e.failed = err
	}
	e.signal()
}

// signal wakes the loop.
func (e *Engine) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
