package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
)

// server is one that listens on this machine.
type server struct {
	*httptest.Server
	program *rlx.Program
}

// serve starts the server on the CPU.
func serve(t testing.TB) server {
	t.Helper()
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	program := load(t.Context(), session)
	s := httptest.NewServer(handler(program))
	if t, ok := s.Client().Transport.(*http.Transport); ok {
		t.MaxIdleConnsPerHost = 64 // a connection for each client
	}
	t.Cleanup(func() {
		s.Close()
		program.Close(context.Background())
	})
	return server{s, program}
}

// text returns tokens of a length, at most 1000.
func text(length, seed int) []int32 {
	out := make([]int32, length)
	for i := range out {
		out[i] = int32((i*31 + seed*17) % words)
	}
	return out
}

// ask classifies a text by HTTP.
func ask(s server, tokens []int32) ([]float32, error) {
	body, _ := json.Marshal(tokens)
	r, err := s.Client().Post(s.URL, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", r.Status)
	}
	var scores []float32
	return scores, json.NewDecoder(r.Body).Decode(&scores)
}

// putLoad puts requests of many lengths on a server from several clients, and returns how long each took.
func putLoad(t testing.TB, s server, clients, requests int, want map[int][]float32) []time.Duration {
	t.Helper()
	var all sync.WaitGroup
	times := make([][]time.Duration, clients)
	for c := range clients {
		all.Go(func() {
			for i := range requests {
				length := 1 + (c*13+i*7)%60
				began := time.Now()
				got, err := ask(s, text(length, 1))
				times[c] = append(times[c], time.Since(began))
				if err != nil {
					t.Error(err)
					return
				}
				if w := want[length]; w != nil {
					for k := range w {
						if math.Abs(float64(got[k]-w[k])) > 1e-5 {
							t.Errorf("%d tokens: %v, want %v", length, got, w)
							return
						}
					}
				}
			}
		})
	}
	all.Wait()
	out := slices.Concat(times...)
	slices.Sort(out)
	return out
}

// TestServerUnderLoad compares answers to joined requests with those to single ones, and has neither
// memory nor goroutines grow once all sizes have come.
func TestServerUnderLoad(t *testing.T) {
	s := serve(t)
	want := map[int][]float32{}
	for length := 1; length <= 60; length++ {
		scores, err := ask(s, text(length, 1))
		if err != nil {
			t.Fatal(err)
		}
		want[length] = scores
	}
	putLoad(t, s, 8, 60, want)
	memory, goroutines := inUse(s)
	putLoad(t, s, 8, 200, want)
	after, more := inUse(s)
	if after > memory+memory/2+8<<20 {
		t.Errorf("memory grows from %d to %d bytes", memory, after)
	}
	if more > goroutines+4 {
		t.Errorf("goroutines grow from %d to %d", goroutines, more)
	}
	for _, bad := range [][]int32{{}, text(maxTokens+1, 1), {words}} {
		if _, err := ask(s, bad); err == nil {
			t.Errorf("%d tokens that are wrong have an answer", len(bad))
		}
	}
}

// inUse returns the bytes of the heap and the number of goroutines, without idle connections.
func inUse(s server) (memory uint64, goroutines int) {
	s.Client().CloseIdleConnections()
	time.Sleep(50 * time.Millisecond)
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}

// BenchmarkServer prints the median and the slowest hundredth of the times of requests from 16 clients,
// once all sizes are compiled.
func BenchmarkServer(b *testing.B) {
	s := serve(b)
	for batch := 1; batch <= maxBatch; batch *= 2 {
		for seq := 1; seq <= 64; seq *= 2 {
			if err := s.program.Prepare(b.Context(), "classify", map[string]int{"batch": batch, "seq": seq}); err != nil {
				b.Fatal(err)
			}
		}
	}
	putLoad(b, s, 16, 20, nil)
	for b.Loop() {
		times := putLoad(b, s, 16, 100, nil)
		b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
	}
}
