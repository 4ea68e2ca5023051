package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlx-go/rlx/native/lm/generate"
)

// Options are the options of [New].
type Options struct {
	// Name is the name of the model; "" means "rlx". Requests may omit it.
	Name string
	// Chat returns the prompt for the model's answer to a conversation, in which it may call tools, the elements of
	// tools in requests; nil refuses chats.
	Chat func(messages []generate.Message, tools ...json.RawMessage) ([]int32, error)
	// Embeddings returns vectors of texts for /v1/embeddings; nil refuses them.
	Embeddings Embedder
	// MaxTokens bounds the results; 0 means as many tokens as fit the context.
	MaxTokens int
	// MaxBody bounds the bytes of a request; 0 means 4 MiB.
	MaxBody int64
	// MaxRequests bounds the results that are computed or wait at once; 0 means 256. More are refused with
	// status 429, those of one request with 400.
	MaxRequests int
}

// Server answers requests: it is an [http.Handler].
type Server struct {
	engine  *generate.Engine
	options Options
	mux     *http.ServeMux
	created int64
	open    atomic.Int64 // results that are computed or wait
	number  atomic.Int64 // of requests
	words   func() *generate.Vocabulary
}

// New returns a server of an engine, whose model has a tokenizer; with a nil engine it serves
// vectors only. The caller closes the engine and the embedder.
func New(e *generate.Engine, o Options) *Server {
	if o.Name == "" {
		o.Name = "rlx"
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	if o.MaxRequests <= 0 {
		o.MaxRequests = 256
	}
	if o.MaxTokens <= 0 {
		o.MaxTokens = math.MaxInt
	}
	s := &Server{engine: e, options: o, mux: http.NewServeMux(), created: time.Now().Unix()}
	s.mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /v1/models/{name}", s.modelNamed)
	if e != nil {
		s.words = sync.OnceValue(func() *generate.Vocabulary { return generate.NewVocabulary(e.Model().Tokenizer) })
		s.mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, newCompletion) })
		s.mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, newChat) })
	}
	s.mux.HandleFunc("POST /v1/embeddings", s.embeddings)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		coded(http.StatusNotFound, invalid, "unknown_url", "unknown request: %s %s", r.Method, r.URL.Path).write(w)
	})
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// model describes the model.
func (s *Server) model() map[string]any {
	return map[string]any{"id": s.options.Name, "object": "model", "created": s.created, "owned_by": "rlx"}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{s.model()}})
}

func (s *Server) modelNamed(w http.ResponseWriter, r *http.Request) {
	if err := s.checkModel(r.PathValue("name")); err != nil {
		err.write(w)
		return
	}
	writeJSON(w, http.StatusOK, s.model())
}

func (s *Server) checkModel(name string) *apiError {
	if name == "" || name == s.options.Name {
		return nil
	}
	return coded(http.StatusNotFound, invalid, "model_not_found", "the model %q does not exist: there is %q", name, s.options.Name)
}

// read decodes the body of a request, which is one JSON value.
func (s *Server) read(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, s.options.MaxBody))
	if err := decoder.Decode(into); err != nil {
		return err
	}
	switch _, err := decoder.Token(); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	}
	return errors.New("data follows the JSON value")
}

// badBody returns the answer to an error of read.
func badBody(err error) *apiError {
	if e := errorOf(err); e.status < http.StatusInternalServerError {
		return e
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return refuse(wrong.Field, "%s is of type %s: it must be %s", cmp.Or(wrong.Field, "the request"), wrong.Value, typeName(wrong.Type))
	}
	return refuse("", "the request is not valid JSON of this API: %s", err)
}

// typeName returns the name of a type in JSON, with an article.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice: // one element may stand for a list
		return "a string or an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "an integer of at most 63 bits"
}

// admit counts n results among those that are computed or wait. It refuses those past the maximum, unless there are no others.
func (s *Server) admit(w http.ResponseWriter, n int64) *apiError {
	if s.open.Add(n) <= max(int64(s.options.MaxRequests), n) {
		return nil
	}
	s.open.Add(-n)
	w.Header().Set("Retry-After", "1")
	return coded(http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "more than %d results are asked for at once", s.options.MaxRequests)
}

// answer reads a request, starts its results, and writes them in one of the two forms.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, form func(s *Server, b *body) (*answer, error)) {
	b := &body{}
	if err := s.read(w, r, b); err != nil {
		badBody(err).write(w)
		return
	}
	if err := s.checkModel(b.Model); err != nil {
		err.write(w)
		return
	}
	a, err := form(s, b)
	if err != nil {
		errorOf(err).write(w)
		return
	}
	n := int64(len(a.requests))
	if err := s.admit(w, n); err != nil {
		err.write(w)
		return
	}
	defer s.open.Add(-n)
	a.id += strconv.FormatInt(s.created, 36) + "-" + strconv.FormatInt(s.number.Add(1), 10)
	a.created = time.Now().Unix()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if b.Stream {
		a.stream(ctx, w)
		return
	}
	a.whole(ctx, w)
}
