package models_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/demo/models"
	"github.com/rlx-go/rlx/ir"
)

// writer is a GPT with widely spread random weights, so that its output depends on every token
// before.
type writer struct {
	t       *testing.T
	model   models.GPT
	program *rlx.Program
}

func newWriter(t *testing.T) writer {
	t.Helper()
	m := models.GPT{Vocab: 11, Context: 6, Width: 16, Heads: 2, Blocks: 1, Batch: 2}
	module, err := m.Module("test")
	if err != nil {
		t.Fatal(err)
	}
	draw, err := m.DrawGraph()
	if err != nil {
		t.Fatal(err)
	}
	if module, err = ir.NewModule("test", append(module.Entries, ir.Entry{Name: "draw", Graph: draw})...); err != nil {
		t.Fatal(err)
	}
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	program, err := session.Compile(context.Background(), module)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close(context.Background()) })
	w := writer{t, m, program}
	w.call("init", rlx.Inputs{models.Seed: rlx.Uint32(1)})
	for _, name := range []string{"table", "positions", "block0/qkv", "block0/out", "block0/up", "block0/down"} {
		x, err := program.Get(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		values, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for i := range values {
			values[i] *= 50 // from a deviation of 0.02 to 1
		}
		if err := program.Set(context.Background(), name, x); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w writer) call(entry string, in rlx.Inputs) rlx.Outputs {
	w.t.Helper()
	out, err := w.program.Call(context.Background(), entry, in)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// written returns the text on the device.
func (w writer) written() []int32 {
	w.t.Helper()
	var parts [2][]int32
	for i, name := range []string{models.Written, models.WrittenLength} {
		x, err := w.program.Get(context.Background(), name)
		if err != nil {
			w.t.Fatal(err)
		}
		if parts[i], err = x.Int32s(); err != nil {
			w.t.Fatal(err)
		}
	}
	return parts[0][:parts[1][0]]
}

// of returns the inputs that describe a text.
func (w writer) of(text []int32) rlx.Inputs {
	tokens := make([]int32, w.model.Context)
	copy(tokens, text)
	return rlx.Inputs{
		models.Tokens: rlx.Int32s(tokens, 1, w.model.Context),
		models.Length: rlx.Int32(int32(len(text))),
		models.Seed:   rlx.Uint32(1),
	}
}

// With greedy sampling the device writes the same text as sampling tokens one by one, before the
// context is full and after.
func TestGeneratedTextIsStreamed(t *testing.T) {
	w := newWriter(t)
	cold := rlx.Float32(1e-4)
	text := []int32{4, 9}
	w.call("prompt", w.of(text))
	seen := map[int32]bool{}
	for range 3 * w.model.Context {
		in := w.of(text)
		in[models.Temperature] = cold
		drawn, err := w.call("draw", in)[models.Drawn].Int32s()
		if err != nil {
			t.Fatal(err)
		}
		seen[drawn[0]] = true
		text = append(text, drawn[0])
		text = text[max(0, len(text)-w.model.Context):]
		w.call("write", rlx.Inputs{models.Temperature: cold})
		if got := w.written(); !slices.Equal(got, text) {
			t.Fatalf("written %v, drawn %v", got, text)
		}
	}
	if len(seen) < 3 {
		t.Errorf("only %v was written: that shows little", seen)
	}
}

// Each token is drawn anew, and the seed determines them.
func TestSeedDeterminesGeneratedText(t *testing.T) {
	w := newWriter(t)
	write := func(seed uint32) []int32 {
		in := w.of([]int32{1})
		in[models.Seed] = rlx.Uint32(seed)
		w.call("prompt", in)
		for range w.model.Context - 1 {
			w.call("write", rlx.Inputs{models.Temperature: rlx.Float32(1e4)})
		}
		return w.written()
	}
	first, again, other := write(1), write(1), write(2)
	if !slices.Equal(first, again) {
		t.Errorf("one seed gives %v, then %v", first, again)
	}
	if slices.Equal(first, other) {
		t.Errorf("two seeds give %v", first)
	}
	if rest := first[1:]; len(slices.Compact(slices.Clone(rest))) < 3 {
		t.Errorf("at a high temperature it writes %v", rest)
	}
}
