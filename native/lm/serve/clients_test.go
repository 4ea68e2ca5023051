package serve_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/lm/serve"
	"github.com/rlx-go/rlx/native/models"
)

// recorded is what testdata/clients.py has recorded.
type recorded struct {
	Requests []struct {
		Client, Answer, Method, Path, Body string
		Headers                            map[string]string
	}
	Schemas map[string]schema
}

// schema is a JSON schema.
type schema map[string]any

// check returns an error if a value does not obey the schema, in which $ref names one of definitions.
func (s schema) check(at string, v any, definitions map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		holds := true
		switch rule := s[key]; key {
		case "$defs":
		case "$ref":
			name := strings.TrimPrefix(rule.(string), "#/$defs/")
			if err := schema(definitions[name].(map[string]any)).check(at, v, definitions); err != nil {
				return err
			}
		case "anyOf":
			holds = slices.ContainsFunc(rule.([]any), func(s any) bool { return schema(s.(map[string]any)).check(at, v, definitions) == nil })
		case "const":
			holds = v == rule
		case "enum":
			holds = slices.Contains(rule.([]any), v)
		case "type":
			holds = isOf(rule.(string), v)
		case "required":
			for _, name := range rule.([]any) {
				object, is := v.(map[string]any)
				_, has := object[name.(string)]
				holds = holds && (has || !is)
			}
		case "properties":
			object, _ := v.(map[string]any)
			for name, s := range rule.(map[string]any) {
				if x, has := object[name]; has {
					if err := schema(s.(map[string]any)).check(at+"."+name, x, definitions); err != nil {
						return err
					}
				}
			}
		case "items":
			list, _ := v.([]any)
			for i, x := range list {
				if err := schema(rule.(map[string]any)).check(fmt.Sprintf("%s[%d]", at, i), x, definitions); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("%s: the rule %q is unknown", at, key)
		}
		if !holds {
			return fmt.Errorf("%s is %v; %s is %v", at, v, key, s[key])
		}
	}
	return nil
}

// isOf reports whether a decoded value is of a type of JSON schemas.
func isOf(name string, v any) bool {
	if x, is := v.(float64); is && name == "integer" {
		return x == float64(int64(x))
	}
	return v == nil && name == "null" || v != nil && reflect.TypeOf(v) == map[string]reflect.Type{
		"string": reflect.TypeFor[string](), "number": reflect.TypeFor[float64](), "boolean": reflect.TypeFor[bool](),
		"object": reflect.TypeFor[map[string]any](), "array": reflect.TypeFor[[]any](),
	}[name]
}

// TestClients sends what OpenAI's clients of PyPI and npm have sent, and holds the answers to the schemas of the types that these
// read them into.
func TestClients(t *testing.T) {
	r, url := readRecorded(t, filepath.Join("testdata", "clients.json")), startForClients(t)
	clients := map[string]int{}
	for _, q := range r.Requests {
		request, err := http.NewRequest(q.Method, url+q.Path, strings.NewReader(q.Body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range q.Headers {
			request.Header.Set(name, value)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %d %s %v", q.Client, q.Body, answer.StatusCode, data, err)
		}
		if err := checkAnswer(r.Schemas[q.Answer], answer.Header.Get("Content-Type"), string(data)); err != nil {
			t.Errorf("%s: %s%s: %v\n%s", q.Client, q.Path, q.Body, err, data)
		}
		clients[q.Client]++
	}
	if clients["pypi"] != 7 || clients["npm"] != 7 {
		t.Errorf("requests of %v", clients)
	}
}

// TestClientsThemselves has OpenAI's clients talk to a server, where RLX_CLIENTS is the folder in which they are installed, and
// compares what they send with what is recorded.
func TestClientsThemselves(t *testing.T) {
	folder := os.Getenv("RLX_CLIENTS")
	var missing error
	if folder == "" {
		missing = errors.New("$RLX_CLIENTS names no folder: make test-clients does")
	}
	backendtest.Require(t, "clients", missing)
	file := filepath.Join(t.TempDir(), "clients.json")
	c := exec.Command(filepath.Join(folder, "venv", "bin", "python"), filepath.Join("testdata", "clients.py"), startForClients(t), folder, file)
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got, want := readRecorded(t, file).Requests, readRecorded(t, filepath.Join("testdata", "clients.json")).Requests
	if len(got) != len(want) {
		t.Fatalf("%d requests, recorded are %d", len(got), len(want))
	}
	for i, q := range got {
		if w := want[i]; q.Method != w.Method || q.Path != w.Path || q.Body != w.Body || q.Client != w.Client {
			t.Errorf("%s: %s %s %s; recorded is %s %s %s", q.Client, q.Method, q.Path, q.Body, w.Method, w.Path, w.Body)
		}
	}
}

func readRecorded(t *testing.T, file string) (r recorded) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// startForClients returns the address of a server with a language model and an encoder.
func startForClients(t *testing.T) (url string) {
	t.Helper()
	m, err := models.Open(filepath.Join("..", "..", "models", "testdata", "minilm"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close(ctx) })
	texts, err := models.NewTexts(ctx, session, m, models.TextsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { texts.Close(ctx) })
	url, _ = start(t, serve.Options{Name: "tiny", Chat: chat, Embeddings: texts})
	return url
}

// checkAnswer holds an answer, or each event of a stream, to a schema.
func checkAnswer(s schema, contentType, text string) error {
	parts := []string{text}
	if strings.HasPrefix(contentType, "text/event-stream") {
		if parts = strings.Split(text, "\n\n"); len(parts) < 4 || parts[len(parts)-1] != "" || parts[len(parts)-2] != "data: [DONE]" {
			return fmt.Errorf("the stream does not end as it must")
		}
		parts = parts[:len(parts)-2]
	} else if contentType != "application/json" {
		return fmt.Errorf("the content is %q", contentType)
	}
	definitions, _ := s["$defs"].(map[string]any)
	for i, part := range parts {
		var v any
		if err := json.Unmarshal([]byte(strings.TrimPrefix(part, "data: ")), &v); err != nil {
			return err
		}
		if err := s.check(fmt.Sprintf("part %d", i), v, definitions); err != nil {
			return err
		}
	}
	return nil
}
