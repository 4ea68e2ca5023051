package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/format/remote"
)

// server serves data with ranges and counts the requests and the bytes it sends.
type server struct {
	data     []byte
	tag      string
	requests int
	sent     int
}

// ServeHTTP serves the data.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests++
	if s.tag != "" {
		w.Header().Set("ETag", s.tag)
	}
	c := &counted{ResponseWriter: w}
	http.ServeContent(c, r, "f", time.Time{}, bytes.NewReader(s.data))
	s.sent += c.n
}

type counted struct {
	http.ResponseWriter
	n int
}

// Write counts bytes.
func (c *counted) Write(p []byte) (int, error) {
	c.n += len(p)
	return c.ResponseWriter.Write(p)
}

func open(t *testing.T, h http.Handler) (*remote.File, error) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return remote.Open(t.Context(), s.URL, s.Client())
}

// A tensor in the middle of a large file takes a request for the header and one for itself.
func TestOnlyWhatIsReadIsFetched(t *testing.T) {
	var file bytes.Buffer
	large := gguf.Entry{Name: "large", Type: gguf.I8, Dims: []int{8 << 20}, Write: func(w io.Writer) error {
		_, err := w.Write(make([]byte, 8<<20))
		return err
	}}
	wanted := bytes.Repeat([]byte{1, 2, 3, 4}, 1<<18)
	entry := gguf.Entry{Name: "wanted", Type: gguf.I8, Dims: []int{1 << 20}, Write: func(w io.Writer) error {
		_, err := w.Write(wanted)
		return err
	}}
	if err := gguf.Write(&file, nil, []gguf.Entry{large, entry}); err != nil {
		t.Fatal(err)
	}
	s := &server{data: file.Bytes(), tag: `"1"`}
	r, err := open(t, s)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenAt(r, r.Size())
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Bytes("wanted")
	if err != nil || !bytes.Equal(got, wanted) {
		t.Fatalf("got %d bytes, %v", len(got), err)
	}
	if s.requests != 2 || s.sent > 1<<20+1<<19 {
		t.Errorf("%d requests, %d bytes", s.requests, s.sent)
	}
	s.tag = `"2"`
	if _, err := f.Bytes("large"); !errors.Is(err, remote.ErrRanges) {
		t.Errorf("the file has changed: %v", err)
	}
}

func TestReadAt(t *testing.T) {
	data := make([]byte, 1<<20+123)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	r, err := open(t, &server{data: data})
	if err != nil {
		t.Fatal(err)
	}
	local := bytes.NewReader(data)
	for _, c := range [][2]int{{0, 10}, {262140, 10}, {500000, 300000}, {len(data) - 5, 10}, {len(data), 1}, {len(data) - 5, 5}} {
		got, want := make([]byte, c[1]), make([]byte, c[1])
		n, err := r.ReadAt(got, int64(c[0]))
		m, wantErr := local.ReadAt(want, int64(c[0]))
		if n != m || !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%v: %d, %v; want %d, %v", c, n, err, m, wantErr)
		}
	}
}

// Servers that send whole files, other bytes or errors are refused.
func TestServersThatSendOtherBytes(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"whole file": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "abc") },
		"not found":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"lies": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 5-9/4611686018427387903")
			w.WriteHeader(http.StatusPartialContent)
		},
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-4611686018427387902/4611686018427387903")
			w.WriteHeader(http.StatusPartialContent)
		},
	} {
		if _, err := open(t, h); !errors.Is(err, remote.ErrRanges) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadsEndWithTheContext(t *testing.T) {
	s := httptest.NewServer(&server{data: make([]byte, 1<<20)})
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := remote.Open(ctx, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := r.ReadAt(make([]byte, 1<<19), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
