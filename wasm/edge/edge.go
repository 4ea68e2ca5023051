// Package edge is a compile service: an [http.Handler] that compiles graphs, given as text with the
// options of their training steps, to plans. A page then needs only the runtime and gets a plan for
// its device.
//
//	POST /v1/plans         a [Request] as JSON → the plan file; Location and ETag name it
//	GET  /v1/plans/{hash}  the plan file of a hash: it never changes
//
// The hash is the SHA-256 of the plan file, so that a caller can check the file. Errors are problem
// details of RFC 9457. Requests from any origin are allowed.
//
// Start reading at edge.go, the handler; request.go turns a request to graphs and targets by package
// recipe, as the compiler of the page does, and package plan compiles them.
package edge

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Options bound the resources of a request. Zero means the default of each field.
type Options struct {
	// MaxBody is the maximum size of a body in bytes, 1 MiB by default: graphs contain no weights.
	MaxBody int64
	// MaxBodies is the maximum size of the bodies of all requests under way in bytes, 16 MiB by
	// default. Further ones are refused with status 503.
	MaxBodies int64
	// MaxNodes is the maximum number of nodes of all graphs in total, derivatives included; 12,000
	// by default. GPT-2's step has 9,489.
	MaxNodes int
	// MaxEntries is the maximum number of entries of a module, 16 by default.
	MaxEntries int
	// MaxPlan is the maximum size of a plan in bytes, 8 MiB by default.
	MaxPlan int
	// Concurrent is the maximum number of concurrent compilations, 2 by default.
	Concurrent int
	// Waiting is the maximum number of requests that wait for a compilation, 16 by default: each
	// holds its graphs. Further ones are refused with status 503.
	Waiting int
	// BodyTime is the maximum time that a body takes to arrive, 10 s by default. It needs a server
	// whose connections have deadlines, as those of net/http do.
	BodyTime time.Duration
	// Memory is the limit of [debug.SetMemoryLimit] in bytes, which applies to the whole process;
	// none by default. Near the limit garbage collection takes more time. A worker with 128 MB has
	// room for 80 MiB.
	Memory int64
	// Store keeps plans; by default 64 MiB of them in memory.
	Store Store
}

// Store keeps values by key. Its methods may be called concurrently; one that fails keeps nothing.
type Store interface {
	// Get returns a value, or false.
	Get(ctx context.Context, key string) ([]byte, bool)
	Put(ctx context.Context, key string, value []byte)
}

func (o Options) withDefaults() Options {
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.MaxBodies == 0 {
		o.MaxBodies = 16 << 20
	}
	if o.MaxNodes == 0 {
		o.MaxNodes = 12_000
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = 16
	}
	if o.MaxPlan == 0 {
		o.MaxPlan = 8 << 20
	}
	if o.Concurrent == 0 {
		o.Concurrent = 2
	}
	if o.Waiting == 0 {
		o.Waiting = 16
	}
	if o.BodyTime == 0 {
		o.BodyTime = 10 * time.Second
	}
	if o.Store == nil {
		o.Store = newMemory(64 << 20)
	}
	return o
}

type service struct {
	Options
	// places has an element for each request that compiles or waits, compiling for each that compiles.
	places, compiling chan struct{}
	// bodies is the size of the bodies of the requests under way, as far as they have arrived.
	bodies atomic.Int64
}

// Handler returns the service.
func Handler(o Options) http.Handler {
	o = o.withDefaults()
	if o.Memory > 0 {
		debug.SetMemoryLimit(o.Memory)
	}
	s := &service{Options: o, places: make(chan struct{}, o.Concurrent+o.Waiting), compiling: make(chan struct{}, o.Concurrent)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/plans", s.post)
	mux.HandleFunc("GET /v1/plans/{hash}", s.get)
	for path, methods := range map[string]string{"/v1/plans": "POST, OPTIONS", "/v1/plans/{hash}": "GET, HEAD, OPTIONS"} {
		mux.HandleFunc("OPTIONS "+path, func(w http.ResponseWriter, _ *http.Request) { preflight(w, methods) })
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", methods)
			refuse(w, &problem{Status: http.StatusMethodNotAllowed, Kind: "method", Detail: r.Method + " is not a method of " + r.URL.Path})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &problem{Status: http.StatusNotFound, Kind: "path", Detail: "there is no " + r.URL.Path + ": plans are at /v1/plans"})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "Location, ETag")
		h.Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})
}

// preflight answers a browser's question whether it may send JSON, or a condition; the answer is valid for a day.
func preflight(w http.ResponseWriter, methods string) {
	h := w.Header()
	h.Set("Allow", methods)
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", "Content-Type, If-None-Match")
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

const (
	planType = "application/octet-stream"
	forever  = "public, max-age=31536000, immutable"
)

func (s *service) get(w http.ResponseWriter, r *http.Request) {
	hash := r.PathValue("hash")
	var file []byte
	ok := isHash(hash) // a store need not expect other keys, such as paths
	if ok {
		file, ok = s.Store.Get(r.Context(), planKey(hash))
	}
	if !ok {
		refuse(w, &problem{Status: http.StatusNotFound, Kind: "missing", Detail: "there is no plan " + hash + " here: POST its graphs to /v1/plans"})
		return
	}
	w.Header().Set("Cache-Control", forever)
	writePlan(w, r, hash, file)
}

func (s *service) post(w http.ResponseWriter, r *http.Request) {
	body := &countedBody{ReadCloser: r.Body, s: s}
	defer body.release()
	r.Body = body
	q, err := s.read(w, r)
	if err != nil {
		refuse(w, problemOf(err))
		return
	}
	hash, file, err := s.planOf(r.Context(), q)
	if err != nil {
		refuse(w, problemOf(err))
		return
	}
	w.Header().Set("Location", "/v1/plans/"+hash)
	writePlan(w, r, hash, file)
}

func writePlan(w http.ResponseWriter, r *http.Request, hash string, file []byte) {
	h := w.Header()
	h.Set("ETag", `"`+hash+`"`)
	h.Set("Content-Type", planType)
	h.Set("Vary", "Accept-Encoding")
	if known := r.Header.Get("If-None-Match"); r.Method != http.MethodPost && (known == "*" || strings.Contains(known, `"`+hash+`"`)) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if len(file) > packedFrom && r.Method != http.MethodHead && accepts(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		h.Set("ETag", `W/"`+hash+`"`) // other bytes of the same plan
		writePacked(w, file)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(file)))
	_, _ = w.Write(file) // the client may be gone
}

// packedFrom is the size in bytes from which plans are sent packed: to a third, or less.
const packedFrom = 1400

// accepts reports whether a list of codings has one, and not with the weight 0.
func accepts(codings, name string) bool {
	for coding := range strings.SplitSeq(codings, ",") {
		of, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if of == name {
			q, err := strconv.ParseFloat(strings.TrimPrefix(weight, "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

func writePacked(w io.Writer, file []byte) {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return // the level is valid
	}
	_, _ = z.Write(file)
	_ = z.Close()
}

func planKey(hash string) string    { return "plan/" + hash }
func requestKey(hash string) string { return "request/" + hash }

// isHash reports whether a text is one that hashOf returns.
func isHash(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size && text == strings.ToLower(text)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// planOf returns the requested plan and its hash: a cached one, or one compiled now.
func (s *service) planOf(ctx context.Context, q *Request) (string, []byte, error) {
	entries, err := s.parse(q)
	if err != nil {
		return "", nil, err
	}
	key, err := keyOf(q, entries)
	if err != nil {
		return "", nil, err
	}
	if hash, file, ok := s.kept(ctx, key); ok {
		return hash, file, nil
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		return "", nil, errBusy
	}
	select {
	case s.compiling <- struct{}{}:
		defer func() { <-s.compiling }()
	case <-ctx.Done():
		return "", nil, errBusy
	}
	if hash, file, ok := s.kept(ctx, key); ok { // the same request was before this one
		return hash, file, nil
	}
	file, err := s.compile(q, entries)
	if err != nil {
		return "", nil, err
	}
	hash := hashOf(file)
	s.Store.Put(ctx, planKey(hash), file)
	s.Store.Put(ctx, requestKey(key), []byte(hash))
	return hash, file, nil
}

// kept returns the plan of a request that was compiled before, and its hash.
func (s *service) kept(ctx context.Context, key string) (string, []byte, bool) {
	hash, ok := s.Store.Get(ctx, requestKey(key))
	if !ok {
		return "", nil, false
	}
	file, ok := s.Store.Get(ctx, planKey(string(hash)))
	return string(hash), file, ok
}

// countedBody is a body that counts towards those of all requests under way.
type countedBody struct {
	io.ReadCloser
	s    *service
	size int64
}

// Read implements [io.Reader]. It fails with errFull if the bodies of all requests are too large.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size += int64(n)
	if b.s.bodies.Add(int64(n)) > b.s.MaxBodies {
		return n, errFull
	}
	return n, err
}

func (b *countedBody) release() { b.s.bodies.Add(-b.size) }

// read reads the body of a request.
func (s *service) read(w http.ResponseWriter, r *http.Request) (*Request, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, &problem{Status: http.StatusUnsupportedMediaType, Kind: "syntax", Detail: "the body is " + strconv.Quote(r.Header.Get("Content-Type")) + "; it must be application/json"}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		w.Header().Set("Accept-Encoding", "identity")
		return nil, &problem{Status: http.StatusUnsupportedMediaType, Kind: "syntax", Detail: "the body is encoded as " + strconv.Quote(coding) + "; it must be sent as it is"}
	}
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(s.BodyTime)) // of those that have deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.MaxBody))
	_ = connection.SetReadDeadline(time.Time{}) // or else the request would end while it is compiled
	if err != nil {
		var large *http.MaxBytesError
		switch {
		case errors.Is(err, errFull):
			return nil, errFull
		case errors.As(err, &large):
			return nil, tooLarge("the body has more than %d bytes", s.MaxBody)
		case errors.Is(err, os.ErrDeadlineExceeded):
			w.Header().Set("Connection", "close") // the rest of the body may come yet
			return nil, &problem{Status: http.StatusRequestTimeout, Kind: "timeout", Detail: "the body was not here after " + s.BodyTime.String()}
		}
		return nil, &problem{Status: http.StatusBadRequest, Kind: "syntax", Detail: "the body ends too soon: " + err.Error()}
	}
	return parseRequest(body)
}

// compile derives the entries, and compiles them.
func (s *service) compile(q *Request, entries []ir.Entry) ([]byte, error) {
	var total extent
	for i, e := range entries {
		g, err := q.Entries[i].derived(e.Graph, q.Symbols)
		if err != nil {
			return nil, err
		}
		entries[i].Graph = g
		if err := s.count(&total, g); err != nil {
			return nil, err
		}
	}
	m, err := ir.NewModule(q.Name, entries...)
	if err != nil {
		return nil, err
	}
	var devices []recipe.Device
	for i, name := range q.Targets {
		if slices.Contains(q.Targets[:i], name) {
			return nil, ir.Errorf(ir.ErrName, "target %q is given twice", name)
		}
		d, err := q.Limits.recipe().Target(name)
		if err != nil {
			return nil, err
		}
		devices = append(devices, d)
	}
	p, err := recipe.Compile(m, devices)
	if err != nil {
		return nil, err
	}
	file, err := plan.Encode(p)
	if err == nil && len(file) > s.MaxPlan {
		return nil, tooLarge("the plan has %d bytes; up to %d are returned", len(file), s.MaxPlan)
	}
	return file, err
}

// parse reads the graphs of a request.
func (s *service) parse(q *Request) ([]ir.Entry, error) {
	if len(q.Entries) == 0 {
		return nil, ir.Attrf("the module has no entries")
	}
	if n := len(q.Entries); n > s.MaxEntries {
		return nil, tooLarge("the module has %d entries; up to %d are compiled", n, s.MaxEntries)
	}
	var total extent
	var entries []ir.Entry
	for _, e := range q.Entries {
		g, err := ir.Parse(e.Text)
		if err != nil {
			return nil, err
		}
		if err := s.count(&total, g); err != nil {
			return nil, err
		}
		entries = append(entries, ir.Entry{Name: e.Name, Graph: g})
	}
	return entries, nil
}

// extent is the number of nodes of graphs and their subgraphs, and the size of the constants that attributes describe.
type extent struct{ nodes, constants int }

// count adds a graph to the extent of those before it. It fails if that is too large.
func (s *service) count(total *extent, g *ir.Graph) error {
	for _, n := range g.Nodes() {
		total.nodes++
		total.constants += ops.TableBytes(n)
		switch {
		case total.nodes > s.MaxNodes:
			return tooLarge("the graphs have more than %d nodes", s.MaxNodes)
		case total.constants > s.MaxPlan:
			return tooLarge("the constants of windows and filters take %d bytes or more; plans have up to %d", total.constants, s.MaxPlan)
		}
		for _, sub := range n.Subgraphs() {
			if err := s.count(total, sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyOf returns the key of a request in the store: that of its graphs as printed, not as written.
func keyOf(q *Request, entries []ir.Entry) (string, error) {
	printed := *q
	printed.Entries = make([]Entry, len(q.Entries))
	for i, e := range q.Entries {
		e.Text = entries[i].Graph.String()
		printed.Entries[i] = e
	}
	text, err := json.Marshal(printed)
	return hashOf(append(text, version()...)), err
}

// version returns the name of the compiler in keys.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var found []string
	for _, one := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if strings.HasPrefix(one.Path, "github.com/rlx-go/rlx") {
			found = append(found, one.Path+"@"+one.Version+one.Sum)
		}
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			found = append(found, setting.Value)
		}
	}
	return strings.Join(found, " ")
}
