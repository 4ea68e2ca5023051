package rlx_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// batcherProgram has entries of texts: "look" looks up words, and sums those within the length of a
// text; "mean" mixes the rows of a batch; "closed" has no open sizes.
func batcherProgram(t *testing.T) *rlx.Program {
	t.Helper()
	batch, seq := ir.Sym("batch"), ir.Sym("seq")
	look := must(ir.Build("look", func(b *ir.Builder) {
		words, lengths := b.Input("words", ir.I32, seq, batch), b.Input("lengths", ir.I32, batch)
		row := ops.Embedding(b, ops.Iota(b, ir.F32, 0, ir.Dims(10, 1)...), words)
		x := ops.Mul(b, row, row)
		within := ops.Lt(b, ops.Iota(b, ir.I32, 0, seq, batch), lengths)
		b.Output("squares", x)
		b.Output("sums", ops.ReduceSum(b, ops.Mul(b, x, ops.ExpandDims(b, ops.Convert(b, within, ir.F32), 2)), 0))
	}))(t)
	mean := must(ir.Build("mean", func(b *ir.Builder) {
		b.Output("mean", ops.Mean(b, b.Input("x", ir.F32, batch), 0))
	}))(t)
	count := must(ir.Build("count", func(b *ir.Builder) {
		n := b.State("n", ir.F32)
		b.SetState("n", ops.Add(b, n, ops.Const(b, ir.F32, 1)))
		b.Output("y", ops.Neg(b, b.Input("x", ir.F32, batch)))
	}))(t)
	closed := must(ir.Build("closed", func(b *ir.Builder) { b.Output("y", ops.Neg(b, b.Input("x", ir.F32))) }))(t)
	m := must(ir.NewModule("m", ir.Entry{Name: "look", Graph: look}, ir.Entry{Name: "mean", Graph: mean},
		ir.Entry{Name: "count", Graph: count}, ir.Entry{Name: "closed", Graph: closed}))(t)
	program := must(must(rlx.Open("cpu"))(t).CompileWith(t.Context(), m, rlx.CompileOptions{Sizes: map[string]rlx.Size{"batch": {Max: 8}}}))(t)
	t.Cleanup(func() { program.Close(context.Background()) })
	return program
}

// text returns the inputs of a text, a column of words, and its squares and their sum.
func text(words ...int32) (in rlx.Inputs, squares []float32, sum float32) {
	for _, w := range words {
		squares = append(squares, float32(w*w))
		sum += float32(w * w)
	}
	return rlx.Inputs{"words": rlx.Int32s(words, len(words), 1), "lengths": rlx.Int32s([]int32{int32(len(words))})}, squares, sum
}

func TestBatcherJoinsCalls(t *testing.T) {
	program := batcherProgram(t)
	for _, pad := range [][]string{nil, {"seq"}} {
		batcher := must(program.Batcher("look", rlx.BatcherOptions{Max: 5, Wait: time.Millisecond, Pad: pad}))(t)
		var all sync.WaitGroup
		for i := range int32(40) {
			all.Go(func() {
				in, squares, sum := text([]int32{i % 10, (i + 3) % 10, 7, i % 4}[:1+i%4]...)
				out, err := batcher.Call(t.Context(), in)
				if err != nil {
					t.Error(err)
					return
				}
				if got, _ := out["squares"].Float32s(); !slices.Equal(got, squares) {
					t.Errorf("text %d: squares %v, want %v", i, got, squares)
				}
				if got, _ := out["sums"].Float32s(); !slices.Equal(got, []float32{sum}) {
					t.Errorf("text %d: sum %v, want %v", i, got, sum)
				}
			})
		}
		all.Wait()
	}
}

// TestBatcherCallsFailAlone joins a call of a word that the table lacks with one that has it.
func TestBatcherCallsFailAlone(t *testing.T) {
	batcher := must(batcherProgram(t).Batcher("look", rlx.BatcherOptions{Wait: 20 * time.Millisecond, Pad: []string{"seq"}}))(t)
	var all sync.WaitGroup
	all.Go(func() {
		in, _, _ := text(3, 10)
		if _, err := batcher.Call(t.Context(), in); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("word 10: %v, want an error of kind ErrIndex", err)
		}
	})
	in, _, sum := text(1, 2, 3)
	out, err := batcher.Call(t.Context(), in)
	if got, _ := out["sums"].Float32s(); err != nil || !slices.Equal(got, []float32{sum}) {
		t.Errorf("a call beside a failed one: %v, %v, want %v", got, err, sum)
	}
	all.Wait()
	if _, err := batcher.Call(t.Context(), rlx.Inputs{}); !errors.Is(err, ir.ErrName) {
		t.Errorf("no inputs: %v, want an error of kind ErrName", err)
	}
	if _, err := batcher.Call(t.Context(), rlx.Inputs{"words": rlx.Int32s(make([]int32, 9), 1, 9), "lengths": rlx.Int32s(make([]int32, 9))}); !errors.Is(err, ir.ErrShape) {
		t.Errorf("nine rows: %v, want an error of kind ErrShape", err)
	}
}

func TestBatcherStopsWaiting(t *testing.T) {
	batcher := must(batcherProgram(t).Batcher("look", rlx.BatcherOptions{Wait: time.Minute}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	in, _, _ := text(1)
	if _, err := batcher.Call(ctx, in); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error", err)
	}
}

func TestBatcherRefusals(t *testing.T) {
	program := batcherProgram(t)
	for _, c := range []struct {
		entry   string
		options rlx.BatcherOptions
		kind    error
	}{
		{"none", rlx.BatcherOptions{}, ir.ErrName},
		{"closed", rlx.BatcherOptions{}, ir.ErrSymbol},
		{"mean", rlx.BatcherOptions{}, ir.ErrSymbol},
		{"count", rlx.BatcherOptions{}, ir.ErrUnsupported},
		{"look", rlx.BatcherOptions{Size: "rows"}, ir.ErrSymbol},
		{"look", rlx.BatcherOptions{Size: "seq"}, ir.ErrSymbol}, // lengths have no axis seq
		{"look", rlx.BatcherOptions{Pad: []string{"rows"}}, ir.ErrSymbol},
		{"look", rlx.BatcherOptions{Pad: []string{"batch"}}, ir.ErrAttr},
		{"look", rlx.BatcherOptions{Max: -1}, ir.ErrAttr},
		{"look", rlx.BatcherOptions{Wait: -1}, ir.ErrAttr},
	} {
		if batcher, err := program.Batcher(c.entry, c.options); !errors.Is(err, c.kind) || batcher != nil {
			t.Errorf("entry %q, options %+v: %v, want an error of kind %v", c.entry, c.options, err, c.kind)
		}
	}
}
