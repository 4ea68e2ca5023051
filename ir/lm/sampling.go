package lm

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Sampling has the options of how the next token is chosen from the logits of a sequence. The
// zero value takes the most likely one.
type Sampling struct {
	// Temperature divides the logits; 0 takes the most likely token.
	Temperature float64
	// TopK keeps the tokens with the TopK greatest logits; 0 keeps all.
	TopK int
	// TopP keeps the fewest tokens whose probabilities sum to TopP, in (0, 1]; 0 means 1, which keeps all
	// (Holtzman et al., The Curious Case of Neural Text Degeneration).
	TopP float64
	// MinP, in [0, 1], keeps the tokens with a probability of at least MinP times the largest one.
	MinP float64
	// Repetition, if not 0, divides the positive logits of tokens in the sequence, prompt included,
	// and multiplies the negative ones (Keskar et al., CTRL). It is positive.
	Repetition float64
	// Presence is subtracted once from the logit of a token that was generated, Frequency once for
	// each time that it was.
	Presence, Frequency float64
}

// ErrSampling is the kind of the errors for options of sampling out of range.
var ErrSampling = errors.New("bad sampling options")

// SamplingError is the error for an option out of range. It is of kind [ErrSampling].
type SamplingError struct {
	// Option is the field of [Sampling], Value its value, and Want its range, such as "not negative".
	Option string
	Value  float64
	Want   string
}

func (e *SamplingError) Error() string {
	return fmt.Sprintf("%v: %s is %v: it must be %s", ErrSampling, e.Option, e.Value, e.Want)
}

// Unwrap returns [ErrSampling].
func (e *SamplingError) Unwrap() error { return ErrSampling }

// Check returns nil if the options are in range, and a [*SamplingError] otherwise.
func (s Sampling) Check() error {
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	for _, f := range []struct {
		name string
		x    float64
		ok   bool
		want string
	}{
		{"Temperature", s.Temperature, finite(s.Temperature) && s.Temperature >= 0, "finite and not negative"},
		{"TopK", float64(s.TopK), s.TopK >= 0, "not negative"},
		{"TopP", s.TopP, s.TopP >= 0 && s.TopP <= 1, "in [0, 1]"},
		{"MinP", s.MinP, s.MinP >= 0 && s.MinP <= 1, "in [0, 1]"},
		{"Repetition", s.Repetition, finite(s.Repetition) && s.Repetition >= 0, "finite and not negative"},
		{"Presence", s.Presence, finite(s.Presence), "finite"},
		{"Frequency", s.Frequency, finite(s.Frequency), "finite"},
	} {
		if !f.ok {
			return &SamplingError{f.name, f.x, f.want}
		}
	}
	return nil
}

// SamplingFields is the number of columns of the input of [Sample] that holds options.
const SamplingFields = 8

// Row returns the options as a row for [Sample], with a random number in [0, 1) that selects the
// token.
func (s Sampling) Row(random float64) [SamplingFields]float32 {
	topP, repetition := s.TopP, s.Repetition
	if topP == 0 {
		topP = 1
	}
	if repetition == 0 {
		repetition = 1
	}
	random = min(max(random, 0), 1-1./(1<<24)) // still below 1 as f32
	return [SamplingFields]float32{
		float32(s.Temperature), float32(s.TopK), float32(topP), float32(s.MinP), float32(repetition), float32(s.Presence), float32(s.Frequency), float32(random),
	}
}

// SampleOptions are the options of [Sample].
type SampleOptions struct {
	// Seen and Counts, i32[rows, vocabulary], hold whether a token is in the sequence, and how
	// often it was generated. The zero Value disables the penalties.
	Seen, Counts ir.Value
	// Allowed, u32[rows, ⌈vocabulary/32⌉], has a bit for each token, from the least significant bit
	// of the first word; a token whose bit is 0 is not chosen. The zero Value allows all.
	Allowed ir.Value
	// BiasTokens, i32[rows, n], are tokens, and Biases, f32[rows, n], numbers added to their
	// logits. Tokens outside the vocabulary are ignored. The zero Value adds nothing.
	BiasTokens, Biases ir.Value
}

// maxCandidates bounds the tokens among which top-k, top-p and min-p choose: a whole vocabulary is long
// to sort, and a token beyond has a negligible chance.
const maxCandidates = 256

// Sample returns a token for each row of logits, [rows, vocabulary]: i32[rows], and the logarithm of its
// probability by the logits alone, f32[rows]. by, f32[rows, SamplingFields], holds [Sampling.Row] of
// each row, so that rows may differ and options change without compiling. The order is that of Hugging
// Face: penalties, biases, mask, temperature, top-k, top-p, min-p; top-k, top-p and min-p keep at most
// the 256 tokens with the greatest logits, and ties of the last one kept.
func Sample(b *ir.Builder, logits, by ir.Value, o SampleOptions) (token, logProbability ir.Value) {
	const op ir.Op = "lm.sample"
	if !b.Require(op, "logits", logits.Valid()) || !b.Require(op, "by", by.Valid()) {
		return ir.Value{}, ir.Value{}
	}
	if logits.Rank() != 2 || by.DType() != ir.F32 || by.Rank() != 2 || by.Dim(0) != logits.Dim(0) || !by.Dim(1).Is(SamplingFields) {
		b.Failf(op, []ir.Value{logits, by}, ir.Shapef("logits is %s and by %s: they must be [rows, vocabulary] and f32[rows, %d]", logits.Type(), by.Type(), SamplingFields))
		return ir.Value{}, ir.Value{}
	}
	s := &sampler{b, by}
	raw := ops.Convert(b, logits, ir.F32)
	x := s.allowed(s.biased(s.penalised(raw, o), o), o)
	greedy := ops.ArgMax(b, x, -1)
	random := ops.Gt(b, s.field(0), s.number(0))
	token = ops.Cond(b, ops.Any(b, random), []ir.Value{x, by, greedy},
		func(b *ir.Builder, in []ir.Value) []ir.Value {
			s := &sampler{b, in[1]}
			return []ir.Value{s.draw(in[0], in[2])}
		},
		func(_ *ir.Builder, in []ir.Value) []ir.Value { return in[2:] })[0]
	chosen := ops.TakeAlongAxis(b, raw, ops.ExpandDims(b, token, 1), 1, ops.OutsideClip)
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	return token, ops.Sub(b, ops.Reshape(b, chosen, token.Shape()...), ops.LogSumExp(b, raw, -1))
}

// sampler builds the parts of [Sample].
type sampler struct {
	*ir.Builder
	by ir.Value
}

// field returns a column of the options, [rows, 1].
func (s *sampler) field(i int) ir.Value {
	return ops.SliceAxis(s.Builder, s.by, 1, ir.N(i), ir.N(1))
}

func (s *sampler) number(x float64) ir.Value { return ops.Const(s.Builder, ir.F32, x) }

// penalised applies the penalties for earlier tokens.
func (s *sampler) penalised(x ir.Value, o SampleOptions) ir.Value {
	b := s.Builder
	zero := ops.Const(b, ir.I32, 0)
	if o.Seen.Valid() {
		factor := s.field(4)
		weaker := ops.Select(b, ops.Gt(b, x, s.number(0)), ops.Div(b, x, factor), ops.Mul(b, x, factor))
		x = ops.Select(b, ops.Gt(b, o.Seen, zero), weaker, x)
	}
	if o.Counts.Valid() {
		count := ops.Convert(b, o.Counts, ir.F32)
		present := ops.Convert(b, ops.Gt(b, o.Counts, zero), ir.F32)
		x = ops.Sub(b, x, ops.Add(b, ops.Mul(b, s.field(5), present), ops.Mul(b, s.field(6), count)))
	}
	return x
}

// biased adds the biases of single tokens.
func (s *sampler) biased(x ir.Value, o SampleOptions) ir.Value {
	b := s.Builder
	if !o.BiasTokens.Valid() || b.Err() != nil {
		return x
	}
	row := ops.Iota(b, ir.I32, 0, o.BiasTokens.Shape()...)
	at := ops.Stack(b, -1, row, o.BiasTokens)
	return ops.ScatterAdd(b, x, at, o.Biases, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 1}, Outside: ops.OutsideDrop}})
}

// allowed sets the logits of masked tokens to -Inf.
func (s *sampler) allowed(x ir.Value, o SampleOptions) ir.Value {
	b := s.Builder
	if !o.Allowed.Valid() || b.Err() != nil {
		return x
	}
	words := ops.Repeat(b, o.Allowed, 1, 32)
	if b.Err() != nil {
		return x
	}
	words = ops.SliceAxis(b, words, 1, ir.N(0), x.Dim(1))
	bit := ops.And(b, ops.Iota(b, ir.U32, 1, x.Shape()...), ops.Const(b, ir.U32, 31))
	set := ops.And(b, ops.ShiftRight(b, words, bit), ops.Const(b, ir.U32, 1))
	return ops.Select(b, ops.Ne(b, set, ops.Const(b, ir.U32, 0)), x, s.number(math.Inf(-1)))
}

// draw returns random tokens, and the greedy ones in the rows without a temperature.
func (s *sampler) draw(x, greedy ir.Value) ir.Value {
	b := s.Builder
	temperature := s.field(0)
	warm := ops.Gt(b, temperature, s.number(0))
	x = ops.Div(b, x, ops.Select(b, warm, temperature, s.number(1)))
	kept := ops.Ge(b, x, s.threshold(x))
	weights := ops.Select(b, kept, ops.Exp(b, ops.Sub(b, x, ops.KeepDims(b, ops.ReduceMax, x, -1))), s.number(0))
	sums := ops.CumSum(b, weights, ops.CumSumAttrs{Axis: -1})
	if b.Err() != nil {
		return ir.Value{}
	}
	size := x.Dim(1)
	total := ops.SliceAxis(b, sums, 1, size.Sub(ir.N(1)), ir.N(1))
	// The first token whose prefix sum exceeds the random number times the total.
	before := ops.Le(b, sums, ops.Mul(b, total, s.field(7)))
	token := ops.ReduceSum(b, ops.Convert(b, before, ir.I32), -1)
	drawn := ops.And(b, ops.Reshape(b, warm, token.Shape()...), ops.Lt(b, token, ops.DimSize(b, ir.I32, size)))
	return ops.Select(b, drawn, token, greedy)
}

// threshold returns the smallest logit that top-k, top-p and min-p keep, [rows, 1]; -Inf keeps all.
func (s *sampler) threshold(x ir.Value) ir.Value {
	b := s.Builder
	size, _ := x.Dim(1).Const()
	best, _ := ops.TopK(b, x, ops.TopKAttrs{K: min(maxCandidates, size), Axis: -1})
	if b.Err() != nil {
		return ir.Value{}
	}
	none, topK, topP, minP := s.number(math.Inf(-1)), s.field(1), s.field(2), s.field(3)
	bounded := ops.Gt(b, topK, s.number(0))
	place := ops.Iota(b, ir.F32, 1, best.Shape()...)
	kept := ops.Or(b, ops.Not(b, bounded), ops.Lt(b, place, topK))
	of := ops.Select(b, bounded, s.logSumExp(ops.Select(b, kept, best, none)), s.logSumExp(x))
	p := ops.Select(b, kept, ops.Exp(b, ops.Sub(b, best, of)), s.number(0))
	before := ops.CumSum(b, p, ops.CumSumAttrs{Axis: -1, Exclusive: true})
	whole := ops.Ge(b, topP, s.number(1))
	kept = ops.And(b, kept, ops.Or(b, whole, ops.Lt(b, before, topP)))
	first := ops.SliceAxis(b, best, 1, ir.N(0), ir.N(1))
	kept = ops.And(b, kept, ops.Ge(b, best, ops.Add(b, first, ops.Log(b, minP))))
	lowest := ops.KeepDims(b, ops.ReduceMin, ops.Select(b, kept, best, s.number(math.Inf(1))), -1)
	all := ops.And(b, ops.And(b, ops.Not(b, bounded), whole), ops.Le(b, minP, s.number(0)))
	return ops.Select(b, all, none, lowest)
}

// logSumExp returns the logarithm of the sum of exponentials of each row, [rows, 1].
func (s *sampler) logSumExp(x ir.Value) ir.Value {
	return ops.ExpandDims(s.Builder, ops.LogSumExp(s.Builder, x, -1), -1)
}
