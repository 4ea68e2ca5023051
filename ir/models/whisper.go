package models

import (
	"cmp"
	"math"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// Speech describes a model that writes down speech: Whisper.
type Speech struct {
	// Encoder and Decoder are the blocks of the two halves, which have one width.
	Encoder, Decoder Tower
	// Vocabulary is the number of tokens, and Context that of positions of the decoder.
	Vocabulary, Context int
	// Mels is the number of mel bands of the spectrogram, and Frames that of positions of the encoder,
	// half of the frames of the spectrogram.
	Mels, Frames int
	// Rate is the sampling rate in hertz, Transform the number of samples of a frame of the spectrogram,
	// and Hop that from a frame to the next.
	Rate, Transform, Hop int
	// EmbeddingScale multiplies the embeddings of tokens; 0 means 1.
	EmbeddingScale float64
}

// Check returns nil if the model can be built, or an error of kind [lm.ErrConfig].
func (c Speech) Check() error {
	err := cmp.Or(c.Encoder.Check(), c.Decoder.Check(), within(
		field{"Vocabulary", c.Vocabulary, 1, maxTokens}, field{"Context", c.Context, 1, maxTokens},
		field{"Mels", c.Mels, 1, maxHeads}, field{"Frames", c.Frames, 1, maxTokens},
		field{"Rate", c.Rate, 1, maxTokens}, field{"Transform", c.Transform, 2, maxFeatures}, field{"Hop", c.Hop, 1, maxFeatures},
	))
	if err == nil && c.Encoder.Width != c.Decoder.Width {
		err = badConfig("Encoder.Width is %d and Decoder.Width %d: they must be equal", c.Encoder.Width, c.Decoder.Width)
	}
	return err
}

// SoundLength is the number of samples that a run of the encoder reads.
func (c Speech) SoundLength() int { return 2 * c.Frames * c.Hop }

// LogMel returns Whisper's spectrogram of sound, f32[batch, samples] with as many samples as [Speech.SoundLength]
// says: f32[batch, 2·frames, mels]. It is the decimal logarithm of the energy in mel bands up to half of
// the rate, at most 8 below the largest of the sound, plus 4, by 4 (Radford et al., Robust Speech Recognition via
// Large-Scale Weak Supervision). Errors are recorded in b: of kind [ir.ErrShape] for another number of
// samples.
func LogMel(b *ir.Builder, c Speech, samples ir.Value) ir.Value {
	err := c.Check()
	if err == nil && samples.Valid() && (samples.Rank() != 2 || !samples.Dim(1).Is(c.SoundLength())) {
		err = ir.Shapef("samples are %s: they must be [batch, %d]", samples.Type(), c.SoundLength())
	}
	if !start(b, "models.log_mel", samples, err) {
		return ir.Value{}
	}
	window := ops.Window(b, ops.WindowAttrs{Kind: "hann", Length: c.Transform})
	filters := ops.MelFilterbank(b, ops.MelBankAttrs{Filters: c.Mels, Length: c.Transform, Rate: float64(c.Rate), High: float64(c.Rate) / 2, Area: true, DType: ir.F32})
	x := ops.LogMel(b, samples, window, filters, ops.LogMelAttrs{FrameAttrs: ops.FrameAttrs{Hop: c.Hop, Center: true}, Floor: 1e-10})
	if b.Err() != nil {
		return ir.Value{}
	}
	x = ops.SliceAxis(b, x, 1, ir.N(0), ir.N(2*c.Frames)) // the last frame is that of the padding
	x = ops.Mul(b, x, ops.ConstLike(b, x, 1/math.Ln10))
	loudest := ops.KeepDims(b, ops.ReduceMax, x, 1, 2)
	x = ops.Max(b, x, ops.Sub(b, loudest, ops.ConstLike(b, loudest, 8)))
	return ops.Mul(b, ops.Add(b, x, ops.ConstLike(b, x, 4)), ops.ConstLike(b, x, 0.25))
}

var whisperBlock = blockNames{
	q: "q_proj", k: "k_proj", v: "v_proj", out: "out_proj",
	norm1: "self_attn_layer_norm", norm2: "final_layer_norm", up: "fc1", down: "fc2",
}

// The scopes of Whisper's parameters.
const (
	whisperEncoder = "model/encoder"
	whisperDecoder = "model/decoder"
	selfAttention  = "self_attn"
	crossAttention = "encoder_attn"
)

func (c Speech) tower(b *ir.Builder, t Tower) *tower {
	return &tower{Builder: b, Tower: t, blockNames: whisperBlock, noKeyBias: true, normBias: true}
}

// SpeechEncoder returns the hidden states of spectrograms, f32[batch, 2·frames, mels]: f32[batch, frames,
// width]. Errors are recorded in b: those of [Speech.Check], and of kind [ir.ErrShape] for a spectrogram
// of another size.
func SpeechEncoder(b *ir.Builder, c Speech, mels ir.Value) ir.Value {
	err := c.Check()
	if err == nil && mels.Valid() && (mels.Rank() != 3 || !mels.Shape()[1:].Equal(ir.Dims(2*c.Frames, c.Mels))) {
		err = ir.Shapef("the spectrogram is %s: it must be [batch, %d, %d]", mels.Type(), 2*c.Frames, c.Mels)
	}
	if !start(b, "models.speech_encoder", mels, err) {
		return ir.Value{}
	}
	t := c.tower(b, c.Encoder)
	return nn.In(b, whisperEncoder, func() ir.Value {
		x := ops.Gelu(b, t.convolved("conv1", mels, 1))
		x = ops.Gelu(b, t.convolved("conv2", x, 2))
		x = ops.Add(b, x, table(b, "embed_positions", c.Frames, t.Width, 0, ir.N(c.Frames)))
		x = t.stack("layers", x, func(_ int, x ir.Value) ir.Value {
			x = t.plus(x, t.norm1, func(x ir.Value) ir.Value {
				return nn.In(b, selfAttention, func() ir.Value { return t.attend(x, nn.AttentionOptions{}) })
			})
			return t.plus(x, t.norm2, t.feed)
		})
		return t.norm("layer_norm", x)
	})
}

// convolved returns the convolution of x, [batch, time, features], with a window of 3, padded on
// both sides. It is a product of concatenated neighbours with the weight as stored, [out, features,
// 3].
func (t *tower) convolved(name string, x ir.Value, stride int) ir.Value {
	b := t.Builder
	if b.Err() != nil {
		return ir.Value{}
	}
	time, _ := x.Dim(1).Const()
	padded := ops.Pad(b, x, ops.Const(b, x.DType(), 0), []int{0, 1, 0}, []int{0, 1, 0}, []int{0, 0, 0})
	out := (time-1)/stride + 1
	var near []ir.Value
	for i := range 3 {
		near = append(near, ops.Slice(b, padded, ir.Dims(0, i, 0), ir.Shape{x.Dim(0), ir.N(out), x.Dim(2)}, []int{1, stride, 1}))
	}
	windows := ops.Stack(b, -1, near...)
	if b.Err() != nil {
		return ir.Value{}
	}
	features, _ := x.Dim(2).Const()
	return t.linear(name, ops.Reshape(b, windows, x.Dim(0), ir.N(out), ir.N(3*features)), t.Width)
}

// SpeechMemory returns the keys and values that the decoder computes from the encoder's results,
// [batch, frames, width]: for each layer [batch, heads, frames, size]. Errors are recorded in b.
func SpeechMemory(b *ir.Builder, c Speech, hidden ir.Value) []ir.Value {
	if !start(b, "models.speech_memory", hidden, c.Check()) {
		return nil
	}
	t := c.tower(b, c.Decoder)
	var memory []ir.Value
	for i := range c.Decoder.Layers {
		b.Scope(c.crossScope(i), func() {
			k, v := t.keys(hidden)
			memory = append(memory, k, v)
		})
	}
	return memory
}

func (c Speech) crossScope(layer int) string {
	return whisperDecoder + "/layers/" + strconv.Itoa(layer) + "/" + crossAttention
}

// memoryNames are the states of the keys and values of a layer.
var memoryNames = [2]string{"keys", "values"}

// SetSpeechMemory stores the results of [SpeechMemory] in states; entries of the same module read
// them by [CachedSpeechMemory].
func SetSpeechMemory(b *ir.Builder, c Speech, memory []ir.Value) {
	c.eachMemory(b, len(memory), func(i int, name string) {
		t := memory[i].Type()
		b.State(name, t.DType, t.Shape...)
		b.SetState(name, memory[i])
	})
}

// CachedSpeechMemory returns what [SetSpeechMemory] stored for a batch of sounds, f32 [batch, heads, frames,
// head size]: the keys and the values of each layer.
func CachedSpeechMemory(b *ir.Builder, c Speech, batch int) (memory []ir.Value) {
	c.eachMemory(b, 2*c.Decoder.Layers, func(_ int, name string) {
		kept := b.State(name, ir.F32, ir.Dims(batch, c.Decoder.Heads, c.Frames, c.Decoder.HeadSize)...)
		b.SetState(name, kept)
		memory = append(memory, kept)
	})
	return memory
}

// eachMemory calls f in the scope of each part of the memory.
func (c Speech) eachMemory(b *ir.Builder, n int, f func(i int, name string)) {
	for i := range n {
		if b.Err() == nil {
			b.Scope(c.crossScope(i/2), func() { f(i, memoryNames[i%2]) })
		}
	}
}

// SpeechDecoder returns the scores of the token after each of tokens, integers [batch, time], by the results
// of [SpeechMemory]: f32[batch, time, vocabulary]. After [nn.Cache] it continues the tokens of earlier runs.
// Errors are recorded in b: those of [Speech.Check], and of kind [ir.ErrShape] for a memory of another
// number of layers.
func SpeechDecoder(b *ir.Builder, c Speech, tokens ir.Value, memory []ir.Value) ir.Value {
	err := c.Check()
	if err == nil && len(memory) != 2*c.Decoder.Layers {
		err = ir.Shapef("the memory has %d parts: it must have keys and values of %d layers", len(memory), c.Decoder.Layers)
	}
	if !start(b, "models.speech_decoder", tokens, err) {
		return ir.Value{}
	}
	t := c.tower(b, c.Decoder)
	x := nn.In(b, whisperDecoder, func() ir.Value {
		x := embedding(b, "embed_tokens", tokens, c.Vocabulary, t.Width)
		if s := c.EmbeddingScale; s != 0 && s != 1 && b.Err() == nil {
			x = ops.Mul(b, x, ops.ConstLike(b, x, s))
		}
		x = nn.PositionalEmbedding(b, x, c.Context, nn.PositionalEmbeddingOptions{Name: "embed_positions"})
		x = t.stack("layers", x, func(layer int, x ir.Value) ir.Value {
			x = t.plus(x, t.norm1, func(x ir.Value) ir.Value {
				return nn.In(b, selfAttention, func() ir.Value { return t.attend(x, nn.AttentionOptions{Causal: true}) })
			})
			x = t.plus(x, crossAttention+"_layer_norm", func(x ir.Value) ir.Value {
				return nn.In(b, crossAttention, func() ir.Value { return t.across(x, memory[2*layer], memory[2*layer+1]) })
			})
			return t.plus(x, t.norm2, t.feed)
		})
		return t.norm("layer_norm", x)
	})
	return nn.Linear(b, x, c.Vocabulary, nn.LinearOptions{Name: "proj_out", NoBias: true, Tied: whisperDecoder + "/embed_tokens/weight"})
}

// across returns attention over the keys and values of another sequence, which no cache extends.
func (t *tower) across(x, k, v ir.Value) ir.Value {
	y := ops.SwapAxes(t.Builder, ops.Attention(t.Builder, t.queries(x), k, v, ir.Value{}, ops.AttentionAttrs{}), -3, -2)
	if t.Err() != nil {
		return ir.Value{}
	}
	return t.linear(t.out, ops.Reshape(t.Builder, y, append(y.Shape()[:y.Rank()-2].Clone(), ir.N(t.Heads*t.HeadSize))...), t.Width)
}
