package lm

import (
	"fmt"
	"math"

	"github.com/rlx-go/rlx/internal/hfconfig"
	"github.com/rlx-go/rlx/ir/nn"
)

// ErrConfig is the kind of the errors for a description of a model that is malformed or out of range.
var ErrConfig = hfconfig.Err

func badConfig(text string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(text, args...))
}

// Config describes a decoder. [ReadConfig] and [FromGGUF] return one; [Config.Check] checks one.
type Config struct {
	// Architecture is the family: one of [Architectures]. It chooses the names of the parameters.
	Architecture string
	// Width is the number of features of a token, Hidden that within an MLP or an expert.
	Width, Hidden int
	// Layers is the number of blocks.
	Layers int
	// Heads is the number of heads of queries, KVHeads that of keys and values, a divisor of it, and
	// HeadSize the number of features of each.
	Heads, KVHeads, HeadSize int
	// Vocabulary is the number of tokens, and Context that of positions the model was made for.
	Vocabulary, Context int

	// LayerNorm normalises by mean and variance, with weight and bias, not by the root mean square.
	LayerNorm bool
	// Epsilon is added to variances.
	Epsilon float64
	// NormOffset is added to the weights of norms as a file has them: 1 in Gemma's safetensors.
	NormOffset float64
	// PostNorms normalises also the results of attention and MLP before they are added.
	PostNorms bool
	// NoNormBias has no bias in the norms of LayerNorm.
	NoNormBias bool
	// Parallel computes the MLP from the same normalised input as attention, and adds both results. ParallelNorms
	// gives it a norm of its own, of the input of the block.
	Parallel, ParallelNorms bool
	// NoPreNorms does not normalise the inputs of attention and MLP.
	NoPreNorms bool
	// NormQK normalises each head of queries and keys before it is rotated, NormQKWhole all heads of a token
	// together.
	NormQK, NormQKWhole bool

	// Rope rotates queries and keys; nil means that positions are learned.
	Rope *Rope
	// Unrotated are the layers that do not rotate; nil means none.
	Unrotated []bool
	// Window, if not 0, hides keys that are Window positions back or more, in the layers that Windowed
	// names, or in all if that is nil.
	Window   int
	Windowed []bool
	// Scale multiplies the scores of attention; 0 means 1/√HeadSize.
	Scale float64
	// ScoreSoftcap and LogitSoftcap c, if not 0, replace scores and logits s by c·tanh(s/c).
	ScoreSoftcap, LogitSoftcap float64

	// QKVBias, OutBias, MLPBias and HeadBias add biases to the projections of attention, to its result, in the
	// MLP, and to the logits.
	QKVBias, OutBias, MLPBias, HeadBias bool
	// FusedQKV has the projections of queries, keys and values as one weight, in this order, and
	// FusedGateUp those of gate and value of the MLP. GroupedQKV has them in this order for each head of keys, not
	// for all together.
	FusedQKV, FusedGateUp, GroupedQKV bool
	// InOut has weights of linear layers as [in, out] in the file, not [out, in]: those of GPT-2 in
	// safetensors.
	InOut bool
	// Activation is the function in the MLP. Gated multiplies it with another projection.
	Activation nn.Activation
	Gated      bool
	// Experts is the number of experts of each layer, 0 for one MLP, and ExpertsPerToken how many of them
	// a token uses.
	Experts, ExpertsPerToken int
	// RawShares multiplies the results of the chosen experts by their shares of all experts; by default these are
	// divided by their sum.
	RawShares bool
	// SharedHidden, if not 0, is the number of features within an expert that every token uses too, times the sigmoid
	// of a projection.
	SharedHidden int

	// ResidualScale multiplies the results of attention and MLP before they are added, and LogitScale the logits; 0
	// means 1.
	ResidualScale, LogitScale float64
	// EmbeddingScale multiplies the embeddings; 0 means 1.
	EmbeddingScale float64
	// Tied uses the table of embeddings as the weight of the logits.
	Tied bool
}

// Rope describes rotary positions: pair i of a head is rotated by position·Base^(−2i/Size)/Divisors[i].
type Rope struct {
	// Base is the base of the angles. LocalBase is the base of layers with a window, whose angles
	// are not divided; 0 means Base.
	Base, LocalBase float64
	// Size is how many features of a head are rotated, the first ones; it is even.
	Size int
	// Interleaved pairs neighbours: GGUF files of Llama have the rows of queries and keys in this order.
	Interleaved bool
	// Divisors, Size/2 of them or nil, extend the context: the angle of each pair is divided by its own.
	Divisors []float64
	// LongDivisors, if not nil, are used instead of Divisors by a program of more than Original positions: see
	// [DecoderOptions].
	LongDivisors []float64
	Original     int
	// Amplitude multiplies rotated features; 0 means 1.
	Amplitude float64
}

// Upper bounds of a configuration, against files that ask for absurd amounts of memory.
const (
	maxLayers   = 4096
	maxHeads    = 1 << 14
	maxFeatures = 1 << 22
	maxTokens   = 1 << 28
	maxExperts  = 1 << 10
)

// Check returns nil if a decoder can be built. The error is of kind [ErrConfig] and names the
// field, its value and its domain, or of kind [ir.ErrUnsupported] for an unknown architecture.
func (c Config) Check() error {
	if _, err := familyOf(c.Architecture); err != nil {
		return err
	}
	if err := c.checkSizes(); err != nil {
		return err
	}
	if err := c.checkTogether(); err != nil {
		return err
	}
	if err := c.checkNumbers(); err != nil {
		return err
	}
	return c.Rope.check(c.HeadSize)
}

// checkSizes checks the domains of integers.
func (c *Config) checkSizes() error {
	for _, n := range []struct {
		name      string
		value     int
		low, high int
	}{
		{"Width", c.Width, 1, maxFeatures},
		{"Hidden", c.Hidden, 1, maxFeatures},
		{"Layers", c.Layers, 1, maxLayers},
		{"Heads", c.Heads, 1, maxHeads},
		{"KVHeads", c.KVHeads, 1, maxHeads},
		{"HeadSize", c.HeadSize, 1, maxFeatures},
		{"Vocabulary", c.Vocabulary, 1, maxTokens},
		{"Context", c.Context, 1, maxTokens},
		{"Window", c.Window, 0, math.MaxInt32},
		{"Experts", c.Experts, 0, maxExperts},
		{"ExpertsPerToken", c.ExpertsPerToken, 0, c.Experts},
		{"SharedHidden", c.SharedHidden, 0, maxFeatures},
	} {
		if n.value < n.low || n.value > n.high {
			return badConfig("%s is %d: it must be in [%d, %d]", n.name, n.value, n.low, n.high)
		}
	}
	return nil
}

// checkTogether checks fields that restrict each other. Sizes are in their domains.
func (c *Config) checkTogether() error {
	switch {
	case c.Heads%c.KVHeads != 0:
		return badConfig("KVHeads is %d: it must divide Heads, %d", c.KVHeads, c.Heads)
	case c.Heads*c.HeadSize > maxFeatures:
		return badConfig("Heads is %d and HeadSize %d: their product must be at most %d", c.Heads, c.HeadSize, maxFeatures)
	case c.Experts > 0 && c.ExpertsPerToken == 0:
		return badConfig("ExpertsPerToken is 0: it must be in [1, %d]", c.Experts)
	case c.SharedHidden > 0 && c.Experts == 0:
		return badConfig("SharedHidden is %d and Experts 0: it must be 0, too", c.SharedHidden)
	case c.Parallel && (c.NoPreNorms || c.PostNorms):
		return badConfig("Parallel, NoPreNorms and PostNorms are %t, %t and %t: a parallel block has one norm, before", c.Parallel, c.NoPreNorms, c.PostNorms)
	case c.ParallelNorms && !c.Parallel:
		return badConfig("ParallelNorms is true and Parallel false: both must be true")
	case c.GroupedQKV && (!c.FusedQKV || c.NormQKWhole):
		return badConfig("GroupedQKV, FusedQKV and NormQKWhole are true, %t and %t: the second must be true, the third false", c.FusedQKV, c.NormQKWhole)
	case c.NoPreNorms && !c.PostNorms:
		return badConfig("NoPreNorms is true and PostNorms false: a block must have norms")
	case c.NormQK && c.NormQKWhole:
		return badConfig("NormQK and NormQKWhole are true: one of them must be false")
	case c.Unrotated != nil && len(c.Unrotated) != c.Layers:
		return badConfig("Unrotated has %d layers: it must have %d", len(c.Unrotated), c.Layers)
	case c.Windowed != nil && len(c.Windowed) != c.Layers:
		return badConfig("Windowed has %d layers: it must have %d", len(c.Windowed), c.Layers)
	case plain[c.Activation] == nil:
		return badConfig("Activation is %q: it must be an activation without a gate", string(c.Activation))
	}
	return nil
}

// checkNumbers checks the domains of floats.
func (c *Config) checkNumbers() error {
	for _, x := range []struct {
		name  string
		value float64
	}{
		{"Epsilon", c.Epsilon},
		{"NormOffset", c.NormOffset},
		{"Scale", c.Scale},
		{"ScoreSoftcap", c.ScoreSoftcap},
		{"LogitSoftcap", c.LogitSoftcap},
		{"EmbeddingScale", c.EmbeddingScale},
		{"ResidualScale", c.ResidualScale},
		{"LogitScale", c.LogitScale},
	} {
		if !finite(x.value) || x.value < 0 {
			return badConfig("%s is %v: it must be finite and not negative", x.name, x.value)
		}
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func (r *Rope) check(headSize int) error {
	if r == nil {
		return nil
	}
	if r.Size < 2 || r.Size%2 != 0 || r.Size > headSize {
		return badConfig("Rope.Size is %d: it must be even and in [2, %d]", r.Size, headSize)
	}
	if !(r.Base > 0) || !finite(r.Base) || !(r.LocalBase >= 0) || !finite(r.LocalBase) || !(r.Amplitude >= 0) || !finite(r.Amplitude) {
		return badConfig("Rope has Base %v, LocalBase %v and Amplitude %v: they must be finite, the first positive, the others not negative", r.Base, r.LocalBase, r.Amplitude)
	}
	for _, list := range [][]float64{r.Divisors, r.LongDivisors} {
		if list != nil && len(list) != r.Size/2 {
			return badConfig("Rope has divisors of %d pairs: it must have %d", len(list), r.Size/2)
		}
		for _, d := range list {
			if !(d > 0) || !finite(d) {
				return badConfig("Rope divides an angle by %v: it must be finite and positive", d)
			}
		}
	}
	return nil
}

// windowed reports whether a layer has the window.
func (c Config) windowed(layer int) bool {
	return c.Window > 0 && (c.Windowed == nil || c.Windowed[layer])
}

// rope returns the rotation of a layer in a program with the given number of positions; nil for none.
func (c Config) rope(layer, positions int) *nn.RopeOptions {
	r := c.Rope
	if r == nil || c.Unrotated != nil && c.Unrotated[layer] {
		return nil
	}
	o := &nn.RopeOptions{Base: r.Base, Size: r.Size, Interleaved: r.Interleaved}
	if c.windowed(layer) && r.LocalBase != 0 {
		o.Base = r.LocalBase
		return o
	}
	o.Amplitude = r.Amplitude
	divisors := r.Divisors
	if r.LongDivisors != nil && positions > r.Original {
		divisors = r.LongDivisors
	}
	if divisors != nil {
		o.Frequencies = make([]float64, r.Size/2)
		for i := range o.Frequencies {
			o.Frequencies[i] = angle(r.Base, i, r.Size) / divisors[i]
		}
	}
	return o
}

// angle returns the angle of a position of pair i without scaling.
func angle(base float64, i, size int) float64 {
	return math.Pow(base, -2*float64(i)/float64(size))
}
