package lm_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
)

// TestSampleAgreesWithNumPy compares tokens and their probabilities with testdata/sampling.py, without and
// with a mask and biases.
func TestSampleAgreesWithNumPy(t *testing.T) {
	const vocabulary = 320
	var file struct {
		Cases [][lm.SamplingFields]float64
		Want  [][2]float64
	}
	data, err := os.ReadFile("testdata/sampling.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	rows, words := len(file.Cases), vocabulary/32
	logits, by := make([]float32, rows*vocabulary), []float32{}
	seen, counts, allowed := make([]int32, rows*vocabulary), make([]int32, rows*vocabulary), make([]uint32, rows*words)
	var biased []int32
	var biases []float32
	for r, c := range file.Cases {
		s := lm.Sampling{Temperature: c[0], TopK: int(c[1]), TopP: c[2], MinP: c[3], Repetition: c[4], Presence: c[5], Frequency: c[6]}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		row := s.Row(c[7])
		by = append(by, row[:]...)
		biased, biases = append(biased, int32(r*31%vocabulary), int32((r*17+3)%vocabulary), -1), append(biases, 4, -100, 1000)
		for i := range vocabulary {
			at := r*vocabulary + i
			logits[at] = float32((i*73+11*r)%331)/331*12 - 6
			if i%7 == r%7 {
				seen[at] = 1
			}
			if i%5 == 0 {
				counts[at] = int32(i % 3)
			}
			if (i*13+r)%10 != 0 {
				allowed[r*words+i/32] |= 1 << (i % 32)
			}
		}
	}
	in := rlx.Inputs{
		"logits": rlx.Float32s(logits, rows, vocabulary), "by": rlx.Float32s(by, rows, lm.SamplingFields),
		"seen": rlx.Int32s(seen, rows, vocabulary), "counts": rlx.Int32s(counts, rows, vocabulary), "allowed": rlx.Uint32s(allowed, rows, words),
		"biased": rlx.Int32s(biased, rows, 3), "biases": rlx.Float32s(biases, rows, 3),
	}
	for k, masked := range []bool{false, true} {
		g, err := ir.Build("sample", func(b *ir.Builder) {
			input := func(name string) ir.Value { return b.Input(name, in[name].DType, ir.Dims(in[name].Dims...)...) }
			o := lm.SampleOptions{Seen: input("seen"), Counts: input("counts")}
			if masked {
				o.Allowed, o.BiasTokens, o.Biases = input("allowed"), input("biased"), input("biases")
			}
			token, p := lm.Sample(b, input("logits"), input("by"), o)
			b.Output("token", token)
			b.Output("p", p)
		})
		if err != nil {
			t.Fatal(err)
		}
		given := rlx.Inputs{}
		for _, p := range g.Ports() {
			given[p.Name] = in[p.Name]
		}
		out := call(t, g, given)
		tokens, _ := out["token"].Int32s()
		p, _ := out["p"].Float32s()
		for r := range rows {
			if want := file.Want[k*rows+r]; tokens[r] != int32(want[0]) || !(math.Abs(float64(p[r])-want[1]) < 1e-5) {
				t.Errorf("masked %t, row %d: token %d by %v, want %v", masked, r, tokens[r], p[r], want)
			}
		}
	}
}

// call runs a graph on the CPU.
func call(t *testing.T, g *ir.Graph, in rlx.Inputs) rlx.Outputs {
	t.Helper()
	ctx := context.Background()
	s, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	p, err := s.Compile(ctx, &ir.Module{Name: "m", Entries: []ir.Entry{{Name: "f", Graph: g}}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Call(ctx, "f", in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSamplingRefusesOptionsOutOfRange(t *testing.T) {
	for _, s := range []lm.Sampling{
		{Temperature: -1},
		{Temperature: math.NaN()},
		{TopK: -1},
		{TopP: 1.5},
		{MinP: -0.1},
		{Repetition: -1},
		{Presence: math.Inf(1)},
		{Frequency: math.NaN()},
	} {
		if err := s.Check(); !errors.Is(err, lm.ErrSampling) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	_, err := ir.Build("sample", func(b *ir.Builder) {
		lm.Sample(b, b.Input("x", ir.F32, ir.Dims(2, 5)...), b.Input("by", ir.F32, ir.Dims(2, 7)...), lm.SampleOptions{})
	})
	if !errors.Is(err, ir.ErrShape) {
		t.Error(err)
	}
}
