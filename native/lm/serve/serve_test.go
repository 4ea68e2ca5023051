package serve_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/lm/generate"
	"github.com/rlx-go/rlx/native/lm/internal/fragile"
	"github.com/rlx-go/rlx/native/lm/serve"
	"github.com/rlx-go/rlx/native/models"
)

var ctx = context.Background()

// letters is a tokenizer whose tokens are letters, and the last one the end.
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

// start serves a tiny model with two slots.
func start(t *testing.T, o serve.Options) (url string, e *generate.Engine) {
	t.Helper()
	return startOn(t, "cpu", o, nil)
}

// startWith is start with the texts of tokens.
func startWith(t *testing.T, o serve.Options, texts words) (url string, e *generate.Engine) {
	t.Helper()
	return startOn(t, "cpu", o, texts)
}

// startOn is start on a device, with the texts of tokens; those of letters if there are none.
func startOn(t *testing.T, device string, o serve.Options, texts words) (url string, e *generate.Engine) {
	t.Helper()
	m, err := lm.Load(filepath.Join("..", "testdata", "llama"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := rlx.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	model := generate.Of(m)
	model.Tokenizer = letters{m.Config.Vocabulary}
	if texts != nil {
		model.Tokenizer = append(texts, make(words, m.Config.Vocabulary-len(texts))...)
	}
	if e, err = generate.New(ctx, s, model, generate.Options{Slots: 2, Chunk: 8, Context: 60, Alternatives: 4}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(serve.New(e, o))
	t.Cleanup(func() {
		server.Close()
		_ = e.Close(ctx)
		_ = s.Close(ctx)
		_ = m.Close()
	})
	return server.URL, e
}

// post returns the status and the answer to a request.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r.StatusCode, string(data)
}

// messageOf is a message, whole or a part of one.
type messageOf struct {
	Role, Content string
	ToolCalls     []struct {
		Index    int
		ID, Type string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// answerOf has the fields of answers and events that the tests read.
type answerOf struct {
	Object  string
	Model   string
	Choices []struct {
		Index        int
		Text         string
		FinishReason *string `json:"finish_reason"`
		Message      messageOf
		Delta        messageOf
		Logprobs     *struct {
			Tokens        []string
			TokenLogprobs []float64            `json:"token_logprobs"`
			TopLogprobs   []map[string]float64 `json:"top_logprobs"`
			TextOffset    []int                `json:"text_offset"`
			Content       []struct {
				Token string
				Bytes []int
			}
		}
	}
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	}
	Error *struct{ Message, Type, Param, Code string }
}

func read(t *testing.T, text string) (a answerOf) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Errorf("%v in %q", err, text)
	}
	return a
}

// events returns the events of a stream, without the last one, which must be [DONE].
func events(t *testing.T, text string) (all []answerOf) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
	for i, line := range lines {
		data, ok := strings.CutPrefix(line, "data: ")
		if last := i == len(lines)-1; !ok || last != (data == "[DONE]") {
			t.Fatalf("event %d of %d is %q", i, len(lines), line)
		} else if !last {
			all = append(all, read(t, data))
		}
	}
	return all
}

func chat(messages []generate.Message, _ ...json.RawMessage) ([]int32, error) {
	text := ""
	for _, m := range messages {
		if m.Role != "system" && m.Role != "user" {
			return nil, fmt.Errorf("the role %s is unknown", m.Role)
		}
		text += m.Content
	}
	return letters{}.Encode(text)
}

func TestServer(t *testing.T) {
	url, e := start(t, serve.Options{Name: "tiny", Chat: chat, MaxBody: 2000, MaxRequests: 6})
	want, err := e.Complete(ctx, generate.Request{Prompt: "ABCDEF", MaxTokens: 8, IgnoreEnd: true})
	if err != nil {
		t.Fatal(err)
	}
	const greedy = `"temperature":0,"max_tokens":8,"ignore_eos":true`

	t.Run("completion", func(t *testing.T) {
		status, text := post(t, url+"/v1/completions", `{"model":"tiny","prompt":"ABCDEF","logprobs":1,`+greedy+`}`)
		a := read(t, text)
		if status != 200 || len(a.Choices) != 1 || a.Choices[0].Text != want.Text || *a.Choices[0].FinishReason != "length" || a.Object != "text_completion" ||
			a.Usage.PromptTokens != 6 || a.Usage.CompletionTokens != 8 || len(a.Choices[0].Logprobs.TokenLogprobs) != 8 {
			t.Errorf("%d %s, want %q", status, text, want.Text)
		}
	})

	t.Run("streams of several users", func(t *testing.T) {
		var g sync.WaitGroup
		for range 5 {
			g.Go(func() {
				_, text := post(t, url+"/v1/completions", `{"prompt":"ABCDEF","stream":true,"stream_options":{"include_usage":true},`+greedy+`}`)
				got, all := "", events(t, text)
				for _, a := range all[:len(all)-1] {
					got += a.Choices[0].Text
				}
				if last := all[len(all)-1]; got != want.Text || last.Usage == nil || last.Usage.CompletionTokens != 8 || len(last.Choices) != 0 {
					t.Errorf("%q, want %q", got, want.Text)
				}
			})
		}
		g.Wait()
	})

	t.Run("log-probabilities in streams", func(t *testing.T) {
		withheld, _ := json.Marshal(want.Text[2:4] + "~") // tokens that may begin it have no text yet
		_, text := post(t, url+"/v1/completions", `{"prompt":"ABCDEF","stream":true,"logprobs":0,"stop":`+string(withheld)+`,`+greedy+`}`)
		all, n := "", 0
		for _, a := range events(t, text) {
			c := a.Choices[0]
			if at := c.Logprobs.TextOffset; len(at) > 0 && at[0] != len(all) {
				t.Errorf("the text at %d is said to be at %d", len(all), at[0])
			}
			all, n = all+c.Text, n+len(c.Logprobs.TokenLogprobs)
		}
		if all != want.Text || n != 8 {
			t.Errorf("%q with %d numbers, want %q with 8", all, n, want.Text)
		}
		_, text = post(t, url+"/v1/chat/completions", `{"messages":[{"role":"user","content":"ABCDEF"}],"logprobs":true,`+greedy+`}`)
		for i, x := range read(t, text).Choices[0].Logprobs.Content {
			if x.Token != want.Text[i:i+1] || len(x.Bytes) != 1 || x.Bytes[0] != int(want.Text[i]) {
				t.Errorf("token %d is %+v, want %q", i, x, want.Text[i:i+1])
			}
		}
	})

	t.Run("alternatives of a completion", func(t *testing.T) {
		_, text := post(t, url+"/v1/completions", `{"prompt":"ABCDEF","temperature":3,"seed":1,"logprobs":2,"max_tokens":8,"ignore_eos":true}`)
		l, others := read(t, text).Choices[0].Logprobs, 0
		for i, of := range l.TopLogprobs {
			if of[l.Tokens[i]] != l.TokenLogprobs[i] {
				t.Errorf("token %d, %q, has %v, and %v in the list", i, l.Tokens[i], l.TokenLogprobs[i], of)
			}
			others += len(of) - 2 // a token that is not among the likeliest is listed, too
		}
		if len(l.TopLogprobs) != 8 || others == 0 || others > 8 {
			t.Errorf("%s", text)
		}
	})

	t.Run("echo", func(t *testing.T) {
		for _, body := range []string{`{"prompt":"ABCDEF","echo":true,`, `{"prompt":[32,33,34,35,36,37],"echo":true,"n":2,`} {
			_, text := post(t, url+"/v1/completions", body+greedy+`}`)
			for _, c := range read(t, text).Choices {
				if c.Text != "ABCDEF"+want.Text {
					t.Errorf("%q, want the prompt and %q", c.Text, want.Text)
				}
			}
		}
		_, text := post(t, url+"/v1/completions", `{"prompt":"ABCDEF","echo":true,"stream":true,`+greedy+`}`)
		got := ""
		for _, a := range events(t, text) {
			got += a.Choices[0].Text
		}
		if got != "ABCDEF"+want.Text {
			t.Errorf("a stream has %q, want the prompt and %q", got, want.Text)
		}
	})

	t.Run("the best of several", func(t *testing.T) {
		const drawn = `{"prompt":"ABCDEF","temperature":2,"seed":5,"logprobs":0,"max_tokens":4,"ignore_eos":true,`
		_, all := post(t, url+"/v1/completions", drawn+`"n":6}`)
		_, best := post(t, url+"/v1/completions", drawn+`"n":2,"best_of":6}`)
		var sums []float64
		for _, c := range read(t, all).Choices {
			sum := 0.
			for _, x := range c.Logprobs.TokenLogprobs {
				sum += x
			}
			sums = append(sums, sum)
		}
		slices.Sort(sums)
		a := read(t, best)
		if len(a.Choices) != 2 || a.Usage.CompletionTokens != 24 {
			t.Fatalf("%s", best)
		}
		for i, c := range a.Choices {
			sum := 0.
			for _, x := range c.Logprobs.TokenLogprobs {
				sum += x
			}
			if c.Index != i || !(math.Abs(sum-sums[5-i]) <= 1e-4) {
				t.Errorf("result %d has the index %d and the sum %v, want %v", i, c.Index, sum, sums[5-i])
			}
		}
	})

	t.Run("chat", func(t *testing.T) {
		const messages = `"messages":[{"role":"developer","content":"ABC"},{"role":"user","content":[{"type":"text","text":"DEF"}]}],`
		_, text := post(t, url+"/v1/chat/completions", `{`+messages+greedy+`}`)
		if a := read(t, text); a.Object != "chat.completion" || a.Choices[0].Message.Content != want.Text || a.Choices[0].Message.Role != "assistant" {
			t.Errorf("%s, want %q", text, want.Text)
		}
		_, text = post(t, url+"/v1/chat/completions", `{"stream":true,`+messages+greedy+`}`)
		got, all := "", events(t, text)
		for i, a := range all {
			got += a.Choices[0].Delta.Content
			if begins := a.Choices[0].Delta.Role == "assistant"; begins != (i == 0) || (a.Choices[0].FinishReason != nil) != (i == len(all)-1) {
				t.Errorf("event %d of %d: %+v", i, len(all), a)
			}
		}
		if got != want.Text {
			t.Errorf("%q, want %q", got, want.Text)
		}
	})

	t.Run("several results and stop strings", func(t *testing.T) {
		_, text := post(t, url+"/v1/completions", `{"prompt":["ABCDEF","B"],"n":2,"seed":3,"max_tokens":5,"ignore_eos":true}`)
		a := read(t, text)
		if len(a.Choices) != 4 || a.Choices[3].Index != 3 || a.Usage.PromptTokens != 7 || a.Choices[0].Text == a.Choices[1].Text {
			t.Errorf("%s", text)
		}
		_, text = post(t, url+"/v1/completions", `{"prompt":["ABCDEF","ABCDEF","B"],"n":2,"max_tokens":1,"ignore_eos":true}`)
		if a := read(t, text); len(a.Choices) != 6 || a.Usage.PromptTokens != 13 {
			t.Errorf("equal prompts count each: %s", text)
		}
		_, text = post(t, url+"/v1/completions", `{"prompt":["ABCDEF","ABCDEF"],"temperature":5,"max_tokens":8,"ignore_eos":true}`)
		if a := read(t, text); len(a.Choices) != 2 || a.Choices[0].Text == a.Choices[1].Text {
			t.Errorf("results of equal prompts without a seed must be drawn apart: %s", text)
		}
		_, text = post(t, url+"/v1/completions", `{"prompt":"ABCDEF","top_p":0,"n":4,"temperature":5,"max_tokens":8,"ignore_eos":true}`)
		for _, c := range read(t, text).Choices {
			if c.Text != want.Text {
				t.Errorf("with a top_p of 0 the text is %q, want the likeliest tokens, %q", c.Text, want.Text)
			}
		}
		_, text = post(t, url+"/v1/completions", `{"prompt":"ABCDEF","prompt":"B","max_tokens":1,"ignore_eos":true}`)
		if a := read(t, text); len(a.Choices) != 1 || a.Usage.PromptTokens != 1 {
			t.Errorf("of a key that is there twice, the last one counts: %s", text)
		}
		stop, _ := json.Marshal([]string{want.Text[3:5]})
		_, text = post(t, url+"/v1/completions", `{"prompt":"ABCDEF",`+greedy+`,"stop":`+string(stop)+`}`)
		before, _, _ := strings.Cut(want.Text, want.Text[3:5])
		if a := read(t, text); a.Choices[0].Text != before || *a.Choices[0].FinishReason != "stop" {
			t.Errorf("%s, want %q", text, before)
		}
	})

	t.Run("models", func(t *testing.T) {
		for path, status := range map[string]int{"/v1/models": 200, "/v1/models/tiny": 200, "/v1/models/other": 404, "/health": 200, "/v2": 404} {
			r, err := http.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			data, _ := io.ReadAll(r.Body)
			if r.Body.Close(); r.StatusCode != status || status == 200 && path != "/health" && !strings.Contains(string(data), `"id":"tiny"`) {
				t.Errorf("%s: %d %s", path, r.StatusCode, data)
			}
		}
	})

	t.Run("bad requests", func(t *testing.T) {
		for _, c := range []struct {
			body        string
			status      int
			param, code string
		}{
			{`{`, 400, "", ""},
			{`[]`, 400, "", ""},
			{`{"prompt":{"a":1}}`, 400, "prompt", ""},
			{`{"prompt":"A","seed":"x"}`, 400, "seed", ""},
			{`{"prompt":"A","max_tokens":1e99}`, 400, "max_tokens", ""},
			{`{}`, 400, "prompt", ""},
			{`{"prompt":"A"} {"prompt":"B"}`, 400, "", ""},
			{`{"prompt":"A"}]`, 400, "", ""},
			{`{"prompt":""}`, 400, "", ""},
			{`{"prompt":"A","model":"gpt"}`, 404, "", "model_not_found"},
			{`{"prompt":"A","temperature":-1}`, 400, "temperature", ""},
			{`{"prompt":"A","top_p":1.5}`, 400, "top_p", ""},
			{`{"prompt":"A","stop":["a",""]}`, 400, "stop", ""},
			{`{"prompt":"A","max_tokens":0}`, 400, "max_tokens", ""},
			{`{"prompt":"A","n":0}`, 400, "n", ""},
			{`{"prompt":"A","n":7}`, 400, "n", ""}, // of at most six at once
			{`{"prompt":"A","echo":true,"logprobs":0}`, 400, "echo", ""},
			{`{"prompt":"A","logprobs":5}`, 400, "logprobs", ""},
			{`{"prompt":"A","logprobs":"x"}`, 400, "logprobs", ""},
			{`{"prompt":"A","n":2,"best_of":1}`, 400, "best_of", ""},
			{`{"prompt":"A","best_of":2,"stream":true}`, 400, "best_of", ""},
			{`{"prompt":"A","best_of":1000}`, 400, "best_of", ""},
			{`{"prompt":"A","stream_options":{}}`, 400, "stream_options", ""},
			{`{"prompt":"A","logit_bias":{"x":1}}`, 400, "logit_bias", ""},
			{`{"prompt":"A","logit_bias":{"64":1}}`, 400, "logit_bias", ""},
			{`{"prompt":[999]}`, 400, "", ""},
			{`{"prompt":["A","A","A","A"],"n":4611686018427387904}`, 400, "n", ""}, // four times that is 0 in 64 bits
			{`{"prompt":[]}`, 400, "prompt", ""},
			{`{"prompt":"` + strings.Repeat("A", 61) + `"}`, 400, "", "context_length_exceeded"},
			{`{"prompt":"` + strings.Repeat("A", 61) + `","stream":true}`, 400, "", "context_length_exceeded"},
			{`{"prompt":"` + strings.Repeat("A", 3000) + `"}`, 413, "", "request_too_large"},
		} {
			status, text := post(t, url+"/v1/completions", c.body)
			a := read(t, text)
			if status != c.status || a.Error == nil || a.Error.Message == "" || a.Error.Param != c.param || a.Error.Code != c.code || strings.Contains(a.Error.Message, "Go ") || strings.Contains(a.Error.Message, "generate: bad") {
				t.Errorf("%.60s: %d %s, want %d, %q and %q", c.body, status, text, c.status, c.param, c.code)
			}
		}
		for _, c := range []struct{ body, param string }{
			{`{"messages":[{"role":"user","content":17}]}`, "messages.content"},
			{`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, "messages"},
			{`{"messages":[{"role":"user","content":"A"}],"modalities":["text","audio"]}`, "modalities"},
			{`{}`, "messages"},
			{`{"messages":[{"role":"robot","content":"A"}]}`, "messages"},
			{`{"messages":[{"role":"user","content":"A"}],"best_of":1}`, "best_of"},
			{`{"messages":[{"role":"user","content":"A"}],"echo":true}`, "echo"},
			{`{"messages":[{"role":"assistant","content":null,"tool_calls":[{}]}]}`, "messages"},
			{`{"messages":[{"role":"user","content":"A"}],"tools":[{}]}`, "tools"},
			{`{"messages":[{"role":"user","content":"A"}],"tools":[` + function + `,` + function + `]}`, "tools"},
			{`{"messages":[{"role":"user","content":"A"}],"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"pattern":"a"}}}]}`, "tools"},
			{`{"messages":[{"role":"user","content":"A"}],"tool_choice":"required"}`, "tool_choice"},
			{`{"messages":[{"role":"user","content":"A"}],"tools":[` + function + `],"tool_choice":"sometimes"}`, "tool_choice"},
			{`{"messages":[{"role":"user","content":"A"}],"tools":[` + function + `],"tool_choice":{"type":"function","function":{"name":"g"}}}`, "tool_choice"},
			{`{"messages":[{"role":"user","content":"A"}],"tools":[` + function + `],"response_format":{"type":"json_object"}}`, "response_format"},
			{`{"messages":[{"role":"user","content":"A"}],"tools":[` + function + `],"ignore_eos":true}`, "ignore_eos"},
			{`{"messages":[{"role":"user","content":"A"}],"logprobs":true,"top_logprobs":5}`, "top_logprobs"},
			{`{"messages":[{"role":"user","content":"A"}],"top_logprobs":2}`, "top_logprobs"},
			{`{"messages":[{"role":"user","content":"A"}],"response_format":{"type":"yaml"}}`, "response_format"},
			{`{"messages":[{"role":"user","content":"A"}],"response_format":{"type":"json_schema"}}`, "response_format"},
			{`{"messages":[{"role":"user","content":"A"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"pattern":"a"}}}}`, "response_format"},
			{`{"messages":[{"role":"user","content":"A"}],"response_format":{"type":"json_object"},"ignore_eos":true}`, "ignore_eos"},
		} {
			if status, text := post(t, url+"/v1/chat/completions", c.body); status != 400 || read(t, text).Error.Param != c.param {
				t.Errorf("%s: %d %s, want %q", c.body, status, text, c.param)
			}
		}
	})

	t.Run("alternatives", func(t *testing.T) {
		status, text := post(t, url+"/v1/chat/completions", `{"messages":[{"role":"user","content":"AB"}],"logprobs":true,"top_logprobs":3,`+greedy+`}`)
		var a struct {
			Choices []struct {
				Logprobs struct {
					Content []struct {
						Token   string
						Logprob float64
						Top     []struct {
							Token   string
							Logprob float64
						} `json:"top_logprobs"`
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil || status != 200 || len(a.Choices) != 1 || len(a.Choices[0].Logprobs.Content) == 0 {
			t.Fatalf("%d %s: %v", status, text, err)
		}
		for _, c := range a.Choices[0].Logprobs.Content {
			if len(c.Top) != 3 || c.Top[0].Token != c.Token || !(math.Abs(c.Top[0].Logprob-c.Logprob) <= 1e-5) || c.Top[1].Logprob > c.Top[0].Logprob || c.Top[2].Logprob > c.Top[1].Logprob {
				t.Errorf("%+v: the likeliest token was taken", c)
			}
		}
	})

	t.Run("JSON by a schema", func(t *testing.T) {
		// The tokenizer has no braces.
		body := `{"prompt":"A","temperature":1.5,"max_tokens":50,"seed":%d,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":
			{"type":"array","items":{"enum":["A","B",7]},"minItems":1,"maxItems":4}}}}`
		for seed := range 5 {
			status, text := post(t, url+"/v1/completions", fmt.Sprintf(body, seed))
			a := read(t, text)
			var list []any
			if status != 200 || *a.Choices[0].FinishReason != "stop" || json.Unmarshal([]byte(a.Choices[0].Text), &list) != nil || len(list) < 1 || len(list) > 4 {
				t.Fatalf("%d %s", status, text)
			}
			for _, x := range list {
				if x != "A" && x != "B" && x != 7. {
					t.Errorf("%s has %v", a.Choices[0].Text, x)
				}
			}
		}
	})

	t.Run("clients that go", func(t *testing.T) {
		for range 4 { // more than there are slots
			c, cancel := context.WithCancel(ctx)
			r, err := http.NewRequestWithContext(c, http.MethodPost, url+"/v1/completions", strings.NewReader(`{"prompt":"A","stream":true,"ignore_eos":true}`))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = bufio.NewReader(answer.Body).ReadString('\n')
			cancel()
			answer.Body.Close()
		}
		if status, text := post(t, url+"/v1/completions", `{"prompt":"ABCDEF",`+greedy+`}`); status != 200 || read(t, text).Choices[0].Text != want.Text {
			t.Errorf("afterwards %d %s", status, text)
		}
	})
}

// words is a tokenizer of texts; the last token ends a text.
type words []string

func (words) Encode(string) ([]int32, error) { return []int32{3}, nil }
func (w words) Stream() generate.Stream      { return w }
func (w words) Next(token int32) string      { return w[token] }
func (words) Rest() string                   { return "" }
func (w words) End() []int32                 { return []int32{int32(len(w)) - 1} }
func (w words) Size() int                    { return len(w) }

// function is a function of tools.
const function = `{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"c":{"enum":["a","b"]}},"required":["c"]}}}`

// TestTools has a model call functions: where it must, with and without marks, and where it may, between texts.
func TestTools(t *testing.T) {
	var messages []generate.Message
	var tools []json.RawMessage
	url, _ := startWith(t, serve.Options{Chat: func(m []generate.Message, x ...json.RawMessage) ([]int32, error) {
		messages, tools = m, x
		return []int32{3, 4}, nil
	}}, words{"<tool_call>", `{"name":`, `"f"`, `,"arguments":`, `{"c":`, `"a"`, `"b"`, "}", "}}", "</tool_call>", "<", "/", "tool_call>", " ", "x"})
	bias := func(token, by int) string { return fmt.Sprintf(`"logit_bias":{"%d":%d},`, token, by) }
	const more, once = ``, `"parallel_tool_calls":false,`
	for _, c := range []struct {
		name, options string
		calls         int // at least one if that is negative
	}{
		{"required", `"tool_choice":"required",` + once, 1},
		{"marked", `"tool_choice":{"type":"function","function":{"name":"f"}},` + bias(1, -100) + once, 1},
		{"chosen", bias(0, 100) + once, 1},
		{"several", bias(0, 100) + more, -1},
		{"none", `"tool_choice":"none",`, 0},
	} {
		body := `{"messages":[{"role":"user","content":"A"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"c\":\"a\"}"}}]},
			{"role":"tool","tool_call_id":"1","content":"B"}],"tools":[` + function + `],"temperature":1,"seed":4,` + c.options
		_, text := post(t, url+"/v1/chat/completions", body+`"stream":false}`)
		whole := read(t, text).Choices[0]
		if n := len(whole.Message.ToolCalls); n != c.calls && (c.calls >= 0 || n < 1) {
			t.Fatalf("%s: %s", c.name, text)
		}
		for i, x := range whole.Message.ToolCalls {
			var arguments struct{ C string }
			if err := json.Unmarshal([]byte(x.Function.Arguments), &arguments); err != nil || x.Type != "function" || x.ID == "" || x.Function.Name != "f" || arguments.C != "a" && arguments.C != "b" {
				t.Errorf("%s: call %d of %s: %v", c.name, i, text, err)
			}
		}
		if c.calls == 1 && (*whole.FinishReason != "tool_calls" || whole.Message.Content != "") {
			t.Errorf("%s: %s", c.name, text)
		}
		_, text = post(t, url+"/v1/chat/completions", body+`"stream":true}`)
		content, calls, finish := "", whole.Message.ToolCalls[:0:0], ""
		for _, a := range events(t, text) {
			content, calls = content+a.Choices[0].Delta.Content, append(calls, a.Choices[0].Delta.ToolCalls...)
			if f := a.Choices[0].FinishReason; f != nil {
				finish = *f
			}
		}
		if len(calls) != len(whole.Message.ToolCalls) || content != whole.Message.Content || finish != *whole.FinishReason {
			t.Errorf("%s: the stream has %q and %+v, want %+v", c.name, content, calls, whole)
		}
		for i, x := range calls {
			if x.Index != i || x.Function != whole.Message.ToolCalls[i].Function {
				t.Errorf("%s: call %d of the stream is %+v", c.name, i, x)
			}
		}
		if seen := len(tools) == 1; seen == (c.name == "none") || messages[2].More["tool_call_id"] != "1" || !strings.Contains(fmt.Sprintf("%s", messages[1].More["tool_calls"]), `"arguments":{"c":"a"}`) {
			t.Errorf("%s: the template has %v and %v", c.name, messages, tools)
		}
	}
}

// TestServersEnd stops a server while it streams: the stream ends whole. With its engine closed a server refuses.
func TestServersEnd(t *testing.T) {
	_, e := start(t, serve.Options{})
	handler := serve.New(e, serve.Options{})
	begun := make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		handler.ServeHTTP(w, r)
	}))
	done := make(chan string)
	go func() {
		_, text := post(t, server.URL+"/v1/completions", `{"prompt":"A","stream":true,"ignore_eos":true,"max_tokens":40}`)
		done <- text
	}()
	<-begun
	c, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- server.Config.Shutdown(c) }()
	events(t, <-done)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := e.Close(ctx); err != nil {
		t.Error(err)
	}
	closed := httptest.NewServer(handler)
	defer closed.Close()
	if status, text := post(t, closed.URL+"/v1/completions", `{"prompt":"A"}`); status != 503 || read(t, text).Error.Code != "shutting_down" {
		t.Errorf("a closed engine: %d %s", status, text)
	}
}

// TestLostDevices loses the device in the middle of a stream: that ends with an event with the error, without one that says
// that all is there, and later requests get the error as their answer.
func TestLostDevices(t *testing.T) {
	left := &atomic.Int32{}
	left.Store(12)
	if err := fragile.Register(left); err != nil {
		t.Fatal(err)
	}
	url, _ := startOn(t, fragile.Name, serve.Options{}, nil)
	status, text := post(t, url+"/v1/completions", `{"prompt":"A","stream":true,"ignore_eos":true,"max_tokens":40}`)
	lines := strings.Split(strings.TrimSpace(text), "\n\n")
	if status != http.StatusOK || len(lines) < 3 || strings.Contains(text, "[DONE]") {
		t.Fatalf("the stream: %d %s", status, text)
	}
	for i, line := range lines {
		if last := i == len(lines)-1; last != strings.Contains(line, `"device_lost"`) {
			t.Errorf("event %d of %d: %s", i+1, len(lines), line)
		}
	}
	for _, request := range []string{`{"prompt":"A"}`, `{"prompt":"A","stream":true}`} {
		if status, text := post(t, url+"/v1/completions", request); status != http.StatusServiceUnavailable || !strings.Contains(text, `"device_lost"`) {
			t.Errorf("%s afterwards: %d %s", request, status, text)
		}
	}
}

// TestEmbeddings asks for vectors of texts and of tokens, as numbers and as base64, by the requests of OpenAI's
// waiting is an embedder whose vectors wait until released.
type waiting struct{ begun, released chan bool }

func (waiting) Tokens(string) ([]int32, error) { return []int32{1}, nil }
func (waiting) Width() int                     { return 1 }

func (w waiting) EmbedTokens(context.Context, [][]int32) ([][]float32, error) {
	w.begun <- true
	<-w.released
	return [][]float32{{1}}, nil
}

// TestTooManyRequests asks for vectors while as many as the server computes at once wait.
func TestTooManyRequests(t *testing.T) {
	slow := waiting{make(chan bool), make(chan bool)}
	server := httptest.NewServer(serve.New(nil, serve.Options{Name: "slow", Embeddings: slow, MaxRequests: 1}))
	defer server.Close()
	ask := func() *http.Response {
		r, err := http.Post(server.URL+"/v1/embeddings", "application/json", strings.NewReader(`{"input":"A","model":"slow"}`))
		if err != nil {
			t.Error(err)
			return &http.Response{Body: http.NoBody}
		}
		return r
	}
	first := make(chan int)
	go func() {
		r := ask()
		r.Body.Close()
		first <- r.StatusCode
	}()
	<-slow.begun
	r := ask()
	data, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if r.StatusCode != 429 || r.Header.Get("Retry-After") != "1" || !strings.Contains(string(data), `"rate_limit_exceeded"`) {
		t.Errorf("%d %s", r.StatusCode, data)
	}
	close(slow.released)
	if status := <-first; status != 200 {
		t.Errorf("the first request: %d", status)
	}
}

// clients, and holds them to those of the encoder; then with what must be refused.
func TestEmbeddings(t *testing.T) {
	m, err := models.Open(filepath.Join("..", "..", "models", "testdata", "minilm"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(ctx)
	texts, err := models.NewTexts(ctx, session, m, models.TextsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer texts.Close(ctx)
	want, err := texts.Embed(ctx, "the cat", "a big dog runs")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(serve.New(nil, serve.Options{Name: "minilm", Embeddings: texts}))
	defer server.Close()
	for body, rows := range map[string]int{
		`{"model": "minilm", "input": ["the cat", "a big dog runs"]}`:                    2,
		`{"input": "the cat", "encoding_format": "float"}`:                               1,
		`{"input": [[1, 5, 14, 2]], "dimensions": 12}`:                                   1,
		`{"input": ["the cat", "a big dog runs"], "encoding_format": "base64"}`:          2,
		`{"input": [1, 5, 14, 2], "encoding_format": "base64", "user": "somebody else"}`: 1,
	} {
		status, text := post(t, server.URL+"/v1/embeddings", body)
		var answer struct {
			Object, Model string
			Data          []struct {
				Object    string
				Index     int
				Embedding json.RawMessage
			}
			Usage map[string]int
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || len(answer.Data) != rows || answer.Object != "list" || answer.Model != "minilm" {
			t.Fatalf("%s: %d %s, %v", body, status, text, err)
		}
		if tokens := map[int]int{1: 4, 2: 11}[rows]; answer.Usage["prompt_tokens"] != tokens || answer.Usage["total_tokens"] != tokens {
			t.Errorf("%s: %v", body, answer.Usage)
		}
		for i, d := range answer.Data {
			if got := vectorOf(t, d.Embedding); d.Index != i || d.Object != "embedding" || !nearly(got, want[i]) {
				t.Errorf("%s: row %d is %v, want %v", body, i, got, want[i])
			}
		}
	}
	for body, status := range map[string]int{
		`{"input": []}`: 400, `{}`: 400, `{"input": "a", "encoding_format": "hex"}`: 400, `{"input": "a", "dimensions": 5}`: 400, `{`: 400,
		`{"input": [1, 40]}`: 400, `{"input": [[]]}`: 400, `{"input": [-1]}`: 400, `{"input": {"a": 1}}`: 400, `{"input": "a"} x`: 400, `{"input": "a"}{"input": "b"}`: 400, `{"input": "a", "model": "b"}`: 404,
	} {
		if got, text := post(t, server.URL+"/v1/embeddings", body); got != status || !strings.Contains(text, `"error"`) {
			t.Errorf("%s: %d %s, want %d", body, got, text, status)
		}
	}
	if got, _ := post(t, server.URL+"/v1/completions", `{"prompt": "a"}`); got != http.StatusNotFound {
		t.Errorf("a completion without an engine: %d", got)
	}
}

// vectorOf returns a vector of an answer, numbers or base64.
func vectorOf(t *testing.T, data json.RawMessage) (v []float32) {
	t.Helper()
	if json.Unmarshal(data, &v) == nil {
		return v
	}
	var bytes []byte // encoding/json reads base64
	if err := json.Unmarshal(data, &bytes); err != nil {
		t.Fatal(err)
	}
	for ; len(bytes) >= 4; bytes = bytes[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(bytes)))
	}
	return v
}

func nearly(x, y []float32) bool {
	for i := range x {
		if !(math.Abs(float64(x[i]-y[i])) < 1e-5) {
			return false
		}
	}
	return len(x) == len(y)
}
