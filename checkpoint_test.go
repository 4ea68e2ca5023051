package rlx_test

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

// checkpointed is the content that [checkpoint] writes.
var checkpointed map[string]rlx.Tensor

// checkpoint writes a checkpoint of the classifier after 4 steps, changed by
// spoil, and returns its name.
func checkpoint(t testing.TB, spoil func(map[string]rlx.Tensor)) string {
	t.Helper()
	if checkpointed == nil {
		tr := trainer(t, rlx.Training{Seed: 11})
		for range 4 {
			if err := tr.Step(ctx, examples()); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if checkpointed, err = tr.Program().Save(ctx); err != nil {
			t.Fatal(err)
		}
	}
	values := maps.Clone(checkpointed)
	if spoil != nil {
		spoil(values)
	}
	name := filepath.Join(t.TempDir(), "model.safetensors")
	if err := safetensors.WriteFile(name, values, nil); err != nil {
		t.Fatal(err)
	}
	return name
}

// saved returns everything that a trainer would save.
func saved(t testing.TB, tr *rlx.Trainer) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := tr.Save(ctx, &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestInvalidCheckpointKeepsTrainerState(t *testing.T) {
	count := func(name string, n int32) func(map[string]rlx.Tensor) {
		return func(v map[string]rlx.Tensor) { v[name] = rlx.Int32(n) }
	}
	tr := trainer(t, rlx.Training{Seed: 12})
	steps(t, tr, 2)
	before := saved(t, tr)
	for name, c := range map[string]struct {
		spoil func(map[string]rlx.Tensor)
		kind  error
		says  string
	}{
		"empty":             {func(v map[string]rlx.Tensor) { clear(v) }, ir.ErrName, "b1"},
		"a weight missing":  {func(v map[string]rlx.Tensor) { delete(v, "w2") }, ir.ErrName, `missing ["w2"]`},
		"a weight too many": {func(v map[string]rlx.Tensor) { v["w3"] = rlx.Float32(1) }, ir.ErrName, `unknown ["w3"]`},
		"another model": {func(v map[string]rlx.Tensor) {
			clear(v)
			v["conv"] = rlx.Float32(1)
		}, ir.ErrName, `and 7 more; unknown ["conv"]`},
		"another shape":        {func(v map[string]rlx.Tensor) { v["w1"] = rlx.Zeros(ir.F32, 16, 4) }, ir.ErrShape, "w1"},
		"another type":         {func(v map[string]rlx.Tensor) { v["w1"] = rlx.Zeros(ir.I32, 4, 16) }, ir.ErrDType, "w1"},
		"negative count":       {count(optim.HistoryCount, -1), ir.ErrIndex, optim.HistoryCount},
		"least count":          {count(optim.HistoryCount, math.MinInt32), ir.ErrIndex, optim.HistoryCount},
		"count that overflows": {count(optim.HistoryCount, math.MaxInt32-2), ir.ErrIndex, optim.HistoryCount},
		"negative steps":       {count(optim.StepState, -7), ir.ErrIndex, optim.StepState},
	} {
		err := tr.LoadFile(ctx, checkpoint(t, c.spoil))
		var typed *rlx.CheckpointError
		if !errors.As(err, &typed) || !errors.Is(err, rlx.ErrCheckpoint) || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %s", name, err, c.kind, c.says)
		}
		if tr.Steps() != 2 || !bytes.Equal(saved(t, tr), before) {
			t.Fatalf("%s: the trainer was changed", name)
		}
	}
	if err := tr.LoadFile(ctx, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	steps(t, tr, 1)
	if n := len(losses(t, tr)); n != 3 || tr.Steps() != 3 {
		t.Errorf("%d losses of %d steps, want 3", n, tr.Steps())
	}
}

// A count can also come from the states, which are the user's to set.
func TestHugeStateCountsAreErrors(t *testing.T) {
	for _, n := range []int32{-1, math.MinInt32} {
		tr := trainer(t, rlx.Training{})
		steps(t, tr, 1)
		if err := tr.Program().Set(ctx, optim.HistoryCount, rlx.Int32(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Losses(ctx); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("count %d: %v", n, err)
		}
		if _, err := rlx.NewTrainer(ctx, tr.Program(), "loss"); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("count %d: a new trainer: %v", n, err)
		}
	}
}

func TestCheckpointsAreReplacedAtomically(t *testing.T) {
	name := filepath.Join(t.TempDir(), "model.safetensors")
	tr := trainer(t, rlx.Training{Seed: 13})
	steps(t, tr, 3)
	if err := tr.SaveFile(ctx, name); err != nil {
		t.Fatal(err)
	}
	other := trainer(t, rlx.Training{})
	if err := other.LoadFile(ctx, name); err != nil || other.Steps() != 3 {
		t.Errorf("%d steps, %v", other.Steps(), err)
	}
	if !bytes.Equal(saved(t, tr), saved(t, other)) {
		t.Error("what was loaded is not what was saved")
	}
	if err := tr.Program().Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tr.SaveFile(ctx, name); !errors.Is(err, native.ErrClosed) {
		t.Errorf("saving a closed program: %v", err)
	}
	if err := other.LoadFile(ctx, name); err != nil {
		t.Errorf("a save that failed spoilt the file: %v", err)
	}
}

// A part of a checkpoint, as when a network begins with the weights of another,
// is loaded by way of the program.
func TestProgramLoadsSubsetOfValues(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	values, _, err := safetensors.ReadFile(checkpoint(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	part := map[string]rlx.Tensor{"w1": values["w1"]}
	if err := tr.Program().Load(ctx, part); !errors.Is(err, rlx.ErrCheckpoint) {
		t.Errorf("a part of the parameters: %v", err)
	}
	if err := tr.Program().LoadWith(ctx, part, rlx.LoadOptions{AllowMissing: true}); err != nil {
		t.Fatal(err)
	}
	got, err := tr.Program().Get(ctx, "w1")
	if err != nil || !slices.Equal(got.Data, values["w1"].Data) {
		t.Errorf("w1 was not loaded: %v", err)
	}
}

// Weights that a file lacks, or that no program has, are named, unless they are let pass.
func TestLoadNamesMissingValues(t *testing.T) {
	s := must(rlx.Open("cpu"))(t)
	g := must(ir.Build("infer", func(b *ir.Builder) {
		b.Output("y", ops.Add(b, b.Param("w", ir.F32, ir.N(2)), b.Param("b", ir.F32, ir.N(2))))
	}))(t)
	p := must(s.Compile(ctx, must(ir.NewModule("infer", ir.Entry{Name: "infer", Graph: g}))(t)))(t)
	defer p.Close(ctx)
	pair := rlx.Float32s([]float32{1, 2}, 2)
	for _, c := range []struct {
		values           map[string]rlx.Tensor
		missing, unknown []string
		allow            rlx.LoadOptions
	}{
		{map[string]rlx.Tensor{"w": pair}, []string{"b"}, nil, rlx.LoadOptions{AllowMissing: true}},
		{map[string]rlx.Tensor{"w": pair, "b": pair, "rng/step": pair}, nil, []string{"rng/step"}, rlx.LoadOptions{AllowExtra: true}},
		{map[string]rlx.Tensor{"bias": pair}, []string{"b", "w"}, []string{"bias"}, rlx.LoadOptions{AllowMissing: true, AllowExtra: true}},
	} {
		var e *rlx.CheckpointError
		if err := p.Load(ctx, c.values); !errors.As(err, &e) || !slices.Equal(e.Missing, c.missing) || !slices.Equal(e.Unknown, c.unknown) {
			t.Errorf("loading %v: %v", slices.Sorted(maps.Keys(c.values)), err)
		}
		if err := p.LoadWith(ctx, c.values, c.allow); err != nil {
			t.Errorf("with %+v: %v", c.allow, err)
		}
	}
}

// The values that a trainer gives a program for inference have no counters.
func TestParamsLoadFromWeightsOnlyFile(t *testing.T) {
	loss := must(ir.Build("loss", func(b *ir.Builder) {
		step := b.State("rng/step", ir.U32)
		key := ops.FoldIn(b, ops.Key(b, 3), step)
		w := ops.Dropout(b, b.Param("w", ir.F32, ir.N(4)), key, 0.5)
		b.Output("loss", ops.ReduceSum(b, ops.Square(b, w)))
		b.SetState("rng/step", ops.Add(b, step, ops.OnesLike(b, step)))
	}))(t)
	s := must(rlx.Open("cpu"))(t)
	tr := must(s.Train(ctx, loss, rlx.Training{}))(t)
	defer tr.Program().Close(ctx)
	infer := must(ir.Build("infer", func(b *ir.Builder) { b.Output("y", ops.Neg(b, b.Param("w", ir.F32, ir.N(4)))) }))(t)
	p := must(s.Compile(ctx, must(ir.NewModule("infer", ir.Entry{Name: "infer", Graph: infer}))(t)))(t)
	defer p.Close(ctx)
	if err := p.Load(ctx, must(tr.Params(ctx))(t)); err != nil {
		t.Error(err)
	}
}

// FuzzLoad reads files as [rlx.Trainer.Load] does, but runs nothing on the device: its threads
// make coverage differ from run to run, which holds the fuzzer up at each input.
func FuzzLoad(f *testing.F) {
	whole, err := os.ReadFile(checkpoint(f, nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for _, n := range []int32{-1, 1 << 30, math.MaxInt32} {
		hostile, err := os.ReadFile(checkpoint(f, func(v map[string]rlx.Tensor) { v[optim.HistoryCount] = rlx.Int32(n) }))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(hostile)
	}
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, '{', '}'})
	tr := trainer(f, rlx.Training{})
	f.Fuzz(func(t *testing.T, data []byte) {
		err := rlx.ReadCheckpoint(tr, bytes.NewReader(data))
		if err != nil && !errors.Is(err, safetensors.ErrDamaged) && !errors.Is(err, rlx.ErrCheckpoint) {
			t.Errorf("an error of no kind: %v", err)
		}
	})
}
