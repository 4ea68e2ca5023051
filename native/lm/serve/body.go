package serve

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/native/lm/generate"
)

// body is a request of either form. Pointers are nil for missing fields.
type body struct {
	Model    string      `json:"model"`
	Prompt   prompts     `json:"prompt"`
	Messages []messageIn `json:"messages"`

	MaxTokens           *int               `json:"max_tokens"`
	MaxCompletionTokens *int               `json:"max_completion_tokens"`
	Temperature         *float64           `json:"temperature"`
	TopP                *float64           `json:"top_p"`
	N                   *int               `json:"n"`
	Stop                texts              `json:"stop"`
	Seed                *int64             `json:"seed"`
	Presence            float64            `json:"presence_penalty"`
	Frequency           float64            `json:"frequency_penalty"`
	LogitBias           map[string]float64 `json:"logit_bias"`
	LogProbs            logProbs           `json:"logprobs"`
	Stream              bool               `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	// Of other servers of this API.
	TopK       int     `json:"top_k"`
	MinP       float64 `json:"min_p"`
	Repetition float64 `json:"repetition_penalty"`
	IgnoreEOS  bool    `json:"ignore_eos"`

	ResponseFormat *responseFormat `json:"response_format"`
	TopLogProbs    int             `json:"top_logprobs"`

	// Of chats.
	Tools      []json.RawMessage `json:"tools"`
	ToolChoice json.RawMessage   `json:"tool_choice"`
	Parallel   *bool             `json:"parallel_tool_calls"`

	// Of completions.
	Echo   bool `json:"echo"`
	BestOf *int `json:"best_of"`

	// Parameters that are refused unless they have the value that changes nothing.
	Suffix     string          `json:"suffix"`
	Functions  json.RawMessage `json:"functions"`
	Modalities []string        `json:"modalities"`
}

// responseFormat restricts results to JSON.
type responseFormat struct {
	Type   string `json:"type"`
	Schema *struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// maxResults bounds the results of one request.
const maxResults = 128

// counts returns the number of results of each prompt, and that of those to choose them from: at most some for all prompts.
func (b *body) counts(prompts, most int) (n, of int, err error) {
	n = 1
	if b.N != nil {
		n = *b.N
	}
	if n < 1 || n > most || n*prompts > most { // the product of a large n overflows
		return 0, 0, refuse("n", "n is %d: it must be 1 or more, and n times the prompts at most %d", n, most)
	}
	of = n
	if b.BestOf != nil {
		of = *b.BestOf
	}
	switch {
	case of < n || of > most || of*prompts > most:
		return 0, 0, refuse("best_of", "best_of is %d: it must be n, %d, or more, and best_of times the prompts at most %d", of, n, most)
	case of > n && b.Stream:
		return 0, 0, refuse("best_of", "best_of is %d, more than n, %d, and stream true: the best are known at the end alone", of, n)
	}
	return n, of, nil
}

// requests returns the requests to the engine: a number of them for each prompt.
func (b *body) requests(s *Server, prompts []generate.Request, number int, use *tools) ([]generate.Request, error) {
	if err := b.refuseUnknown(); err != nil {
		return nil, err
	}
	base := generate.Request{Stop: b.Stop, IgnoreEnd: b.IgnoreEOS, Sampling: lm.Sampling{
		Temperature: 1, TopK: b.TopK, MinP: b.MinP, Repetition: b.Repetition, Presence: b.Presence, Frequency: b.Frequency,
	}}
	if b.Temperature != nil {
		base.Sampling.Temperature = *b.Temperature
	}
	if b.TopP != nil {
		if base.Sampling.TopP = *b.TopP; *b.TopP == 0 { // which means 1 in Sampling: here the likeliest token alone
			base.Sampling.TopK = 1
		}
	}
	var err error
	if base.MaxTokens, err = b.maxTokens(s); err != nil {
		return nil, err
	}
	if base.Bias, err = b.bias(s.engine.Model().Config.Vocabulary); err != nil {
		return nil, err
	}
	if slices.Contains(b.Stop, "") {
		return nil, refuse("stop", `stop has "": its strings must not be empty`)
	}
	if base.Alternatives, err = b.alternatives(s.engine.Options().Alternatives); err != nil {
		return nil, err
	}
	grammar, err := b.grammar(s, use)
	if err != nil {
		return nil, err
	}
	var out []generate.Request
	for _, p := range prompts {
		for i := range number {
			r := base
			if grammar != nil {
				r.Allow = grammar.Allow()
			}
			if r.Prompt, r.Tokens, r.Seed = p.Prompt, p.Tokens, rand.Uint64(); b.Seed != nil {
				r.Seed = uint64(*b.Seed) + uint64(i)
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// alternatives returns the number of likely tokens to list beside each token: top_logprobs of a chat, and logprobs of a
// completion.
func (b *body) alternatives(most int) (int, error) {
	for _, p := range []struct {
		name  string
		value int
	}{{"top_logprobs", b.TopLogProbs}, {"logprobs", b.LogProbs.alternatives}} {
		if p.value < 0 || p.value > most {
			return 0, refuse(p.name, "%s is %d: it must be in [0, %d], the -alternatives of the server", p.name, p.value, most)
		}
	}
	if b.TopLogProbs > 0 && !b.LogProbs.given {
		return 0, refuse("top_logprobs", "top_logprobs is %d and logprobs false: logprobs must be true", b.TopLogProbs)
	}
	return max(b.TopLogProbs, b.LogProbs.alternatives), nil
}

// grammar returns the grammar of the results; nil for any text.
func (b *body) grammar(s *Server, use *tools) (*generate.Grammar, error) {
	if use != nil {
		g, err := s.words().Calls(use.functions, use.options)
		if err != nil {
			return nil, refuse("tools", "%s", requestText(err))
		}
		return g, nil
	}
	f := b.ResponseFormat
	if f == nil || f.Type == "text" {
		return nil, nil
	}
	var schema json.RawMessage
	switch {
	case b.IgnoreEOS:
		return nil, refuse("ignore_eos", "ignore_eos is true with response_format: a result in JSON must end")
	case f.Type == "json_object":
	case f.Type != "json_schema":
		return nil, refuse("response_format", "response_format has the type %q: it must be text, json_object or json_schema", f.Type)
	case f.Schema == nil || len(f.Schema.Schema) == 0:
		return nil, refuse("response_format", "response_format has no json_schema.schema: there must be one")
	default:
		schema = f.Schema.Schema
	}
	g, err := s.words().JSON(schema)
	if err != nil {
		return nil, refuse("response_format", "%s", requestText(err))
	}
	return g, nil
}

// given reports whether a value is neither missing nor empty.
func given(x json.RawMessage) bool { return len(x) > 0 && string(x) != "null" && string(x) != "[]" }

// refuseUnknown refuses parameters that this server does not support.
func (b *body) refuseUnknown() error {
	for _, p := range []struct {
		name  string
		given bool
	}{
		{"suffix", b.Suffix != ""},
		{"functions", given(b.Functions)},
		{"modalities", slices.ContainsFunc(b.Modalities, func(m string) bool { return m != "text" })},
	} {
		if p.given {
			return refuse(p.name, "%s is not supported: it must be left out", p.name)
		}
	}
	if b.StreamOptions != nil && !b.Stream {
		return refuse("stream_options", "stream_options is given and stream false: stream must be true")
	}
	return nil
}

func (b *body) maxTokens(s *Server) (int, error) {
	n := b.MaxTokens
	if b.MaxCompletionTokens != nil {
		n = b.MaxCompletionTokens
	}
	if n == nil {
		return s.options.MaxTokens, nil
	}
	if *n < 1 {
		return 0, refuse("max_tokens", "max_tokens is %d: it must be 1 or more", *n)
	}
	return min(*n, s.options.MaxTokens), nil
}

func (b *body) bias(vocabulary int) (map[int32]float32, error) {
	out := map[int32]float32{}
	for key, x := range b.LogitBias {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 || id >= int64(vocabulary) || !(x >= -100 && x <= 100) {
			return nil, refuse("logit_bias", "logit_bias has %v for %q: it must have a number in [-100, 100] for a token in [0, %d)", x, key, vocabulary)
		}
		out[int32(id)] = float32(x)
	}
	return out, nil
}

// texts are a string or a list of strings.
type texts []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		if *t = nil; string(data) != "null" {
			*t = texts{one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// logProbs asks for log-probabilities: a boolean, or in completions a number of alternatives.
type logProbs struct {
	given        bool
	alternatives int
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *logProbs) UnmarshalJSON(data []byte) error {
	*p = logProbs{}
	if json.Unmarshal(data, &p.given) == nil { // null is false
		return nil
	}
	p.given = true
	if json.Unmarshal(data, &p.alternatives) != nil {
		return refuse("logprobs", "logprobs is %s: it must be a boolean, or a number of alternatives", data)
	}
	return nil
}

// prompts are a string, strings, tokens, or lists of tokens.
type prompts []generate.Request

// UnmarshalJSON implements [json.Unmarshaler].
func (p *prompts) UnmarshalJSON(data []byte) error {
	var list texts
	if json.Unmarshal(data, &list) == nil {
		*p = nil // of a key that is there twice, the last one counts
		for _, text := range list {
			*p = append(*p, generate.Request{Prompt: text})
		}
		return nil
	}
	var tokens []int32
	if json.Unmarshal(data, &tokens) == nil {
		*p = prompts{{Tokens: tokens}}
		return nil
	}
	var lists [][]int32
	if err := json.Unmarshal(data, &lists); err != nil {
		return refuse("prompt", "prompt must be a string, a list of strings, of tokens, or of lists of tokens")
	}
	*p = nil
	for _, tokens := range lists {
		*p = append(*p, generate.Request{Tokens: tokens})
	}
	return nil
}

// messageIn is a message. Its content is a string or a list of parts.
type messageIn struct {
	Role      string   `json:"role"`
	Content   content  `json:"content"`
	Name      string   `json:"name"`
	ToolCalls []callIn `json:"tool_calls"`
	CallID    string   `json:"tool_call_id"`
}

// message returns the message of the conversation that a template reads.
func (m messageIn) message() (generate.Message, error) {
	if m.Role == "developer" { // the later name of the role that templates know as system
		m.Role = "system"
	}
	more := map[string]any{}
	for key, text := range map[string]string{"name": m.Name, "tool_call_id": m.CallID} {
		if text != "" {
			more[key] = text
		}
	}
	if len(m.ToolCalls) > 0 {
		calls, err := templateCalls(m.ToolCalls)
		if err != nil {
			return generate.Message{}, err
		}
		more["tool_calls"] = calls
	}
	return generate.Message{Role: m.Role, Content: string(m.Content), More: more}, nil
}

type content string

// UnmarshalJSON implements [json.Unmarshaler].
func (c *content) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(c)) == nil {
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return refuse("messages", "a message has a part of type %q: it must be text", p.Type)
		}
		all.WriteString(p.Text)
	}
	*c = content(all.String())
	return nil
}
