package generate

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
)

// Request asks for a text.
type Request struct {
	// Prompt is the text to continue; the model needs a tokenizer. Tokens are used instead if there are any.
	Prompt string
	Tokens []int32
	// MaxTokens bounds the result; 0 means as many tokens as fit the context.
	MaxTokens int
	// Stop are strings that end the result and are not part of it. They may begin and end within
	// tokens. The model needs a tokenizer.
	Stop []string
	// StopTokens end the result, in addition to those of the tokenizer. IgnoreEnd ignores those of
	// the tokenizer.
	StopTokens []int32
	IgnoreEnd  bool
	// Sampling are the sampling options; the zero value is greedy. Seed seeds the random numbers:
	// the same request has the same result, whatever other requests run.
	Sampling lm.Sampling
	Seed     uint64
	// Bias is added to the logits of tokens, at most 300 of them.
	Bias map[int32]float32
	// Alternatives is the number of Token.Alternatives, at most Options.Alternatives.
	Alternatives int
	// Allow, if not nil, sets the bits of the tokens that may follow the result so far: bit i%32 of
	// word i/32 for token i. All bits are clear before the call. The result ends where none is set after
	// its first token. A grammar can be enforced in this way. The engine's loop calls it, so it should be
	// fast; the slot waits for each token.
	Allow func(result []int32, allowed []uint32)
}

// Token is a token of a result.
type Token struct {
	// Index is the number of the token in the result, from 0.
	Index int
	ID    int32
	// Text is the text that the token adds: "" while a character is incomplete or a stop string may
	// have begun.
	Text string
	// LogProbability is the natural logarithm of the token's probability by the model, before the
	// sampling options.
	LogProbability float64
	// Alternatives are the likeliest tokens by the model, before the sampling options, the first one first.
	Alternatives []Alternative
	// Finish is set in the last token: [FinishStop] or [FinishLength].
	Finish string
	// Stats is set in the last token.
	Stats *Stats

	ended bool // the token itself ends the text
}

// Alternative is a token that might have been taken.
type Alternative struct {
	ID             int32
	LogProbability float64
}

// Ends reports whether the token itself ended the text: it is not part of the result.
func (t Token) Ends() bool { return t.ended }

// Reasons why a result ends: a stop token or stop string, or its maximum length.
const (
	FinishStop   = "stop"
	FinishLength = "length"
)

// Stats are counts and times of a request.
type Stats struct {
	// PromptTokens counts the tokens of the prompt, Reused those whose keys and values an earlier
	// request left in the slot, and ResultTokens those of the result, a stop token included.
	PromptTokens, Reused, ResultTokens int
	// Restarts counts how often the request lost its memory to earlier requests and was processed anew.
	Restarts int
	// Drafted counts the tokens that speculative decoding proposed, Accepted those that were
	// accepted.
	Drafted, Accepted int
	// Waited is the time in the queue, FirstToken the time from there to the first token, and
	// Decode that from the first token to the last.
	Waited, FirstToken, Decode time.Duration
}

// PromptRate returns the tokens of the prompt per second.
func (s *Stats) PromptRate() float64 { return rate(s.PromptTokens-s.Reused, s.FirstToken) }

// DecodeRate returns the tokens after the first one per second.
func (s *Stats) DecodeRate() float64 { return rate(s.ResultTokens-1, s.Decode) }

func rate(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// Result is a whole result.
type Result struct {
	Text   string
	Tokens []int32 // without a stop token
	Finish string
	Stats  Stats
}

// Generate returns the tokens of the result as they are generated. The sequence ends after a token
// with Finish set, or with an error: of kind [ErrRequest] for an invalid request, [*ContextError]
// for a prompt that fills the context, [ErrClosed], that of ctx, or that of the device. Breaking
// off the loop frees the slot. The request starts with the loop over the sequence.
func (e *Engine) Generate(ctx context.Context, q Request) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		r, err := e.submit(ctx, q)
		if err != nil {
			yield(Token{}, err)
			return
		}
		defer r.leave(e)
		for {
			select {
			case x := <-r.out:
				if !yield(x.token, x.err) || x.err != nil || x.token.Finish != "" {
					return
				}
			case <-ctx.Done():
				yield(Token{}, ctx.Err())
				return
			}
		}
	}
}

// Complete returns a whole result. Errors are those of [Engine.Generate]; the result then holds the
// tokens before the error.
func (e *Engine) Complete(ctx context.Context, q Request) (Result, error) {
	if e == nil {
		return Result{}, ir.Attrf("the engine is nil: it must be from New")
	}
	var out Result
	for token, err := range e.Generate(ctx, q) {
		if err != nil {
			return out, err
		}
		out.Text += token.Text
		if !token.ended {
			out.Tokens = append(out.Tokens, token.ID)
		}
		if token.Finish != "" {
			out.Finish, out.Stats = token.Finish, *token.Stats
		}
	}
	return out, nil
}

// event is a message of the loop to a request.
type event struct {
	token Token
	err   error
}

// request is a request in the engine. Only the loop uses the fields after out.
type request struct {
	Request
	ctx    context.Context
	leaves context.CancelFunc
	prompt []int32
	limit  int // of the result
	end    []int32
	out    chan event // buffers all events

	text    Stream
	stopper stopper
	random  *rand.Rand
	numbers []float64 // random numbers by the index of their token
	fill    []int32   // tokens to process before the next one is sampled: the prompt, and the result so far
	order   int       // of its admission
	turn    int       // how often it was admitted
	result  []int32
	allowed []uint32 // the tokens that Allow has follow the result
	issued  int      // tokens of the result whose runs have started
	flying  int      // started runs whose results have not been read
	ended   bool
	stats   Stats
	since   time.Time // start of the phase
}

// submit checks a request and queues it.
func (e *Engine) submit(ctx context.Context, q Request) (*request, error) {
	r := &request{Request: q, prompt: q.Tokens, stopper: stopper{stops: q.Stop}, random: rand.New(rand.NewPCG(q.Seed, 0)), since: time.Now()}
	if err := e.check(r); err != nil {
		return nil, err
	}
	r.stats.PromptTokens, r.fill = len(r.prompt), r.prompt
	if r.Allow != nil {
		r.allowed = make([]uint32, e.words)
	}
	r.out = make(chan event, r.limit+1)
	r.ctx, r.leaves = context.WithCancel(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed != nil {
		r.leaves()
		return nil, e.failed
	}
	e.waiting = append(e.waiting, r)
	e.signal()
	return r, nil
}

// check sets the prompt and the bounds of a request.
func (e *Engine) check(r *request) (err error) {
	t := e.model.Tokenizer
	r.end = slices.Clone(r.StopTokens)
	switch {
	case t != nil:
		r.text = t.Stream()
		if !r.IgnoreEnd {
			r.end = append(r.end, t.End()...)
		}
	case len(r.prompt) == 0:
		return refuse("there are no Tokens: without a tokenizer they must be given")
	case len(r.Stop) > 0:
		return refuse("Stop is given: without a tokenizer it must be left out")
	}
	if len(r.prompt) == 0 {
		if r.prompt, err = t.Encode(r.Prompt); err != nil {
			return err
		}
		if len(r.prompt) == 0 {
			return refuse("the prompt has no tokens: it must have one or more")
		}
	}
	if slices.Contains(r.Stop, "") {
		return refuse(`Stop has "": its strings must not be empty`)
	}
	for _, id := range r.prompt {
		if id < 0 || int(id) >= e.model.Config.Vocabulary {
			return refuse("the prompt has the token %d: it must be in [0, %d), the vocabulary of the model", id, e.model.Config.Vocabulary)
		}
	}
	if len(r.prompt) >= e.options.Context {
		return &ContextError{len(r.prompt), e.options.Context}
	}
	if r.limit = e.options.Context - len(r.prompt); r.MaxTokens > 0 {
		r.limit = min(r.limit, r.MaxTokens)
	}
	switch {
	case r.MaxTokens < 0:
		return refuse("MaxTokens is %d: it must not be negative", r.MaxTokens)
	case r.Alternatives < 0 || r.Alternatives > e.options.Alternatives:
		return refuse("Alternatives is %d: it must be in [0, %d], the option of the engine", r.Alternatives, e.options.Alternatives)
	case len(r.Bias) > maxBiases:
		return refuse("Bias has %d tokens: it must have at most %d", len(r.Bias), maxBiases)
	}
	for id := range r.Bias {
		if id < 0 || int(id) >= e.model.Config.Vocabulary {
			return refuse("Bias has the token %d: it must be in [0, %d), the vocabulary of the model", id, e.model.Config.Vocabulary)
		}
	}
	if err := r.Sampling.Check(); err != nil {
		return fmt.Errorf("generate: %w: %w", ErrRequest, err)
	}
	return nil
}

// leave frees the slot or the queue entry of a request whose caller has gone.
func (r *request) leave(e *Engine) {
	r.leaves()
	e.signal()
}

// push adds a token to the result and sends it. It reports whether the result has ended.
func (r *request) push(id int32, probability float64, alternatives []Alternative) bool {
	now := time.Now()
	if len(r.result) == 0 {
		r.stats.FirstToken, r.since = now.Sub(r.since), now
	}
	t := Token{Index: len(r.result), ID: id, LogProbability: probability, Alternatives: alternatives}
	r.result = append(r.result, id)
	var found bool
	switch {
	case slices.Contains(r.end, id):
		t.Finish, t.ended = FinishStop, true
	case r.text != nil:
		if t.Text, found = r.stopper.add(r.text.Next(id)); found {
			t.Finish = FinishStop
		}
	}
	switch {
	case t.Finish != "":
	case len(r.result) == r.limit:
		t.Finish = FinishLength
	case !r.mayFollow():
		t.Finish = FinishStop
	}
	if t.Finish != "" {
		if !found {
			r.finishText(&t)
		}
		r.stats.Decode, r.stats.ResultTokens = now.Sub(r.since), len(r.result)
		stats := r.stats
		t.Stats, r.ended = &stats, true
	}
	r.out <- event{token: t}
	return r.ended
}

// finishText adds the withheld text to the last token, which no stop string ended.
func (r *request) finishText(t *Token) {
	if r.text == nil {
		return
	}
	text, found := r.stopper.add(r.text.Rest())
	if t.Text += text; !found {
		t.Text += r.stopper.rest()
	}
}

// fail ends a request with an error.
func (r *request) fail(err error) {
	if !r.ended {
		r.ended = true
		r.out <- event{err: err}
	}
}

// drafts reports whether speculative decoding can serve a request: the choice of a token depends on
// the logits alone.
func (r *request) drafts() bool {
	return !r.penalises() && r.Sampling.Presence == 0 && r.Sampling.Frequency == 0 && r.Allow == nil
}

// number returns the random number that selects a token of the result: always the same, however often the
// token is computed.
func (r *request) number(index int) float64 {
	for len(r.numbers) <= index {
		r.numbers = append(r.numbers, r.random.Float64())
	}
	return r.numbers[index]
}

// mayFollow finds the tokens that Allow has follow the result, and reports whether there are any.
func (r *request) mayFollow() bool {
	if r.Allow == nil {
		return true
	}
	clear(r.allowed)
	r.Allow(r.result, r.allowed)
	return slices.ContainsFunc(r.allowed, func(w uint32) bool { return w != 0 })
}

// penalises reports whether a penalty applies to tokens of the prompt.
func (r *request) penalises() bool { return r.Sampling.Repetition != 0 && r.Sampling.Repetition != 1 }
