package edge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/rlx-go/rlx/wasm/edge"
)

// A server compiles graphs for pages that have only the runtime. The plan has a name by which it can be cached for ever.
func ExampleHandler() {
	server := httptest.NewServer(edge.Handler(edge.Options{}))
	defer server.Close()
	body, err := json.Marshal(edge.Request{
		Entries: []edge.Entry{{Name: "double", Text: `graph "double" {
  %0 = input "x" : f32[n]
  %1 = add(%0, %0) : f32[n]
  output "y" = %1
}`}},
		Symbols: map[string]int{"n": 4}, Targets: []string{"webgpu", "wasm"},
	})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := http.Post(server.URL+"/v1/plans", "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	plan, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	again, err := http.Get(server.URL + answer.Header.Get("Location"))
	if err != nil {
		log.Fatal(err)
	}
	defer again.Body.Close()
	fmt.Println(answer.StatusCode, len(plan) > 1000, again.StatusCode)
	// Output: 200 true 200
}
