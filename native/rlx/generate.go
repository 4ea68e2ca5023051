package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir/lm"
	irmodels "github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/native/lm/generate"
	"github.com/rlx-go/rlx/native/lm/serve"
	"github.com/rlx-go/rlx/native/models"
)

var generateCommand = command{
	name: "generate", args: "MODEL [TEXT]", short: "continue a text with a language model",
	long: `Continues TEXT, that of -prompt, or of the standard input, with a language model: a GGUF file, or a
folder of Hugging Face with config.json, model.safetensors and tokenizer.json. The text is written as it
comes; rates follow on the standard error.`,
	define: func(f *flag.FlagSet) runner {
		o := modelFlags(f)
		var q generate.Request
		prompt := f.String("prompt", "", "`TEXT` to continue; the standard input by default")
		chat := f.Bool("chat", false, "answer the text as a message of a user, by the model's chat template")
		f.IntVar(&q.MaxTokens, "max", 256, "`TOKENS` to write at most; 0 for what the context has room for")
		f.Uint64Var(&q.Seed, "seed", 1, "`SEED` of the random numbers")
		samplingFlags(f, &q.Sampling)
		f.Func("stop", "`TEXT` that ends the result; may be repeated", func(text string) error {
			q.Stop = append(q.Stop, text)
			return nil
		})
		return func(ctx context.Context, std stdio, args []string) error {
			if len(args) == 2 {
				if *prompt != "" {
					return usagef("%q follows MODEL, and -prompt is given: one of them must be", args[1])
				}
				*prompt, args = args[1], args[:1]
			}
			path, err := one(args, "MODEL")
			if err != nil {
				return err
			}
			if q.Sampling.TopP == 0 { // which means 1 in Sampling: here the likeliest token alone
				q.Sampling.TopK = 1
			}
			if q.Prompt = *prompt; q.Prompt == "" {
				text, err := io.ReadAll(std.in)
				if err != nil {
					return err
				}
				q.Prompt = string(text)
			}
			m, err := o.open(ctx, path)
			if err != nil {
				return err
			}
			defer m.close(ctx)
			if *chat {
				if q.Tokens, err = m.loaded.Chat([]generate.Message{{Role: "user", Content: q.Prompt}}); err != nil {
					return err
				}
			}
			return writeText(ctx, std, m.engine, q)
		}
	},
}

// writeText writes a result as it comes, and its rates.
func writeText(ctx context.Context, std stdio, e *generate.Engine, q generate.Request) error {
	for token, err := range e.Generate(ctx, q) {
		if err != nil {
			return err
		}
		if _, err := io.WriteString(std.out, token.Text); err != nil {
			return err
		}
		if s := token.Stats; s != nil {
			fmt.Fprintln(std.out)
			fmt.Fprintf(std.err, "prompt: %d tokens, %.4g tokens/s; result: %d tokens, %.4g tokens/s; first token after %.4g ms\n",
				s.PromptTokens, s.PromptRate(), s.ResultTokens, s.DecodeRate(), millis(s.FirstToken))
			if s.Drafted > 0 {
				fmt.Fprintf(std.err, "guessed: %d tokens, of which %d were accepted\n", s.Drafted, s.Accepted)
			}
		}
	}
	return nil
}

var serveCommand = command{
	name: "serve", args: "MODEL", short: "answer requests of OpenAI's API with a language model",
	long: `Serves a language model, a GGUF file or a folder of Hugging Face, by the requests of OpenAI's API:
/v1/completions, /v1/chat/completions and /v1/models. Results of several users are computed at
once, and are JSON, by a schema or without, where response_format asks for it. Chats may have tools: calls obey
the schemas of their functions. With an encoder, such as BERT, it answers /v1/embeddings instead; -embeddings has one
answer them beside a language model. An interrupt lets the results that have begun end, for at most 30 seconds.`,
	define: func(f *flag.FlagSet) runner {
		o := modelFlags(f)
		f.IntVar(&o.engine.Slots, "slots", 4, "`NUMBER` of results that are computed at once")
		address := f.String("address", "localhost:8080", "`ADDRESS` to listen at")
		f.IntVar(&o.engine.Alternatives, "alternatives", 0, "`NUMBER` of likely tokens that logprobs and top_logprobs may ask for, at most 20")
		var s serve.Options
		f.StringVar(&s.Name, "name", "", "`NAME` of the model in requests; that of the file by default")
		f.IntVar(&s.MaxTokens, "max", 0, "`TOKENS` of a result at most; 0 for what the context has room for")
		f.IntVar(&s.MaxRequests, "requests", 256, "`NUMBER` of results that are computed or wait at most")
		embeddings := f.String("embeddings", "", "`FOLDER` of an encoder for /v1/embeddings, under the name of the model")
		return func(ctx context.Context, std stdio, args []string) error {
			path, err := one(args, "MODEL")
			if err != nil {
				return err
			}
			if s.Name == "" {
				s.Name = strings.TrimSuffix(filepath.Base(filepath.Clean(path)), filepath.Ext(path))
			}
			l, err := net.Listen("tcp", *address)
			if err != nil {
				return err
			}
			defer l.Close()
			serveAt := func(session *rlx.Session, engine *generate.Engine) error {
				fmt.Fprintf(std.out, "%s on %s: http://%s/v1\n", s.Name, session.Device().Name, l.Addr())
				return listen(ctx, l, serve.New(engine, s))
			}
			if isEncoder(path) {
				return withTexts(ctx, path, o.device, &s, func(session *rlx.Session) error { return serveAt(session, nil) })
			}
			m, err := o.open(ctx, path)
			if err != nil {
				return err
			}
			defer m.close(ctx)
			if m.loaded.ChatTemplate != "" {
				s.Chat = m.loaded.Chat
			}
			if *embeddings == "" {
				return serveAt(m.session, m.engine)
			}
			return withTexts(ctx, *embeddings, o.device, &s, func(*rlx.Session) error { return serveAt(m.session, m.engine) })
		}
	},
}

// isEncoder reports whether a path is a folder of an encoder of texts.
func isEncoder(path string) bool {
	m, err := models.Open(path)
	if err != nil {
		return false // opening it as a language model says why
	}
	defer m.Close()
	return m.Kind == irmodels.TextKind
}

// withTexts calls f while an encoder answers requests for vectors.
func withTexts(ctx context.Context, path, device string, o *serve.Options, f func(s *rlx.Session) error) error {
	return withModel(ctx, path, device, func(s *rlx.Session, m *models.Model) error {
		texts, err := models.NewTexts(ctx, s, m, models.TextsOptions{})
		if err != nil {
			return err
		}
		defer texts.Close(context.WithoutCancel(ctx))
		o.Embeddings = texts
		return f(s)
	})
}

// stopTime bounds how long a server waits for the results that have begun.
const stopTime = 30 * time.Second

// listen serves until ctx ends and the results that have begun have ended.
func listen(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, server.Close())
	}
	return nil
}

// modelOptions are the flags of commands that run a language model.
type modelOptions struct {
	device, precision, draft string
	engine                   generate.Options
	bind                     lm.BindOptions
}

func modelFlags(f *flag.FlagSet) *modelOptions {
	o := &modelOptions{}
	deviceFlag(f, &o.device)
	precisionFlag(f, &o.precision)
	activationsFlag(f, &o.bind.ActivationBits)
	f.IntVar(&o.engine.Context, "context", 0, "`TOKENS` of prompt and result together; 0 for the model's, at most 2048")
	f.IntVar(&o.engine.Positions, "positions", 0, "`TOKENS` of all results that are computed at once, prompts included; 0 for as many as -context allows")
	f.IntVar(&o.engine.Chunk, "chunk", 0, "`TOKENS` of a prompt that a run takes; 0 for 128")
	f.IntVar(&o.engine.Draft, "draft", 0, "`TOKENS` that are guessed for a run, without a change of results; 4 with -draft-model")
	f.StringVar(&o.draft, "draft-model", "", "`MODEL` that guesses them: a small one with the same tokenizer; from the prompt by default")
	return o
}

func samplingFlags(f *flag.FlagSet, s *lm.Sampling) {
	f.Float64Var(&s.Temperature, "temperature", 0, "`NUMBER` that divides the logits; 0 takes the most likely token")
	f.IntVar(&s.TopK, "top-k", 0, "`NUMBER` of the most likely tokens that are kept; 0 for all")
	f.Float64Var(&s.TopP, "top-p", 1, "`PROBABILITY` that the most likely tokens that are kept sum to")
	f.Float64Var(&s.MinP, "min-p", 0, "`SHARE` of the greatest probability that a token needs")
	f.Float64Var(&s.Repetition, "repetition", 1, "`FACTOR` by which tokens that are there become less likely")
}

// openModel is a model on a device.
type openModel struct {
	loaded  *generate.Loaded
	session *rlx.Session
	engine  *generate.Engine
}

func (o *modelOptions) open(ctx context.Context, path string) (*openModel, error) {
	m := &openModel{}
	var err error
	if o.engine.Precision, err = precisionOf(o.precision); err != nil {
		return nil, err
	}
	if m.loaded, err = generate.Load(path, o.bind); err != nil {
		return nil, err
	}
	if o.draft != "" {
		draft, err := generate.Load(o.draft, o.bind)
		if err != nil {
			return nil, errors.Join(err, m.loaded.Close())
		}
		defer draft.Close()
		o.engine.DraftModel = &draft.Model
	}
	if m.session, err = rlx.Open(o.device); err == nil {
		m.engine, err = generate.New(ctx, m.session, m.loaded.Model, o.engine)
	}
	if err != nil {
		m.close(ctx)
		return nil, err
	}
	return m, nil
}

// close closes all open resources, in order. It ignores errors, since the program ends.
func (m *openModel) close(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if m.engine != nil {
		_ = m.engine.Close(ctx)
	}
	if m.session != nil {
		_ = m.session.Close(ctx)
	}
	_ = m.loaded.Close()
}
