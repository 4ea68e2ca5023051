package generate_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/lm/generate"
	"github.com/rlx-go/rlx/native/lm/internal/fragile"
	"github.com/rlx-go/rlx/native/safetensors"
)

var ctx = context.Background()

// letters is a tokenizer with one token per letter; the last token ends a text.
type letters struct{ size int }

func (l letters) Encode(text string) (ids []int32, err error) {
	for _, r := range text {
		ids = append(ids, int32(r-'!'))
	}
	return ids, nil
}
func (l letters) Stream() generate.Stream { return letters{} }
func (letters) Next(token int32) string   { return string('!' + token) }
func (letters) Rest() string              { return "" }
func (l letters) End() []int32            { return []int32{int32(l.size) - 1} }
func (l letters) Size() int               { return l.size }

// tiny opens a model of native/lm, with the prompt and the greedy continuation that transformers computes.
func tiny(t testing.TB, name string) (m *lm.Model, prompt, greedy []int32) {
	t.Helper()
	folder := filepath.Join("..", "testdata", name)
	m, err := lm.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	tensors, _, err := safetensors.ReadFile(filepath.Join(folder, "expected.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	prompt, _ = tensors["prompt"].Int32s()
	greedy, _ = tensors["greedy"].Int32s()
	return m, prompt, greedy
}

func engineOf(t testing.TB, m generate.Model, o generate.Options) *generate.Engine {
	t.Helper()
	s, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	e, err := generate.New(ctx, s, m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
		_ = s.Close(ctx)
	})
	return e
}

// whole returns the results of requests that run at once.
func whole(t testing.TB, e *generate.Engine, q ...generate.Request) []generate.Result {
	t.Helper()
	out, errs := make([]generate.Result, len(q)), make([]error, len(q))
	var g sync.WaitGroup
	for i := range q {
		g.Go(func() { out[i], errs[i] = e.Complete(ctx, q[i]) })
	}
	g.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestGreedyResultsAgreeWithTransformers runs more requests than there are slots, with prompts of several lengths
// before, so that slots are used again: none sees what another left.
func TestGreedyResultsAgreeWithTransformers(t *testing.T) {
	for _, name := range []string{"llama", "mistral", "gemma3", "gpt2"} {
		m, prompt, greedy := tiny(t, name)
		e := engineOf(t, generate.Of(m), generate.Options{Slots: 2, Chunk: 4, Context: len(prompt) + len(greedy)})
		want := generate.Request{Tokens: prompt, MaxTokens: len(greedy)}
		for range 2 {
			got := whole(t, e, generate.Request{Tokens: prompt[3:9], MaxTokens: 5}, want, generate.Request{Tokens: prompt[:2]}, want)
			for _, i := range []int{1, 3} {
				if !slices.Equal(got[i].Tokens, greedy) || got[i].Finish != generate.FinishLength {
					t.Errorf("%s: %v %q, want %v", name, got[i].Tokens, got[i].Finish, greedy)
				}
			}
		}
	}
}

// TestLongRoPEGoesByThePositionsOfTheEngine: a model of LongRoPE divides angles as transformers 5.24.0 does for a
// sequence of its original length, 16, where the engine has no more positions.
func TestLongRoPEGoesByThePositionsOfTheEngine(t *testing.T) {
	m, _, _ := tiny(t, "phi3")
	got := whole(t, engineOf(t, generate.Of(m), generate.Options{Context: 16}), generate.Request{Tokens: []int32{41, 49, 16}, MaxTokens: 10, IgnoreEnd: true})
	if want := []int32{47, 62, 17, 16, 15, 3, 21, 21, 21, 21}; !slices.Equal(got[0].Tokens, want) {
		t.Errorf("%v, want %v", got[0].Tokens, want)
	}
}

// TestEngine has the tests that share an engine of three slots.
func TestEngine(t *testing.T) {
	m, prompt, greedy := tiny(t, "llama")
	model := generate.Of(m)
	model.Tokenizer = letters{m.Config.Vocabulary}
	e := engineOf(t, model, generate.Options{Slots: 3, Chunk: 5, Context: 60})
	text := func(tokens []int32) (s string) {
		for _, id := range tokens {
			s += letters{}.Next(id)
		}
		return s
	}

	t.Run("sampled results do not depend on others", func(t *testing.T) {
		q := generate.Request{Tokens: prompt, MaxTokens: 12, IgnoreEnd: true, Seed: 7, Sampling: irlm.Sampling{Temperature: 2, TopP: 0.9, Repetition: 1.2, Frequency: 0.5}}
		other := q
		other.Seed = 8
		alone := whole(t, e, q)[0].Tokens
		beside := whole(t, e, other, q, generate.Request{Tokens: prompt[:3], MaxTokens: 20}, other)
		if !slices.Equal(beside[1].Tokens, alone) || slices.Equal(beside[0].Tokens, alone) || !slices.Equal(beside[0].Tokens, beside[3].Tokens) {
			t.Errorf("seed 7 alone %v, beside others %v; seed 8 %v and %v", alone, beside[1].Tokens, beside[0].Tokens, beside[3].Tokens)
		}
	})

	t.Run("prompts with a common beginning are reused", func(t *testing.T) {
		q := generate.Request{Tokens: prompt, MaxTokens: len(greedy), IgnoreEnd: true}
		whole(t, e, q)
		longer := q
		longer.Tokens, longer.MaxTokens = slices.Concat(prompt, greedy[:4]), len(greedy)-4
		got := whole(t, e, longer)[0]
		if !slices.Equal(got.Tokens, greedy[4:]) || got.Stats.Reused != len(prompt)+3 {
			t.Errorf("%v with %d reused, want %v with %d", got.Tokens, got.Stats.Reused, greedy[4:], len(prompt)+3)
		}
	})

	t.Run("stop strings across tokens", func(t *testing.T) {
		stop := text(greedy[3:6])
		if i := strings.Index(text(greedy), stop); i < 0 {
			t.Fatal("no stop")
		}
		var pieces []string
		for token, err := range e.Generate(ctx, generate.Request{Tokens: prompt, Stop: []string{"\x00", stop}, IgnoreEnd: true}) {
			if err != nil {
				t.Fatal(err)
			}
			pieces = append(pieces, token.Text)
			if token.Finish != "" && token.Finish != generate.FinishStop {
				t.Error(token.Finish)
			}
		}
		before, _, _ := strings.Cut(text(greedy), stop)
		if got := strings.Join(pieces, ""); got != before {
			t.Errorf("%q, want %q", got, before)
		}
	})

	t.Run("tokens that end a text", func(t *testing.T) {
		q := generate.Request{Tokens: prompt, MaxTokens: 9, StopTokens: []int32{greedy[2]}, IgnoreEnd: true}
		got := whole(t, e, q)[0]
		n := slices.Index(greedy, greedy[2])
		if !slices.Equal(got.Tokens, greedy[:n]) || got.Finish != generate.FinishStop || got.Text != text(greedy[:n]) {
			t.Errorf("%+v, want %v", got, greedy[:n])
		}
	})

	t.Run("masks and biases", func(t *testing.T) {
		even := func(_ []int32, allowed []uint32) {
			for i := range allowed {
				allowed[i] = 0x55555555
			}
		}
		got := whole(t, e,
			generate.Request{Tokens: prompt, MaxTokens: 8, Allow: even, IgnoreEnd: true, Sampling: irlm.Sampling{Temperature: 3}},
			generate.Request{Tokens: prompt, MaxTokens: 3, Bias: map[int32]float32{5: 1000}})
		for _, id := range got[0].Tokens {
			if id%2 != 0 {
				t.Errorf("%v has odd tokens", got[0].Tokens)
			}
		}
		if !slices.Equal(got[1].Tokens, []int32{5, 5, 5}) {
			t.Errorf("%v, want the biased token", got[1].Tokens)
		}
	})

	// As after a whole value of JSON by a tokenizer without a token for the end.
	t.Run("masks without a token", func(t *testing.T) {
		three := func(result []int32, allowed []uint32) {
			for i := range allowed {
				if len(result) < 3 {
					allowed[i] = 1<<32 - 1
				}
			}
		}
		stop := text(greedy[2:3]) + "\x00" // which may begin with the last token
		got := whole(t, e, generate.Request{Tokens: prompt, MaxTokens: 8, Allow: three, IgnoreEnd: true, Stop: []string{stop}})[0]
		if !slices.Equal(got.Tokens, greedy[:3]) || got.Finish != generate.FinishStop || got.Text != text(greedy[:3]) {
			t.Errorf("%+v, want %v", got, greedy[:3])
		}
	})

	t.Run("texts", func(t *testing.T) {
		got := whole(t, e, generate.Request{Prompt: text(prompt), MaxTokens: 6, IgnoreEnd: true})[0]
		if got.Text != text(greedy[:6]) {
			t.Errorf("%q, want %q", got.Text, text(greedy[:6]))
		}
	})

	t.Run("contexts that end", func(t *testing.T) {
		for range 5 { // more than there are slots
			c, cancel := context.WithCancel(ctx)
			n := 0
			var last error
			for _, err := range e.Generate(c, generate.Request{Tokens: prompt, IgnoreEnd: true}) {
				if n++; n == 3 {
					cancel()
				}
				last = err
			}
			if cancel(); !errors.Is(last, context.Canceled) && n < 30 {
				t.Errorf("%v after %d tokens", last, n)
			}
			for _, err := range e.Generate(ctx, generate.Request{Tokens: prompt}) {
				if err != nil {
					t.Error(err)
				}
				break
			}
		}
		if got := whole(t, e, generate.Request{Tokens: prompt, MaxTokens: 4, IgnoreEnd: true})[0].Tokens; !slices.Equal(got, greedy[:4]) {
			t.Errorf("afterwards %v, want %v", got, greedy[:4])
		}
	})

	t.Run("bad requests", func(t *testing.T) {
		for name, q := range map[string]generate.Request{
			"long prompt":     {Tokens: make([]int32, 60)},
			"no prompt":       {},
			"unknown token":   {Tokens: []int32{int32(m.Config.Vocabulary)}},
			"negative token":  {Tokens: []int32{-1}},
			"empty stop":      {Tokens: prompt, Stop: []string{""}},
			"negative length": {Tokens: prompt, MaxTokens: -1},
			"temperature":     {Tokens: prompt, Sampling: irlm.Sampling{Temperature: -1}},
			"biases":          {Tokens: prompt, Bias: manyBiases()},
		} {
			if _, err := e.Complete(ctx, q); !errors.Is(err, generate.ErrRequest) {
				t.Errorf("%s: %v", name, err)
			}
		}
		var long *generate.ContextError
		if _, err := e.Complete(ctx, generate.Request{Tokens: make([]int32, 70)}); !errors.As(err, &long) || long.Prompt != 70 || long.Context != 60 {
			t.Error(err)
		}
	})
}

func manyBiases() map[int32]float32 {
	m := map[int32]float32{}
	for i := range int32(301) {
		m[i] = 1
	}
	return m
}

// TestDraftsKeepGreedyResults compares speculative decoding with the results of transformers and of an engine without it.
func TestDraftsKeepGreedyResults(t *testing.T) {
	m, prompt, greedy := tiny(t, "llama")
	plain := engineOf(t, generate.Of(m), generate.Options{Context: 60})
	drafts := engineOf(t, generate.Of(m), generate.Options{Slots: 2, Context: 60, Draft: 4})
	accepted := 0
	for _, tokens := range [][]int32{prompt, slices.Concat(prompt[:6], prompt[:6], prompt[:3]), {3, 3, 3, 3}} {
		q := generate.Request{Tokens: tokens}
		want, got := whole(t, plain, q)[0], whole(t, drafts, q, generate.Request{Tokens: tokens, MaxTokens: 3, Sampling: irlm.Sampling{Temperature: 1}})[0]
		if !slices.Equal(got.Tokens, want.Tokens) || got.Finish != want.Finish {
			t.Errorf("with drafts %v, want %v", got.Tokens, want.Tokens)
		}
		accepted += got.Stats.Accepted
	}
	if got := whole(t, drafts, generate.Request{Tokens: prompt, MaxTokens: len(greedy)})[0].Tokens; !slices.Equal(got, greedy) {
		t.Errorf("%v, want %v", got, greedy)
	}
	if accepted == 0 {
		t.Error("no draft was accepted")
	}
}

// successor is a model without parameters: its next token is the last one plus 7, modulo the vocabulary.
func successor(vocabulary int) generate.Model {
	return generate.Model{
		Config: irlm.Config{Vocabulary: vocabulary, Context: 20},
		Decoder: func(b *ir.Builder, tokens ir.Value, o ...irlm.DecoderOptions) ir.Value {
			if at := o[0].At; at.Valid() {
				tokens = ops.TakeAlongAxis(b, tokens, ops.ExpandDims(b, at, 1), 1, ops.OutsideClip)
			}
			next := ops.Rem(b, ops.Add(b, tokens, ops.Const(b, ir.I32, 7)), ops.Const(b, ir.I32, float64(vocabulary)))
			return ops.OneHot(b, next, ir.N(vocabulary), ir.F32)
		},
		Set: func(context.Context, lm.Setter) error { return nil },
	}
}

// TestDraftsKeepSampledResults compares speculative decoding, by prompt lookup and by models that always and
// seldom agree, with the results of an engine without it, greedy and sampled.
func TestDraftsKeepSampledResults(t *testing.T) {
	m, prompt, _ := tiny(t, "llama")
	other, _, _ := tiny(t, "gemma3")
	same, small, next := generate.Of(m), generate.Of(other), successor(m.Config.Vocabulary+8)
	requests := []generate.Request{
		{Tokens: prompt},
		{Tokens: slices.Repeat(prompt[:3], 5), MaxTokens: 17},
		{Tokens: prompt[2:], Seed: 3, Sampling: irlm.Sampling{Temperature: 0.8, TopK: 5}},
		{Tokens: prompt[:5], Seed: 4, Sampling: irlm.Sampling{Temperature: 3, MinP: 0.01}, Bias: map[int32]float32{5: 2}},
		{Tokens: prompt, Seed: 5, MaxTokens: 9, Sampling: irlm.Sampling{Temperature: 1, Frequency: 1}}, // has no drafts
	}
	want := whole(t, engineOf(t, generate.Of(m), generate.Options{Context: 60}), requests...)
	for name, o := range map[string]generate.Options{
		"prompt lookup": {Draft: 3}, "the same model": {DraftModel: &same}, "the same, chunks of one": {Slots: 2, Chunk: 1, Draft: 1, DraftModel: &same},
		"another model": {Slots: 2, Chunk: 7, Draft: 5, DraftModel: &small}, "a larger vocabulary": {Draft: 3, DraftModel: &next},
	} {
		o.Context = 60
		drafted, accepted := 0, 0
		for i, got := range whole(t, engineOf(t, generate.Of(m), o), requests...) {
			if !slices.Equal(got.Tokens, want[i].Tokens) || got.Finish != want[i].Finish {
				t.Errorf("%s, request %d: %v, want %v", name, i, got.Tokens, want[i].Tokens)
			}
			if i < 4 {
				drafted, accepted = drafted+got.Stats.Drafted, accepted+got.Stats.Accepted
			} else if got.Stats.Drafted != 0 {
				t.Errorf("%s: %d tokens are proposed to a request with penalties", name, got.Stats.Drafted)
			}
			if name == "the same model" && i < 2 && got.Stats.Accepted != got.Stats.Drafted {
				t.Errorf("%d of %d proposals of the same model are accepted", got.Stats.Accepted, got.Stats.Drafted)
			}
		}
		t.Logf("%s: %d of %d accepted", name, accepted, drafted)
		if drafted == 0 || strings.Contains(name, "same") && accepted == 0 {
			t.Errorf("%s: %d of %d proposals accepted", name, accepted, drafted)
		}
	}
}

// TestRequestsShareMemory runs more requests than the pages hold: some lose theirs and are processed anew. The results
// are those of an engine with room for all, by penalties, samples and drafts.
func TestRequestsShareMemory(t *testing.T) {
	m, prompt, greedy := tiny(t, "llama")
	requests := []generate.Request{
		{Tokens: prompt, MaxTokens: len(greedy)},
		{Tokens: prompt[:4], Seed: 2, Sampling: irlm.Sampling{Temperature: 1.5}},
		{Tokens: prompt[1:], Seed: 3, Sampling: irlm.Sampling{Temperature: 1, Repetition: 1.3, Frequency: 0.7}},
		{Tokens: prompt[:9]},
		{Tokens: prompt, Seed: 4, Sampling: irlm.Sampling{Temperature: 2, Presence: 2}},
		{Tokens: slices.Repeat(prompt[:2], 8)},
	}
	want := whole(t, engineOf(t, generate.Of(m), generate.Options{Context: 60, NoReuse: true}), requests...)
	if !slices.Equal(want[0].Tokens, greedy) {
		t.Fatalf("%v, want %v", want[0].Tokens, greedy)
	}
	for name, o := range map[string]generate.Options{
		"one whole sequence": {Slots: 5, Positions: 60}, "pages of one position": {Slots: 3, Positions: 100, Page: 1, InFlight: 1}, "drafts": {Slots: 4, Positions: 77, Draft: 3},
	} {
		if o.Context = 60; o.Page == 0 {
			o.Page = 8
		}
		e, restarts := engineOf(t, generate.Of(m), o), 0
		for range 2 { // the second time from what the first left
			for i, got := range whole(t, e, requests...) {
				if !slices.Equal(got.Tokens, want[i].Tokens) || got.Finish != want[i].Finish {
					t.Errorf("%s, request %d, %d restarts: %v, want %v", name, i, got.Stats.Restarts, got.Tokens, want[i].Tokens)
				}
				restarts += got.Stats.Restarts
			}
		}
		if restarts == 0 {
			t.Errorf("%s: no request lost its memory", name)
		}
	}
}

// TestEnginesEnd closes an engine, and the session of another, in the middle of results.
func TestEnginesEnd(t *testing.T) {
	m, prompt, _ := tiny(t, "smollm")
	for name, end := range map[string]func(s *rlx.Session, e *generate.Engine){
		"engine":  func(_ *rlx.Session, e *generate.Engine) { _ = e.Close(ctx) },
		"session": func(s *rlx.Session, _ *generate.Engine) { _ = s.Close(ctx) },
	} {
		s, err := rlx.Open("cpu")
		if err != nil {
			t.Fatal(err)
		}
		e, err := generate.New(ctx, s, generate.Of(m), generate.Options{Context: 60})
		if err != nil {
			t.Fatal(err)
		}
		n, last := 0, error(nil)
		endless := func(yield func(generate.Request) bool) {
			for yield(generate.Request{Tokens: prompt}) {
			}
		}
		for q := range endless {
			for _, err := range e.Generate(ctx, q) {
				if n++; n == 3 {
					end(s, e)
				}
				last = err
			}
			if last != nil {
				break
			}
		}
		if name == "engine" && !errors.Is(last, generate.ErrClosed) {
			t.Errorf("%s: %v", name, last)
		}
		_ = e.Close(ctx)
		if _, err := e.Complete(ctx, generate.Request{Tokens: prompt}); err == nil {
			t.Errorf("%s: a request is served", name)
		}
		_ = s.Close(ctx)
	}
}

func TestEnginesRefuseOptions(t *testing.T) {
	m, _, _ := tiny(t, "llama")
	s, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	for i, o := range []generate.Options{{Slots: -1}, {Context: m.Config.Context + 1}, {Context: 1}, {Context: 8, Draft: 8}, {DraftModel: &generate.Model{}}, {Context: 20, Positions: 19}, {Page: -1}} {
		if _, err := generate.New(ctx, s, generate.Of(m), o); err == nil {
			t.Errorf("options %d are taken", i)
		}
	}
	wrong := generate.Of(m)
	wrong.Tokenizer = letters{m.Config.Vocabulary + 1}
	if _, err := generate.New(ctx, s, wrong, generate.Options{}); err == nil || !strings.Contains(err.Error(), fmt.Sprint(m.Config.Vocabulary)) {
		t.Errorf("a tokenizer of a larger vocabulary: %v", err)
	}
	broken := generate.Of(m)
	broken.Decoder = func(b *ir.Builder, tokens ir.Value, _ ...irlm.DecoderOptions) ir.Value { return tokens }
	if _, err := generate.New(ctx, s, broken, generate.Options{}); err == nil {
		t.Error("a decoder without logits is taken")
	}
}

// TestLostDevicesEndResults loses the device in the middle of two results, while a third request waits: all get
// the error, and later ones too.
func TestLostDevicesEndResults(t *testing.T) {
	left := &atomic.Int32{}
	left.Store(9)
	if err := fragile.Register(left); err != nil {
		t.Fatal(err)
	}
	s, err := rlx.Open(fragile.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	m, prompt, _ := tiny(t, "smollm")
	e, err := generate.New(ctx, s, generate.Of(m), generate.Options{Slots: 2, Context: 60})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(ctx)
	var g sync.WaitGroup
	for range 3 {
		g.Go(func() {
			if _, err := e.Complete(ctx, generate.Request{Tokens: prompt}); !errors.Is(err, native.ErrLost) {
				t.Errorf("a result ends with %v", err)
			}
		})
	}
	g.Wait()
	if _, err := e.Complete(ctx, generate.Request{Tokens: prompt}); !errors.Is(err, native.ErrLost) {
		t.Errorf("afterwards: %v", err)
	}
}
