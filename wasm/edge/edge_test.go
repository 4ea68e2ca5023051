package edge_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/wasm/edge"
)

// model is the sum of squares of the product of an input of n rows and a parameter.
func model(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("model", func(b *ir.Builder) {
		n, err := ir.ParseDim("n")
		if err != nil {
			t.Error(err)
		}
		y := ops.MatMul(b, b.Input("x", ir.F32, n, ir.N(3)), b.Param("w", ir.F32, ir.N(3), ir.N(2)))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, y), 0, 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func stepRequest(t *testing.T) edge.Request {
	return edge.Request{
		Name: "model", Symbols: map[string]int{"n": 4},
		Entries: []edge.Entry{{Name: "step", Text: model(t).String(), Step: &edge.Step{Optimizer: edge.Rule{"kind": "adamw", "weightDecay": 0.1, "clipNorm": 1}, History: 8}}},
	}
}

// native compiles the step of stepRequest by the packages that the service calls.
func native(t *testing.T) []byte {
	t.Helper()
	g, err := model(t).Bind(map[string]int{"n": 4})
	if err == nil {
		g, err = optim.Step(g, "loss", optim.AdamW{WeightDecay: 0.1}, optim.Options{ClipNorm: 1})
	}
	if err == nil {
		g, err = optim.History(g, "loss", 8)
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("model", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func ask(t *testing.T, h http.Handler, method, path string, body any, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	text, ok := body.(string)
	if !ok && body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(data)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPlansAreThoseOfTheNativeCompiler(t *testing.T) {
	h, want := edge.Handler(edge.Options{}), native(t)
	sum := sha256.Sum256(want)
	hash := hex.EncodeToString(sum[:])
	q := stepRequest(t)
	q.Limits = edge.Limits{StorageBuffers: 10, SharedBytes: 20_000} // of the level of all devices
	for range 2 {
		w := ask(t, h, "POST", "/v1/plans", q)
		if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), want) {
			t.Fatalf("status %d, %d bytes; %d are required: %.200s", w.Code, w.Body.Len(), len(want), w.Body)
		}
		if got := w.Header().Get("Location"); got != "/v1/plans/"+hash {
			t.Errorf("the location is %s", got)
		}
	}
	w := ask(t, h, "GET", "/v1/plans/"+hash, nil)
	if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), want) || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("by its hash: status %d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
	}
	if w := ask(t, h, "GET", "/v1/plans/"+hash, nil, "If-None-Match", w.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("what has not changed: status %d", w.Code)
	}
	for _, known := range []string{"*", `"00", W/"` + hash + `"`} {
		if w := ask(t, h, "HEAD", "/v1/plans/"+hash, nil, "If-None-Match", known); w.Code != http.StatusNotModified {
			t.Errorf("what has not changed, by HEAD and %s: status %d", known, w.Code)
		}
	}
	packed := ask(t, h, "GET", "/v1/plans/"+hash, nil, "Accept-Encoding", "gzip, br")
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if file, err := io.ReadAll(z); err != nil || !bytes.Equal(file, want) || packed.Header().Get("ETag") != `W/"`+hash+`"` {
		t.Errorf("packed: %d bytes, %v, %v", len(file), err, packed.Header())
	}
	if w := ask(t, h, "OPTIONS", "/v1/plans/"+hash, nil); w.Code != http.StatusNoContent || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "If-None-Match") {
		t.Errorf("a preflight of a plan: status %d, %v", w.Code, w.Header())
	}
	if w := ask(t, h, "OPTIONS", "/v1/plans", nil); w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Methods") == "" {
		t.Errorf("a preflight: status %d, %v", w.Code, w.Header())
	}
}

func TestRequestsAtTheSameTime(t *testing.T) {
	h, want := edge.Handler(edge.Options{Concurrent: 1}), native(t)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if w := ask(t, h, "POST", "/v1/plans", stepRequest(t)); !bytes.Equal(w.Body.Bytes(), want) {
				t.Errorf("status %d, %d bytes", w.Code, w.Body.Len())
			}
		})
	}
	wait.Wait()
}

func TestRefusals(t *testing.T) {
	h := edge.Handler(edge.Options{MaxBody: 4000, MaxNodes: 100, MaxEntries: 2, MaxPlan: 12_000})
	change := func(f func(q *edge.Request)) edge.Request {
		q := stepRequest(t)
		f(&q)
		return q
	}
	of := func(f func(e *edge.Entry)) edge.Request { return change(func(q *edge.Request) { f(&q.Entries[0]) }) }
	for _, row := range []struct {
		name, method, path string
		body               any
		status             int
		kind, detail       string
	}{
		{"a path", "GET", "/", nil, 404, "path", "there is no /"},
		{"a hash", "GET", "/v1/plans/00", nil, 404, "missing", "there is no plan 00"},
		{"a longer path", "POST", "/v1/plansx", nil, 404, "path", "there is no /v1/plansx"},
		{"a method of a plan", "DELETE", "/v1/plans/00", nil, 405, "method", "DELETE is not a method"},
		{"a target twice", "POST", "/v1/plans", change(func(q *edge.Request) { q.Targets = []string{"wasm", "wasm"} }), 422, "name", "given twice"},
		{"a large size", "POST", "/v1/plans", change(func(q *edge.Request) { q.Symbols["n"] = math.MaxInt32 }), 422, "unsupported", `entry "step" of module "model": input "x": unsupported`},
		{"a method", "PUT", "/v1/plans", nil, 405, "method", "PUT is not a method"},
		{"no JSON", "POST", "/v1/plans", "graph", 400, "syntax", "the body is no request"},
		{"an array", "POST", "/v1/plans", "[]", 400, "syntax", "its type is array"},
		{"a member of another type", "POST", "/v1/plans", `{"entries": 5}`, 400, "syntax", "the type of entries is number"},
		{"an unknown field", "POST", "/v1/plans", `{"graph": "x"}`, 400, "syntax", "unknown field"},
		{"two requests", "POST", "/v1/plans", `{} {}`, 400, "syntax", "more behind the request"},
		{"a long body", "POST", "/v1/plans", of(func(e *edge.Entry) { e.Text += strings.Repeat(" ", 4000) }), 413, "limit", "more than 4000 bytes"},
		{"no entries", "POST", "/v1/plans", change(func(q *edge.Request) { q.Entries = nil }), 422, "attr", "no entries"},
		{"many entries", "POST", "/v1/plans", change(func(q *edge.Request) { q.Entries = make([]edge.Entry, 3) }), 413, "limit", "3 entries"},
		{"no graph", "POST", "/v1/plans", of(func(e *edge.Entry) { e.Text = "graph (" }), 400, "syntax", "a quoted string expected"},
		{"no size", "POST", "/v1/plans", change(func(q *edge.Request) { q.Symbols = nil }), 422, "symbol", "n"},
		{"an optimiser", "POST", "/v1/plans", of(func(e *edge.Entry) { e.Step.Optimizer = edge.Rule{"kind": "magic"} }), 422, "name", "unknown optimizer"},
		{"a number", "POST", "/v1/plans", of(func(e *edge.Entry) { e.Step.Optimizer["beta1"] = "x" }), 422, "attr", "beta1 is x"},
		{"a precision", "POST", "/v1/plans", of(func(e *edge.Entry) { e.Step.Precision = "f8" }), 422, "attr", "precision"},
		{"a target", "POST", "/v1/plans", change(func(q *edge.Request) { q.Targets = []string{"vulkan"} }), 422, "name", "unknown target"},
		{"many nodes", "POST", "/v1/plans", of(func(e *edge.Entry) { e.Step.Optimizer = edge.Rule{"kind": "soap"} }), 413, "limit", "nodes"},
		{"long constants", "POST", "/v1/plans", of(func(e *edge.Entry) {
			e.Text = `graph "g" {
  %0 = window() {kind="hann" length=16777216 symmetric=false beta=0 dtype=f32} : f32[16777216]
  output "y" = %0
}`
			e.Step = nil
		}), 413, "limit", "67108864 bytes"},
		{"a long plan", "POST", "/v1/plans", change(func(q *edge.Request) { q.Targets = []string{"webgpu", "wasm"} }), 413, "limit", "the plan has"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := ask(t, h, row.method, row.path, row.body)
			var p struct {
				Type, Title, Detail, Kind string
				Status                    int
			}
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatalf("status %d: %v", w.Code, err)
			}
			if w.Code != row.status || p.Status != row.status || p.Kind != row.kind || !strings.Contains(p.Detail, row.detail) || p.Title == "" || p.Type != "urn:rlx:"+row.kind {
				t.Errorf("status %d, %+v; %d and %s are required", w.Code, p, row.status, row.kind)
			}
			if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("the type is %s", got)
			}
		})
	}
	packed := ask(t, h, "POST", "/v1/plans", stepRequest(t), "Content-Encoding", "gzip")
	if packed.Code != http.StatusUnsupportedMediaType || packed.Header().Get("Accept-Encoding") != "identity" {
		t.Errorf("a body that is packed: status %d, %v", packed.Code, packed.Header())
	}
	r := httptest.NewRequest("POST", "/v1/plans", io.LimitReader(strings.NewReader("{}"), 1))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("without a type: status %d", w.Code)
	}
}

// TestPlansAreForgotten asserts that the store of a service in memory is bounded.
func TestPlansAreForgotten(t *testing.T) {
	m := edge.NewMemory(100)
	for i := range 50 {
		m.Put(t.Context(), fmt.Sprint(i), make([]byte, 20))
		m.Get(t.Context(), "0")
	}
	kept := 0
	for i := range 50 {
		if _, ok := m.Get(t.Context(), fmt.Sprint(i)); ok {
			kept++
		}
	}
	if _, ok := m.Get(t.Context(), "0"); kept != 4 || !ok {
		t.Errorf("%d values of 20 bytes are kept in 100, that which was used: %v", kept, ok)
	}
}

// slowStore holds up whoever asks it, until it is opened.
type slowStore struct{ asked, open chan struct{} }

func (s slowStore) Get(context.Context, string) ([]byte, bool) {
	s.asked <- struct{}{}
	<-s.open
	return nil, false
}

func (slowStore) Put(context.Context, string, []byte) {}

// lateStore has the values of another one, and holds up who puts one, until it is opened.
type lateStore struct {
	edge.Store
	open chan struct{}
}

func (s lateStore) Put(context.Context, string, []byte) { <-s.open }

// TestBusy asserts that of three requests a service for two refuses one, that it then still returns the plans that it has, and
// compiles again afterwards.
func TestBusy(t *testing.T) {
	store := lateStore{edge.NewMemory(1 << 20), make(chan struct{})}
	if w := ask(t, edge.Handler(edge.Options{Store: store.Store}), "POST", "/v1/plans", stepRequest(t)); w.Code != http.StatusOK {
		t.Fatalf("status %d", w.Code)
	}
	h := edge.Handler(edge.Options{Concurrent: 1, Waiting: 1, Store: store})
	other := stepRequest(t)
	other.Symbols = map[string]int{"n": 5}
	answers := make(chan *httptest.ResponseRecorder)
	for range 3 {
		go func() { answers <- ask(t, h, "POST", "/v1/plans", other) }()
	}
	if w := <-answers; w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"busy"`) {
		t.Errorf("status %d, %v, %s", w.Code, w.Header(), w.Body)
	}
	if w := ask(t, h, "POST", "/v1/plans", stepRequest(t)); w.Code != http.StatusOK {
		t.Errorf("status %d of a plan that is there", w.Code)
	}
	close(store.open)
	for range 2 {
		if w := <-answers; w.Code != http.StatusOK {
			t.Errorf("status %d of one that waited", w.Code)
		}
	}
	if w := ask(t, h, "POST", "/v1/plans", other); w.Code != http.StatusOK {
		t.Errorf("status %d afterwards", w.Code)
	}
}

// TestSlowBody asserts that a body that does not come is refused, over a connection.
func TestSlowBody(t *testing.T) {
	server := httptest.NewServer(edge.Handler(edge.Options{BodyTime: 50 * time.Millisecond}))
	defer server.Close()
	body, writer := io.Pipe()
	defer writer.Close()
	go func() { _, _ = writer.Write([]byte(`{"entries": [`)) }()
	r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/plans", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(text), `"timeout"`) {
		t.Errorf("status %d, %s", answer.StatusCode, text)
	}
}

// TestManyBodies asserts that a body is refused that has no room beside those of others, and that those of requests that have
// ended do not count.
func TestManyBodies(t *testing.T) {
	h := edge.Handler(edge.Options{MaxBodies: 2000})
	body, writer := io.Pipe()
	ended := make(chan *httptest.ResponseRecorder)
	go func() {
		r := httptest.NewRequest("POST", "/v1/plans", body)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		ended <- w
	}()
	for _, size := range []int{1900, 1} { // the second is read once the first is counted
		if _, err := writer.Write(bytes.Repeat([]byte(" "), size)); err != nil {
			t.Fatal(err)
		}
	}
	if w := ask(t, h, "POST", "/v1/plans", stepRequest(t)); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"busy"`) {
		t.Errorf("status %d, %s while another body is there", w.Code, w.Body)
	}
	_ = writer.CloseWithError(io.ErrUnexpectedEOF)
	if w := <-ended; w.Code != http.StatusBadRequest {
		t.Errorf("status %d, %s of a body that breaks off", w.Code, w.Body)
	}
	for range 10 {
		if w := ask(t, h, "POST", "/v1/plans", stepRequest(t)); w.Code != http.StatusOK {
			t.Fatalf("status %d, %s afterwards", w.Code, w.Body)
		}
	}
}

// TestLongCompilation asserts that the time for the body does not end a request while it is compiled.
func TestLongCompilation(t *testing.T) {
	store := slowStore{make(chan struct{}), make(chan struct{})}
	server := httptest.NewServer(edge.Handler(edge.Options{BodyTime: 20 * time.Millisecond, Store: store}))
	defer server.Close()
	go func() {
		<-store.asked
		time.Sleep(100 * time.Millisecond)
		close(store.open)
		<-store.asked
	}()
	data, err := json.Marshal(stepRequest(t))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(server.URL+"/v1/plans", "application/json", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("status %d", answer.StatusCode)
	}
}

// TestLargeSizesTakeLittleMemory compiles sums by index whose rows have millions of elements: a request costs
// what its nodes do, not what their arrays would.
func TestLargeSizesTakeLittleMemory(t *testing.T) {
	h := edge.Handler(edge.Options{})
	text := func(n int) string {
		g, err := ir.Build("rows", func(b *ir.Builder) {
			x, rows, updates := b.Input("x", ir.F32, ir.Dims(2, 5, n)...), b.Input("rows", ir.I32, ir.Dims(5, 1)...), b.Input("updates", ir.F32, ir.Dims(5, 2, n)...)
			b.Output("y", ops.ScatterMin(b, x, rows, updates, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{1}}}))
		})
		if err != nil {
			t.Fatal(err)
		}
		return g.String()
	}
	for _, n := range []int{8, 1 << 24} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := ask(t, h, "POST", "/v1/plans", edge.Request{Targets: []string{"wasm"}, Entries: []edge.Entry{{Name: "rows", Text: text(n)}}})
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; w.Code != http.StatusOK || bytes > 16<<20 {
			t.Errorf("rows of %d: status %d, %d bytes allocated", n, w.Code, bytes)
		}
	}
}

// TestKeysOfAStore asserts that a store is asked for hashes alone, and that a coding which is refused is not used.
func TestKeysOfAStore(t *testing.T) {
	m := edge.NewMemory(1 << 20)
	plan, hash := bytes.Repeat([]byte("plan"), 1000), strings.Repeat("0a", 32)
	for _, key := range []string{hash, "../secret", "00", strings.ToUpper(hash)} {
		m.Put(t.Context(), "plan/"+key, plan)
	}
	h := edge.Handler(edge.Options{Store: m})
	for path, status := range map[string]int{hash: 200, "..%2Fsecret": 404, "00": 404, strings.ToUpper(hash): 404} {
		if w := ask(t, h, "GET", "/v1/plans/"+path, nil); w.Code != status {
			t.Errorf("%s: status %d, not %d", path, w.Code, status)
		}
	}
	for codings, packed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0, br": false, "br": false} {
		w := ask(t, h, "GET", "/v1/plans/"+hash, nil, "Accept-Encoding", codings)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("with %q: packed %v", codings, got)
		}
	}
}
