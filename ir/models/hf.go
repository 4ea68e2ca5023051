package models

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/hfconfig"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
)

// family is a known architecture.
type family struct {
	text textModel // nil but for encoders of texts
	read func(architecture string, data []byte) (Config, error)
}

// families are the known architectures by their model_type in config.json.
func families() map[string]family {
	roberta := family{robertaNames(), readBERT}
	return map[string]family{
		"bert": {bertNames(), readBERT}, "roberta": roberta, "xlm-roberta": roberta, "camembert": roberta,
		"distilbert": {distilbertNames(), readDistilBERT}, "modernbert": {modernBERT{}, readModernBERT},
		"vit": {nil, readViT}, "clip": {nil, readCLIP}, "whisper": {nil, readWhisper},
	}
}

// Architectures returns the names of the supported architectures, sorted. Those of decoders are
// [lm.Architectures].
func Architectures() []string { return slices.Sorted(maps.Keys(families())) }

// familyOf returns a family. The error is of kind [ir.ErrUnsupported] and lists the known ones.
func familyOf(architecture string) (family, error) {
	f, ok := families()[architecture]
	if !ok {
		return f, ir.Errorf(ir.ErrUnsupported, "the architecture is %q: it must be one of %s, or of the decoders %s",
			architecture, strings.Join(Architectures(), ", "), strings.Join(lm.Architectures(), ", "))
	}
	return f, nil
}

func known[T any](m map[string]T) string { return strings.Join(slices.Sorted(maps.Keys(m)), ", ") }

// ReadConfig reads a config.json of Hugging Face. Errors are of kind [lm.ErrConfig],
// [ir.ErrUnsupported] for an unknown architecture or option, or those of r.
func ReadConfig(r io.Reader) (Config, error) {
	if r == nil {
		return Config{}, ir.Attrf("r is nil: it must be a reader")
	}
	data, err := hfconfig.Read(r)
	if err != nil {
		return Config{}, err
	}
	var h struct {
		ModelType string `json:"model_type"`
	}
	if err := hfconfig.Parse(data, &h); err != nil {
		return Config{}, err
	}
	f, err := familyOf(h.ModelType)
	if err != nil {
		return Config{}, err
	}
	c, err := f.read(h.ModelType, data)
	if err != nil {
		return Config{}, err
	}
	return c, c.Check()
}

// hfHead is the part of config.json about the head: its kind, its labels and its weights.
type hfHead struct {
	Architectures []string          `json:"architectures"`
	Labels        map[string]string `json:"id2label"`
	NumLabels     *int              `json:"num_labels"`
	Tied          *bool             `json:"tie_word_embeddings"`
	Problem       string            `json:"problem_type"`
}

// head returns the head of the encoder: heads that this package does not know are ignored.
func (h hfHead) head() Head {
	for _, name := range h.Architectures {
		switch {
		case strings.HasSuffix(name, "ForSequenceClassification"), strings.HasSuffix(name, "ForImageClassification"):
			return LabelHead
		case strings.HasSuffix(name, "ForTokenClassification"):
			return TokenLabelHead
		case strings.HasSuffix(name, "ForMaskedLM"), strings.HasSuffix(name, "ForPreTraining"):
			return VocabularyHead
		}
	}
	return NoHead
}

// labels returns the names of the labels by their numbers; a file without names has two by default.
func (h hfHead) labels() ([]string, error) {
	n := 2
	switch {
	case h.Labels != nil:
		n = len(h.Labels)
	case h.NumLabels != nil:
		n = *h.NumLabels
	}
	if n < 0 || n > maxLabels {
		return nil, badConfig("num_labels is %d: it must be in [0, %d]", n, maxLabels)
	}
	list := make([]string, n)
	for i := range list {
		name := "LABEL_" + strconv.Itoa(i)
		if h.Labels != nil {
			given, ok := h.Labels[strconv.Itoa(i)]
			if !ok {
				return nil, badConfig("id2label has %d names and none for %d: it must name all from 0 on", n, i)
			}
			name = given
		}
		list[i] = name
	}
	return list, nil
}

// setHead sets what an encoder of texts has of a head. The errors are those of labels.
func (h hfHead) setHead(c *Text) (err error) {
	c.Head, c.Independent, c.Tied = h.head(), h.independent(), h.tied()
	c.Labels, err = h.labels()
	return err
}

// independent reports whether the labels have independent probabilities.
func (h hfHead) independent() bool { return h.Problem == "multi_label_classification" }

// tied reports whether scores of tokens come from the table of tokens.
func (h hfHead) tied() bool { return h.Tied == nil || *h.Tied }

// perHead returns the size of a head.
func perHead(width, heads int, given *int) int {
	switch {
	case given != nil:
		return *given
	case heads > 0:
		return width / heads
	}
	return 0
}

// divided requires heads that share the width evenly, unless their size is given.
func divided(t Tower, given *int) error {
	if given == nil && t.Heads > 0 && t.Width%t.Heads != 0 {
		return badConfig("the width is %d and the number of heads %d: it must divide the width, or head_dim be given", t.Width, t.Heads)
	}
	return nil
}

func readBERT(architecture string, data []byte) (Config, error) {
	h := struct {
		hfHead
		Width      int     `json:"hidden_size"`
		Hidden     int     `json:"intermediate_size"`
		Layers     int     `json:"num_hidden_layers"`
		Heads      int     `json:"num_attention_heads"`
		HeadSize   *int    `json:"head_dim"`
		Vocabulary int     `json:"vocab_size"`
		Context    int     `json:"max_position_embeddings"`
		Types      int     `json:"type_vocab_size"`
		Epsilon    float64 `json:"layer_norm_eps"`
		Activation string  `json:"hidden_act"`
		Positions  string  `json:"position_embedding_type"`
		Padding    *int    `json:"pad_token_id"`
		Decoder    bool    `json:"is_decoder"`
	}{
		Width: 768, Hidden: 3072, Layers: 12, Heads: 12, Vocabulary: 30522, Context: 512, Types: 2, Epsilon: 1e-12,
		Activation: "gelu", Positions: "absolute",
	}
	if err := hfconfig.Parse(data, &h); err != nil {
		return Config{}, err
	}
	if h.Positions != "absolute" || h.Decoder {
		return Config{}, ir.Errorf(ir.ErrUnsupported, "position_embedding_type is %q and is_decoder %t: they must be absolute and false", h.Positions, h.Decoder)
	}
	c := &Text{
		Family: architecture, Vocabulary: h.Vocabulary, Context: h.Context, Types: h.Types,
		Tower: Tower{Width: h.Width, Hidden: h.Hidden, Layers: h.Layers, Heads: h.Heads, HeadSize: perHead(h.Width, h.Heads, h.HeadSize), Epsilon: h.Epsilon, Activation: h.Activation},
	}
	err := h.setHead(c)
	if architecture != "bert" {
		c.Offset = 2
		if h.Padding != nil {
			c.Offset = *h.Padding + 1
		}
	}
	c.Pooler = architecture == "bert" && c.Head == LabelHead
	return Config{Architecture: architecture, Text: c}, cmp.Or(err, divided(c.Tower, h.HeadSize))
}

func readDistilBERT(architecture string, data []byte) (Config, error) {
	h := struct {
		hfHead
		Width      int    `json:"dim"`
		Hidden     int    `json:"hidden_dim"`
		Layers     int    `json:"n_layers"`
		Heads      int    `json:"n_heads"`
		Vocabulary int    `json:"vocab_size"`
		Context    int    `json:"max_position_embeddings"`
		Activation string `json:"activation"`
	}{Width: 768, Hidden: 3072, Layers: 6, Heads: 12, Vocabulary: 30522, Context: 512, Activation: "gelu"}
	if err := hfconfig.Parse(data, &h); err != nil {
		return Config{}, err
	}
	c := &Text{
		Family: architecture, Vocabulary: h.Vocabulary, Context: h.Context,
		Tower: Tower{Width: h.Width, Hidden: h.Hidden, Layers: h.Layers, Heads: h.Heads, HeadSize: perHead(h.Width, h.Heads, nil), Epsilon: 1e-12, Activation: h.Activation},
	}
	err := h.setHead(c)
	return Config{Architecture: architecture, Text: c}, cmp.Or(err, divided(c.Tower, nil))
}

// hfRope is a rotation of config.json.
type hfRope struct {
	Type  string   `json:"rope_type"`
	Theta *float64 `json:"rope_theta"`
}

// base returns the base of the angles, from the current field, an older one, or a default.
func (r hfRope) base(older *float64, otherwise float64) (float64, error) {
	if r.Type != "" && r.Type != "default" {
		return 0, ir.Errorf(ir.ErrUnsupported, "rope_type is %q: it must be default", r.Type)
	}
	for _, p := range []*float64{r.Theta, older} {
		if p != nil {
			return *p, nil
		}
	}
	return otherwise, nil
}

func readModernBERT(architecture string, data []byte) (Config, error) {
	h := struct {
		hfHead
		Width          int      `json:"hidden_size"`
		Hidden         int      `json:"intermediate_size"`
		Layers         int      `json:"num_hidden_layers"`
		Heads          int      `json:"num_attention_heads"`
		Vocabulary     int      `json:"vocab_size"`
		Context        int      `json:"max_position_embeddings"`
		Epsilon        float64  `json:"norm_eps"`
		Activation     string   `json:"hidden_activation"`
		Types          []string `json:"layer_types"`
		Every          int      `json:"global_attn_every_n_layers"`
		Local          int      `json:"local_attention"`
		GlobalTheta    *float64 `json:"global_rope_theta"`
		LocalTheta     *float64 `json:"local_rope_theta"`
		NormBias       bool     `json:"norm_bias"`
		AttentionBias  bool     `json:"attention_bias"`
		MLPBias        bool     `json:"mlp_bias"`
		HeadBias       bool     `json:"classifier_bias"`
		ScoreBias      bool     `json:"decoder_bias"`
		Pooling        string   `json:"classifier_pooling"`
		HeadActivation string   `json:"classifier_activation"`
		Rope           struct {
			Full    hfRope `json:"full_attention"`
			Sliding hfRope `json:"sliding_attention"`
		} `json:"rope_parameters"`
	}{
		Width: 768, Hidden: 1152, Layers: 22, Heads: 12, Vocabulary: 50368, Context: 8192, Epsilon: 1e-5, Activation: "gelu",
		Every: 3, Local: 128, ScoreBias: true, Pooling: "cls", HeadActivation: "gelu",
	}
	if err := hfconfig.Parse(data, &h); err != nil {
		return Config{}, err
	}
	c := &Text{
		Family: architecture, Vocabulary: h.Vocabulary, Context: h.Context, Window: h.Local / 2,
		Tower:         Tower{Width: h.Width, Hidden: h.Hidden, Layers: h.Layers, Heads: h.Heads, HeadSize: perHead(h.Width, h.Heads, nil), Epsilon: h.Epsilon, Activation: h.Activation},
		AttentionBias: h.AttentionBias, MLPBias: h.MLPBias, NormBias: h.NormBias, HeadBias: h.HeadBias, ScoreBias: h.ScoreBias,
		HeadActivation: h.HeadActivation, MeanPooled: h.Pooling == "mean",
	}
	err := h.setHead(c)
	if h.Pooling != "mean" && h.Pooling != "cls" {
		err = cmp.Or(err, ir.Errorf(ir.ErrUnsupported, "classifier_pooling is %q: it must be cls or mean", h.Pooling))
	}
	if err := cmp.Or(err, divided(c.Tower, nil), c.Tower.Check()); err != nil {
		return Config{}, err
	}
	if err := c.windows(h.Types, h.Every); err != nil {
		return Config{}, err
	}
	c.GlobalBase, err = h.Rope.Full.base(h.GlobalTheta, 160000)
	if err == nil {
		c.LocalBase, err = h.Rope.Sliding.base(h.LocalTheta, 10000)
	}
	return Config{Architecture: architecture, Text: c}, err
}

// windows sets which layers have a window: by name, or all but each nth.
func (c *Text) windows(types []string, every int) (err error) {
	if types != nil {
		c.Windowed, err = hfconfig.Windowed(types)
		return err
	}
	if every < 1 {
		return badConfig("global_attn_every_n_layers is %d: it must be in [1, %d]", every, math.MaxInt32)
	}
	c.Windowed = make([]bool, c.Layers)
	for i := range c.Windowed {
		c.Windowed[i] = i%every != 0
	}
	return nil
}

// pair is a number for both axes, or one for each.
type pair [2]int

// UnmarshalJSON implements [json.Unmarshaler].
func (p *pair) UnmarshalJSON(data []byte) error {
	var n int
	if json.Unmarshal(data, &n) == nil {
		*p = pair{n, n}
		return nil
	}
	var list []int
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) != 2 {
		return fmt.Errorf("%d sizes: there must be a height and a width", len(list))
	}
	*p = pair(list)
	return nil
}

// hfVision are the fields of towers for images.
type hfVision struct {
	Width      int     `json:"hidden_size"`
	Hidden     int     `json:"intermediate_size"`
	Layers     int     `json:"num_hidden_layers"`
	Heads      int     `json:"num_attention_heads"`
	Epsilon    float64 `json:"layer_norm_eps"`
	Activation string  `json:"hidden_act"`
	Size       pair    `json:"image_size"`
	Patch      pair    `json:"patch_size"`
	Channels   int     `json:"num_channels"`
}

func (h hfVision) image() (Image, error) {
	c := Image{
		Tower: Tower{Width: h.Width, Hidden: h.Hidden, Layers: h.Layers, Heads: h.Heads, HeadSize: perHead(h.Width, h.Heads, nil), Epsilon: h.Epsilon, Activation: h.Activation},
		Size:  h.Size, Patch: h.Patch, Channels: h.Channels,
	}
	return c, divided(c.Tower, nil)
}

func readViT(architecture string, data []byte) (Config, error) {
	h := struct {
		hfHead
		hfVision
		Bias   bool   `json:"qkv_bias"`
		Pooler string `json:"pooler_act"`
	}{
		hfVision: hfVision{Width: 768, Hidden: 3072, Layers: 12, Heads: 12, Epsilon: 1e-12, Activation: "gelu", Size: pair{224, 224}, Patch: pair{16, 16}, Channels: 3},
		Bias:     true, Pooler: "tanh",
	}
	if err := hfconfig.Parse(data, &h); err != nil {
		return Config{}, err
	}
	if h.Pooler != "tanh" {
		return Config{}, ir.Errorf(ir.ErrUnsupported, "pooler_act is %q: it must be tanh", h.Pooler)
	}
	c, err := h.image()
	labels, err2 := h.labels()
	c.NoQKVBias, c.Labels, c.Independent = !h.Bias, labels, h.independent()
	if h.head() == LabelHead {
		c.Head = LabelHead
	}
	return Config{Architecture: architecture, Image: &c}, cmp.Or(err, err2)
}

func readCLIP(architecture string, data []byte) (Config, error) {
	type text struct {
		Width      int     `json:"hidden_size"`
		Hidden     int     `json:"intermediate_size"`
		Layers     int     `json:"num_hidden_layers"`
		Heads      int     `json:"num_attention_heads"`
		Vocabulary int     `json:"vocab_size"`
		Context    int     `json:"max_position_embeddings"`
		Epsilon    float64 `json:"layer_norm_eps"`
		Activation string  `json:"hidden_act"`
		End        int     `json:"eos_token_id"`
	}
	h := struct {
		Text       text     `json:"text_config"`
		Vision     hfVision `json:"vision_config"`
		Projection int      `json:"projection_dim"`
	}{
		text{512, 2048, 12, 8, 49408, 77, 1e-5, "quick_gelu", 49407},
		hfVision{768, 3072, 12, 12, 1e-5, "quick_gelu", pair{224, 224}, pair{32, 32}, 3},
		512,
	}
	if err := hfconfig.Parse(data, &h); err != nil {
		return Config{}, err
	}
	image, err := h.Vision.image()
	t := h.Text
	c := &ImageText{Image: image, Projection: h.Projection, End: t.End, Text: Text{
		Vocabulary: t.Vocabulary, Context: t.Context,
		Tower: Tower{Width: t.Width, Hidden: t.Hidden, Layers: t.Layers, Heads: t.Heads, HeadSize: perHead(t.Width, t.Heads, nil), Epsilon: t.Epsilon, Activation: t.Activation},
	}}
	if c.End == 2 { // files of the library's first version, whose end token was the largest
		c.End = 0
	}
	return Config{Architecture: architecture, ImageText: c}, cmp.Or(err, divided(c.Text.Tower, nil))
}

func readWhisper(architecture string, data []byte) (Config, error) {
	h := struct {
		Width         int    `json:"d_model"`
		EncoderLayers int    `json:"encoder_layers"`
		EncoderHeads  int    `json:"encoder_attention_heads"`
		EncoderHidden int    `json:"encoder_ffn_dim"`
		DecoderLayers int    `json:"decoder_layers"`
		DecoderHeads  int    `json:"decoder_attention_heads"`
		DecoderHidden int    `json:"decoder_ffn_dim"`
		Vocabulary    int    `json:"vocab_size"`
		Mels          int    `json:"num_mel_bins"`
		Frames        int    `json:"max_source_positions"`
		Context       int    `json:"max_target_positions"`
		Activation    string `json:"activation_function"`
		Scaled        bool   `json:"scale_embedding"`
	}{384, 4, 6, 1536, 4, 6, 1536, 51865, 80, 1500, 448, "gelu", false}
	if err := hfconfig.Parse(data, &h); err != nil {
		return Config{}, err
	}
	tower := func(layers, heads, hidden int) Tower {
		return Tower{Width: h.Width, Hidden: hidden, Layers: layers, Heads: heads, HeadSize: perHead(h.Width, heads, nil), Epsilon: 1e-5, Activation: h.Activation}
	}
	c := &Speech{
		Encoder: tower(h.EncoderLayers, h.EncoderHeads, h.EncoderHidden), Decoder: tower(h.DecoderLayers, h.DecoderHeads, h.DecoderHidden),
		Vocabulary: h.Vocabulary, Context: h.Context, Mels: h.Mels, Frames: h.Frames, Rate: 16000, Transform: 400, Hop: 160,
	}
	if h.Scaled {
		c.EmbeddingScale = math.Sqrt(float64(max(h.Width, 0)))
	}
	return Config{Architecture: architecture, Speech: c}, cmp.Or(divided(c.Encoder, nil), divided(c.Decoder, nil))
}
