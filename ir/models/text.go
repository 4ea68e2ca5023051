package models

import (
	"cmp"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// Head is the head of an encoder.
type Head string

// The heads of encoders.
const (
	// NoHead has hidden states as the result.
	NoHead Head = ""
	// LabelHead scores each label for a text or image.
	LabelHead Head = "labels"
	// TokenLabelHead scores each label for each token of a text.
	TokenLabelHead Head = "labels of tokens"
	// VocabularyHead scores each token of the vocabulary for each position of a text: fill-mask.
	VocabularyHead Head = "vocabulary"
)

// Text describes an encoder of texts.
type Text struct {
	// Family is the architecture: see [Config].
	Family string
	Tower
	// Vocabulary is the number of tokens, Context that of positions, and Types that of kinds of tokens,
	// 0 for none.
	Vocabulary, Context, Types int
	// Offset is added to positions: the rows of the table before are not used. It is 2 in RoBERTa.
	Offset int
	// Head is the head of the encoder, and Labels the names of its labels. Independent gives each
	// label an independent probability: see [Probabilities].
	Head        Head
	Labels      []string
	Independent bool
	// Pooler means that the model has BERT's pooler: see [TextPooler].
	Pooler bool
	// Tied uses the table of tokens as the weight of the scores of tokens.
	Tied bool

	// Window is how far a token sees to each side in the layers that Windowed names; GlobalBase and
	// LocalBase are the bases of the rotation in the other layers and in those. They are for ModernBERT.
	Window                int
	Windowed              []bool
	GlobalBase, LocalBase float64
	// AttentionBias, MLPBias, NormBias, HeadBias and ScoreBias add biases to the layers of ModernBERT:
	// those of the attention, the MLP, the norms, the dense layer of the head and the scores of tokens.
	AttentionBias, MLPBias, NormBias, HeadBias, ScoreBias bool
	// MeanPooled has ModernBERT's labels come from the mean of all tokens, not from the first one.
	MeanPooled bool
	// HeadActivation is the function in ModernBERT's head.
	HeadActivation string
}

// Check returns nil if the encoder can be built. The error is of kind [lm.ErrConfig], or of kind
// [ir.ErrUnsupported] for an unknown family or activation.
func (c Text) Check() error {
	f, err := familyOf(c.Family)
	if err == nil && f.text == nil {
		err = ir.Errorf(ir.ErrUnsupported, "%s is no encoder of texts", c.Family)
	}
	err = cmp.Or(err, c.Tower.Check(), within(
		field{"Vocabulary", c.Vocabulary, 1, maxTokens}, field{"Context", c.Context, 1, maxTokens}, field{"Types", c.Types, 0, maxTokens},
		field{"Offset", c.Offset, 0, maxTokens}, field{"Window", c.Window, 0, math.MaxInt32}, field{"Labels", len(c.Labels), 0, maxLabels},
	))
	switch {
	case err != nil:
		return err
	case c.Windowed != nil && len(c.Windowed) != c.Layers:
		return badConfig("Windowed has %d layers: it must have %d", len(c.Windowed), c.Layers)
	case (c.Head == LabelHead || c.Head == TokenLabelHead) && len(c.Labels) == 0:
		return badConfig("Labels is empty: a head of labels must have them")
	case c.Windowed != nil && (!(c.GlobalBase > 0) || !(c.LocalBase > 0) || math.IsInf(c.GlobalBase+c.LocalBase, 0) || c.HeadSize%2 != 0):
		return badConfig("GlobalBase is %v, LocalBase %v and HeadSize %d: the bases must be positive and finite, HeadSize even", c.GlobalBase, c.LocalBase, c.HeadSize)
	case c.Windowed != nil:
		return checkActivation(c.HeadActivation)
	}
	return nil
}

// Positions is the largest number of tokens of a text.
func (c Text) Positions() int { return max(c.Context-c.Offset, 0) }

// TextOptions are the options of [TextEncoder].
type TextOptions struct {
	// Mask is true or nonzero for tokens and false or 0 for padding, [batch, time]; the zero Value
	// means that there is no padding. Padding is at the end of a text.
	Mask ir.Value
	// Types are the kinds of the tokens, integers [batch, time]: 0 and 1 for the first and second text
	// of a pair. The zero Value means 0.
	Types ir.Value
}

// TextEncoder returns the hidden states of tokens, integers [batch, time]: f32[batch, time, width]. Those
// of padding are without meaning. Both axes may be symbols. Errors are recorded in b: those of
// [Text.Check], and of kind [ir.ErrShape] for a mask or types of another shape than tokens.
func TextEncoder(b *ir.Builder, c Text, tokens ir.Value, o ...TextOptions) ir.Value {
	const op ir.Op = "models.text_encoder"
	if !start(b, op, tokens, c.Check()) {
		return ir.Value{}
	}
	var opts TextOptions
	if len(o) > 0 {
		opts = o[0]
	}
	for _, v := range []ir.Value{opts.Mask, opts.Types} {
		if tokens.Rank() != 2 || v.Valid() && !v.Shape().Equal(tokens.Shape()) {
			b.Failf(op, []ir.Value{tokens, v}, ir.Shapef("tokens are %s and a mask or types %s: both must be [batch, time]", tokens.Type(), v.Type()))
			return ir.Value{}
		}
	}
	if n, ok := tokens.Dim(1).Const(); ok && n > c.Positions() {
		b.Failf(op, []ir.Value{tokens}, ir.Shapef("tokens are %s: there must be at most %d positions", tokens.Type(), c.Positions()))
		return ir.Value{}
	}
	f, _ := familyOf(c.Family)
	return f.text.encode(b, c, tokens, opts)
}

// TextHead returns the scores of the head for the results of [TextEncoder] and its mask, which may be the
// zero Value: f32[batch, labels], [batch, time, labels] or [batch, time, vocabulary]. Errors are recorded
// in b: of kind [ir.ErrUnsupported] for an encoder without a head.
func TextHead(b *ir.Builder, c Text, hidden, mask ir.Value) ir.Value {
	const op ir.Op = "models.text_head"
	err := c.Check()
	if err == nil && c.Head == NoHead {
		err = ir.Errorf(ir.ErrUnsupported, "the encoder has no head: its results are hidden states")
	}
	if !start(b, op, hidden, err) {
		return ir.Value{}
	}
	f, _ := familyOf(c.Family)
	return f.text.head(b, c, hidden, mask)
}

// Probabilities returns the probabilities of labels or tokens from scores along the last axis: the
// softmax, or the logistic function for independent labels and for a single one. Errors are
// recorded in b.
func Probabilities(b *ir.Builder, scores ir.Value, independent bool) ir.Value {
	if !start(b, "models.probabilities", scores, nil) {
		return ir.Value{}
	}
	if independent || scores.Dim(-1).Is(1) {
		return ops.Sigmoid(b, scores)
	}
	return ops.Softmax(b, scores, -1)
}

// scores returns the scores of all tokens: by the token embeddings, or by a separate weight, with a
// bias.
func (c Text) scores(b *ir.Builder, x ir.Value, table, own, bias string) ir.Value {
	o := nn.LinearOptions{Name: own, NoBias: true, Init: nn.Normal(0, 0.02)}
	if c.Tied {
		o.Tied = table + "/weight"
	}
	y := nn.Linear(b, x, c.Vocabulary, o)
	if bias == "" || b.Err() != nil {
		return y
	}
	return ops.Add(b, y, b.ParamWith(bias, ir.PortOptions{Initial: nn.Constant(0)}, ir.F32, ir.N(c.Vocabulary)))
}

// visible returns a mask as booleans for the scores of attention, [batch, 1, 1, time]; the zero Value for
// no mask.
func visible(b *ir.Builder, mask ir.Value) ir.Value {
	if !mask.Valid() || b.Err() != nil {
		return ir.Value{}
	}
	return ops.ExpandDims(b, trueOf(b, mask), 1, 2)
}

// trueOf returns a mask as booleans.
func trueOf(b *ir.Builder, mask ir.Value) ir.Value {
	if mask.DType() == ir.Bool {
		return mask
	}
	return ops.Ne(b, mask, ops.ZerosLike(b, mask))
}

// Pooling is how a text's vector comes from the hidden states of its tokens.
type Pooling string

// The ways of pooling.
const (
	MeanPooling  Pooling = "mean"  // the mean of the tokens that are no padding
	FirstPooling Pooling = "first" // that of the first token
)

// Pool returns a vector for each text from the hidden states of its tokens, [batch, time, width], and their
// mask, [batch, time], or the zero Value: f32[batch, width], of length 1 with normalise. Errors are
// recorded in b: of kind [ir.ErrAttr] for an unknown way.
func Pool(b *ir.Builder, hidden, mask ir.Value, by Pooling, normalise bool) ir.Value {
	const op ir.Op = "models.pool"
	if !start(b, op, hidden, nil) {
		return ir.Value{}
	}
	var y ir.Value
	switch {
	case hidden.Rank() != 3 || mask.Valid() && !mask.Shape().Equal(hidden.Shape()[:2]):
		b.Failf(op, []ir.Value{hidden, mask}, ir.Shapef("hidden is %s and mask %s: they must be [batch, time, width] and [batch, time]", hidden.Type(), mask.Type()))
	case by == FirstPooling:
		y = firstPosition(b, hidden)
	case by != MeanPooling:
		b.Failf(op, []ir.Value{hidden}, ir.Attrf("the way of pooling is %q: it must be %q or %q", string(by), string(MeanPooling), string(FirstPooling)))
	case !mask.Valid():
		y = ops.Mean(b, hidden, 1)
	default:
		share := ops.ExpandDims(b, ops.Convert(b, trueOf(b, mask), hidden.DType()), -1)
		number := ops.ReduceSum(b, share, 1)
		y = ops.Div(b, ops.ReduceSum(b, ops.Mul(b, hidden, share), 1), ops.Max(b, number, ops.ConstLike(b, number, 1e-9)))
	}
	if !normalise {
		return y
	}
	return unit(b, y)
}
