package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/lm/generate"
	"github.com/rlx-go/rlx/native/lm/serve"
)

// A completion of a prompt that is given as tokens. The server is an http.Handler.
func Example() {
	ctx := context.Background()
	model, err := lm.Load("../testdata/llama")
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	session, err := rlx.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close(ctx)
	engine, err := generate.New(ctx, session, generate.Of(model), generate.Options{Slots: 1, Chunk: 8, Context: 32})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close(ctx)
	server := httptest.NewServer(serve.New(engine, serve.Options{Name: "tiny"})) // or http.ListenAndServe
	defer server.Close()
	r, err := http.Post(server.URL+"/v1/completions", "application/json", strings.NewReader(`{"model": "tiny", "prompt": [5, 8, 13], "max_tokens": 2}`))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Body.Close()
	var answer struct {
		Usage map[string]any
	}
	err = json.NewDecoder(r.Body).Decode(&answer)
	fmt.Println(r.Status, answer.Usage["prompt_tokens"], answer.Usage["completion_tokens"], err)
	// Output: 200 OK 3 2 <nil>
}
