package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rlx-go/rlx/native/lm/generate"
)

// answer is the answer to a request, in one of the two forms.
type answer struct {
	server   *Server
	requests []generate.Request // a result each
	of, keep int                // the results of each prompt, and how many of them are kept, the likeliest
	begins   []string           // what each result begins with: its prompt, if that is echoed
	id       string
	created  int64
	usage    bool // whether a stream ends with the counts of tokens
	logProbs bool
	tools    *tools    // that results may call, or nil
	object   [2]string // of a whole answer and of a part of one
	// choice returns a result, whole or a part of one, without what all forms have. begins is set in
	// the first part.
	choice func(x piece, whole, begins bool) map[string]any
}

// piece is a result or a part of one.
type piece struct {
	number        int
	text          string
	offset        int     // of the text in that of the whole result, in characters
	calls         []call  // of functions
	firstCall     int     // the number of the first of calls in the result
	finish        *string // nil until the end
	probabilities []float64
	tokens        []string // what each adds to the text
	alternatives  [][]generate.Alternative
	stats         *generate.Stats
	err           error
}

// likelihood returns the mean log-probability of the tokens of a result; an empty one is the least likely.
func (x *piece) likelihood() float64 {
	if len(x.probabilities) == 0 {
		return math.Inf(-1)
	}
	sum := 0.
	for _, p := range x.probabilities {
		sum += p
	}
	return sum / float64(len(x.probabilities))
}

// add adds the next part of a result.
func (x *piece) add(next piece) {
	next.text, next.offset = x.text+next.text, x.offset
	next.calls, next.firstCall = append(x.calls, next.calls...), x.firstCall
	next.tokens, next.probabilities = append(x.tokens, next.tokens...), append(x.probabilities, next.probabilities...)
	next.alternatives = append(x.alternatives, next.alternatives...)
	*x = next
}

func newCompletion(s *Server, b *body) (*answer, error) {
	if len(b.Prompt) == 0 {
		return nil, refuse("prompt", "there is no prompt: there must be one")
	}
	if b.Echo && b.LogProbs.given {
		return nil, refuse("echo", "echo and logprobs are given: the tokens of the prompt have no log-probabilities, and one must be left out")
	}
	a := &answer{server: s, id: "cmpl-", object: [2]string{"text_completion", "text_completion"}}
	a.choice = func(x piece, _, _ bool) map[string]any {
		c := map[string]any{"text": x.text, "logprobs": nil}
		if a.logProbs {
			c["logprobs"] = a.completionLogProbs(x)
		}
		return c
	}
	if err := a.ask(b, b.Prompt); err != nil || !b.Echo {
		return a, err
	}
	for _, q := range a.requests {
		a.begins = append(a.begins, s.textOf(q))
	}
	return a, nil
}

// textOf returns the text of a prompt.
func (s *Server) textOf(q generate.Request) string {
	if len(q.Tokens) == 0 {
		return q.Prompt
	}
	var text strings.Builder
	stream := s.engine.Model().Tokenizer.Stream()
	for _, id := range q.Tokens {
		text.WriteString(stream.Next(id))
	}
	text.WriteString(stream.Rest())
	return text.String()
}

// completionLogProbs returns the log-probabilities of the tokens of a completion. Offsets count characters.
func (a *answer) completionLogProbs(x piece) map[string]any {
	offsets, at := []int{}, x.offset
	var top []map[string]float64 // null without alternatives
	for i, t := range x.tokens {
		offsets, at = append(offsets, at), at+utf8.RuneCountInString(t)
		if list := x.alternatives[i]; len(list) > 0 {
			of := map[string]float64{t: x.probabilities[i]} // listed even if it is not among the likeliest
			for _, o := range list {
				of[a.server.words().Text(o.ID)] = o.LogProbability
			}
			top = append(top, of)
		}
	}
	return map[string]any{"tokens": x.tokens, "token_logprobs": x.probabilities, "top_logprobs": top, "text_offset": offsets}
}

func newChat(s *Server, b *body) (*answer, error) {
	a := &answer{server: s, id: "chatcmpl-", object: [2]string{"chat.completion", "chat.completion.chunk"}}
	a.choice = a.chatChoice
	var err error
	if a.tools, err = b.tools(s); err != nil {
		return nil, err
	}
	prompt, err := s.conversation(b, a.tools)
	if err != nil {
		return nil, err
	}
	return a, a.ask(b, []generate.Request{{Tokens: prompt}})
}

// chatChoice is the choice of chats.
func (a *answer) chatChoice(x piece, whole, begins bool) map[string]any {
	message := map[string]any{}
	if whole || begins {
		message["role"] = "assistant"
	}
	switch {
	case len(x.calls) > 0:
		message["tool_calls"] = a.callsOf(x, whole)
		if message["content"] = nil; x.text != "" {
			message["content"] = x.text
		}
	case whole || x.text != "" || begins:
		message["content"] = x.text
	}
	key := "delta"
	if whole {
		key, message["refusal"] = "message", nil
	}
	c := map[string]any{key: message, "logprobs": nil}
	if a.logProbs {
		list := []map[string]any{}
		for i, t := range x.tokens {
			list = append(list, map[string]any{"token": t, "logprob": x.probabilities[i], "bytes": bytesOf(t), "top_logprobs": a.top(x.alternatives[i])})
		}
		c["logprobs"] = map[string]any{"content": list, "refusal": nil}
	}
	return c
}

// idLength is the length of the ids of calls: templates of Mistral refuse others.
const idLength = 9

// callsOf returns the calls in a result, or in a part of one, where they are numbered.
func (a *answer) callsOf(x piece, whole bool) []map[string]any {
	out := []map[string]any{}
	for i, c := range x.calls {
		i += x.firstCall
		one := map[string]any{"id": rand.Text()[:idLength], "type": "function", "function": map[string]string{"name": c.name, "arguments": c.arguments}}
		if !whole {
			one["index"] = i
		}
		out = append(out, one)
	}
	return out
}

// conversation returns the prompt of a chat.
func (s *Server) conversation(b *body, use *tools) ([]int32, error) {
	switch {
	case s.options.Chat == nil:
		return nil, refuse("messages", "the model has no chat template: completions must be used")
	case len(b.Messages) == 0:
		return nil, refuse("messages", "there are no messages: there must be one or more")
	case b.Echo:
		return nil, refuse("echo", "echo is of completions: it must be left out")
	case b.BestOf != nil:
		return nil, refuse("best_of", "best_of is of completions: it must be left out")
	}
	messages := make([]generate.Message, len(b.Messages))
	for i, m := range b.Messages {
		var err error
		if messages[i], err = m.message(); err != nil {
			return nil, err
		}
	}
	var texts []json.RawMessage
	if use != nil {
		texts = use.texts
	}
	prompt, err := s.options.Chat(messages, texts...)
	if err != nil {
		return nil, refuse("messages", "%s", err)
	}
	return prompt, nil
}

// top returns the alternatives of a token.
func (a *answer) top(list []generate.Alternative) []map[string]any {
	out := []map[string]any{}
	for _, x := range list {
		text := a.server.words().Text(x.ID)
		out = append(out, map[string]any{"token": text, "logprob": x.LogProbability, "bytes": bytesOf(text)})
	}
	return out
}

// ask sets the requests for prompts.
func (a *answer) ask(b *body, prompts []generate.Request) (err error) {
	a.logProbs, a.usage = b.LogProbs.given, b.StreamOptions != nil && b.StreamOptions.IncludeUsage
	if a.keep, a.of, err = b.counts(len(prompts), min(maxResults, a.server.options.MaxRequests)); err != nil {
		return err
	}
	a.requests, err = b.requests(a.server, prompts, a.of, a.tools)
	return err
}

// envelope returns an answer, or a part of one, with choices.
func (a *answer) envelope(whole bool, choices []any) map[string]any {
	object := a.object[1]
	if whole {
		object = a.object[0]
	}
	return map[string]any{"id": a.id, "object": object, "created": a.created, "model": a.server.options.Name, "system_fingerprint": nil, "choices": choices}
}

// bytesOf returns the bytes of a text as numbers.
func bytesOf(text string) []int {
	numbers := make([]int, len(text))
	for i := range len(text) {
		numbers[i] = int(text[i])
	}
	return numbers
}

// numbered completes a choice.
func (a *answer) numbered(x piece, whole, begins bool) map[string]any {
	c := a.choice(x, whole, begins)
	c["index"], c["finish_reason"] = x.number, x.finish
	return c
}

// pieces sends the parts of all results as they come, and an error as the last part of its result.
func (a *answer) pieces(ctx context.Context) <-chan piece {
	out := make(chan piece)
	var g sync.WaitGroup
	for i := range a.requests {
		g.Go(func() {
			for x := range a.piecesOf(ctx, i) {
				select {
				case out <- x:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	go func() {
		g.Wait()
		close(out)
	}()
	return out
}

// piecesOf returns the parts of a result.
func (a *answer) piecesOf(ctx context.Context, number int) iter.Seq[piece] {
	return func(yield func(piece) bool) {
		begins := ""
		if a.begins != nil {
			begins = a.begins[number]
		}
		c, calls := caller{tools: a.tools}, 0
		for t, err := range a.server.engine.Generate(ctx, a.requests[number]) {
			x := piece{number: number, text: begins + t.Text, err: err, stats: t.Stats, firstCall: calls}
			begins = ""
			if t.Finish != "" {
				x.finish = &t.Finish
			}
			if a.tools != nil {
				c.divide(&x)
			}
			if calls += len(x.calls); calls > 0 && t.Finish == generate.FinishStop {
				t.Finish = "tool_calls"
			}
			if err == nil && !t.Ends() {
				x.tokens, x.probabilities, x.alternatives = []string{t.Text}, []float64{t.LogProbability}, [][]generate.Alternative{t.Alternatives}
			}
			if !yield(x) {
				return
			}
		}
	}
}

// usageOf adds up the counts of tokens. The prompt of several results counts once.
func (a *answer) usageOf(all []*generate.Stats) map[string]any {
	prompt, result, reused := 0, 0, 0
	for i, s := range all {
		if s == nil {
			continue
		}
		result += s.ResultTokens
		if i%a.of == 0 {
			prompt, reused = prompt+s.PromptTokens, reused+s.Reused
		}
	}
	return map[string]any{
		"prompt_tokens": prompt, "completion_tokens": result, "total_tokens": prompt + result,
		"prompt_tokens_details": map[string]int{"cached_tokens": reused},
	}
}

// whole writes the results at once.
func (a *answer) whole(ctx context.Context, w http.ResponseWriter) {
	results := make([]piece, len(a.requests))
	for x := range a.pieces(ctx) {
		if x.err != nil {
			errorOf(x.err).write(w)
			return
		}
		results[x.number].add(x)
	}
	if ctx.Err() != nil {
		return // the client has gone
	}
	choices, stats := []any{}, []*generate.Stats{}
	for _, r := range results {
		stats = append(stats, r.stats)
	}
	for of := range slices.Chunk(results, a.of) {
		if a.keep < a.of {
			slices.SortStableFunc(of, func(x, y piece) int { return cmp.Compare(y.likelihood(), x.likelihood()) })
		}
		for _, r := range of[:a.keep] {
			r.number = len(choices)
			choices = append(choices, a.numbered(r, true, true))
		}
	}
	out := a.envelope(true, choices)
	out["usage"] = a.usageOf(stats)
	writeJSON(w, http.StatusOK, out)
}

// stream writes the results as server-sent events. An error before the first part is the whole answer.
func (a *answer) stream(ctx context.Context, w http.ResponseWriter) {
	stats, begun, parts := make([]*generate.Stats, len(a.requests)), make([]bool, len(a.requests)), make([]piece, len(a.requests))
	e := &events{w: w, flush: http.NewResponseController(w)}
	for x := range a.pieces(ctx) {
		if x.err != nil {
			if !e.begun {
				errorOf(x.err).write(w)
				return
			}
			e.send(errorOf(x.err).body())
			return
		}
		stats[x.number] = x.stats
		next := &parts[x.number]
		next.add(x)
		if x.text == "" && len(x.calls) == 0 && x.finish == nil && begun[x.number] {
			continue // nothing to say yet
		}
		x, *next = *next, piece{offset: next.offset + utf8.RuneCountInString(next.text), firstCall: next.firstCall + len(next.calls)}
		part := a.envelope(false, []any{a.numbered(x, false, !begun[x.number])})
		if a.usage {
			part["usage"] = nil
		}
		begun[x.number] = true
		if e.send(part) != nil {
			return // the client has gone
		}
	}
	if ctx.Err() != nil {
		return
	}
	if a.usage {
		last := a.envelope(false, []any{})
		last["usage"] = a.usageOf(stats)
		_ = e.send(last)
	}
	e.end()
}

// events writes server-sent events.
type events struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	begun bool
}

func (e *events) send(x any) error {
	data, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return e.line(data)
}

func (e *events) line(data []byte) error {
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.Header().Set("Cache-Control", "no-cache")
		e.w.WriteHeader(http.StatusOK)
	}
	if _, err := e.w.Write(append(append([]byte("data: "), data...), '\n', '\n')); err != nil {
		return err
	}
	return e.flush.Flush()
}

// end writes the event that ends a stream.
func (e *events) end() { _ = e.line([]byte("[DONE]")) }
