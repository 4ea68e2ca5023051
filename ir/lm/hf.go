package lm

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"strings"

	"github.com/rlx-go/rlx/internal/hfconfig"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
)

// hfConfig is config.json in the form of transformers' configuration classes. Optional numbers are
// pointers.
type hfConfig struct {
	ModelType  string          `json:"model_type"`
	TextConfig json.RawMessage `json:"text_config"`

	Width   int  `json:"hidden_size"`
	Hidden  int  `json:"intermediate_size"`
	Layers  int  `json:"num_hidden_layers"`
	Heads   int  `json:"num_attention_heads"`
	KVHeads *int `json:"num_key_value_heads"`
	Size    *int `json:"head_dim"`
	Vocab   int  `json:"vocab_size"`
	Context int  `json:"max_position_embeddings"`

	GPTWidth   int  `json:"n_embd"`
	GPTLayers  int  `json:"n_layer"`
	GPTHeads   int  `json:"n_head"`
	GPTInner   *int `json:"n_inner"`
	GPTContext int  `json:"n_positions"`

	RMSEpsilon   *float64 `json:"rms_norm_eps"`
	LayerEpsilon *float64 `json:"layer_norm_epsilon"`
	Act          string   `json:"hidden_act"`
	Activation   string   `json:"hidden_activation"`
	GPTAct       string   `json:"activation_function"`

	Theta      *float64        `json:"rope_theta"`
	LocalTheta *float64        `json:"rope_local_base_freq"`
	Scaling    json.RawMessage `json:"rope_scaling"`
	Parameters json.RawMessage `json:"rope_parameters"`
	Partial    *float64        `json:"partial_rotary_factor"`
	Original   *int            `json:"original_max_position_embeddings"`

	Window        *int     `json:"sliding_window"`
	UseWindow     *bool    `json:"use_sliding_window"`
	WindowLayers  *int     `json:"max_window_layers"`
	LayerTypes    []string `json:"layer_types"`
	WindowPattern *pattern `json:"sliding_window_pattern"`

	Bias        *bool    `json:"attention_bias"`
	MLPBias     *bool    `json:"mlp_bias"`
	Tied        *bool    `json:"tie_word_embeddings"`
	QueryScalar *float64 `json:"query_pre_attn_scalar"`
	ScoreCap    *float64 `json:"attn_logit_softcapping"`
	LogitCap    *float64 `json:"final_logit_softcapping"`
	Unscaled    *bool    `json:"scale_attn_weights"`
	ByLayer     bool     `json:"scale_attn_by_inverse_layer_idx"`
	CrossAttend bool     `json:"add_cross_attention"`
	ClipQKV     *float64 `json:"clip_qkv"` // of OLMoE
	Bidirection bool     `json:"use_bidirectional_attention"`

	Experts      int   `json:"num_local_experts"`
	PerToken     *int  `json:"num_experts_per_tok"`
	QwenExperts  int   `json:"num_experts"`
	ExpertHidden int   `json:"moe_intermediate_size"`
	SharedHidden int   `json:"shared_expert_intermediate_size"`
	NormShares   bool  `json:"norm_topk_prob"`
	SparseStep   *int  `json:"decoder_sparse_step"`
	DenseLayers  []int `json:"mlp_only_layers"`
	QKVBias      *bool `json:"qkv_bias"`

	EmbeddingScale *float64 `json:"embedding_multiplier"` // of Granite
	ResidualScale  *float64 `json:"residual_multiplier"`
	ScoreScale     *float64 `json:"attention_multiplier"`
	LogitDivisor   *float64 `json:"logits_scaling"`

	Rotated    []int `json:"no_rope_layers"` // of SmolLM3: 1 for a layer that rotates
	RotateStep *int  `json:"no_rope_layer_interval"`

	UseBias     *bool    `json:"use_bias"` // of StarCoder2
	NormEpsilon *float64 `json:"norm_epsilon"`

	NormEps    *float64 `json:"layer_norm_eps"` // of StableLM and Cohere
	UseQKVBias bool     `json:"use_qkv_bias"`
	Parallel   *bool    `json:"use_parallel_residual"`
	NormQK     bool     `json:"qk_layernorm"`
	UseNormQK  bool     `json:"use_qk_norm"`
	LogitScale *float64 `json:"logit_scale"`
	OutBias    bool     `json:"attention_out_bias"` // of Seed-OSS

	Eps        *float64 `json:"norm_eps"`   // of Nemotron
	RotaryPart *float64 `json:"rotary_pct"` // of GPT-NeoX
	RotaryBase *float64 `json:"rotary_emb_base"`
	RotarySize *int     `json:"rotary_dim"` // of GPT-J
	rotated    int      // is Rope.Size, if not 0

	FalconHidden *int   `json:"ffn_hidden_size"` // of Falcon
	FalconAct    string `json:"activation"`
	FalconBias   bool   `json:"bias"`
	OneKey       *bool  `json:"multi_query"`
	AtOnce       *bool  `json:"parallel_attn"`
	NewFalcon    bool   `json:"new_decoder_architecture"`
	ALiBi        bool   `json:"alibi"`
}

// ReadConfig reads a config.json of Hugging Face. Errors are of kind [ErrConfig], [ir.ErrUnsupported] for
// an architecture or an option that this package does not know, or those of r.
func ReadConfig(r io.Reader) (Config, error) {
	if r == nil {
		return Config{}, ir.Attrf("r is nil: it must be a reader")
	}
	data, err := hfconfig.Read(r)
	if err != nil {
		return Config{}, err
	}
	h, err := parseHF(data)
	if err != nil {
		return Config{}, err
	}
	return h.config()
}

// parseHF returns the fields of a config.json, and of those that it lacks what transformers takes for them.
func parseHF(data []byte) (*hfConfig, error) {
	h := &hfConfig{}
	if err := hfconfig.Parse(data, h); err != nil {
		return nil, err
	}
	kind := h.ModelType
	if text := h.TextConfig; len(text) > 0 && string(text) != "null" { // a model of text and images: its text part
		data, h = text, &hfConfig{}
		if err := hfconfig.Parse(data, h); err != nil {
			return nil, err
		}
		kind = cmp.Or(h.ModelType, kind)
	}
	if kind == "gemma3_text" {
		kind = "gemma3"
	}
	h = &hfConfig{}
	if missing := hfDefaults[kind]; missing != "" {
		if err := hfconfig.Parse([]byte(missing), h); err != nil {
			return nil, err
		}
	}
	if err := hfconfig.Parse(data, h); err != nil {
		return nil, err
	}
	h.ModelType = kind
	return h, nil
}

// hfDefaults are the defaults of the configuration classes of transformers where they are not those of most families: a
// config.json may lack what equals them, as those of Gemma 3 do. Null in a file is none of them.
var hfDefaults = map[string]string{
	"mistral": `{"sliding_window": 4096}`,
	"mixtral": `{"rms_norm_eps": 1e-5, "rope_theta": 1e6}`,
	"qwen3":   `{"head_dim": 128}`,
	"gemma":   `{"head_dim": 256}`,
	"gemma2":  `{"num_key_value_heads": 4, "head_dim": 256, "attn_logit_softcapping": 50, "final_logit_softcapping": 30}`,
	"gemma3":  `{"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208, "max_position_embeddings": 131072}`,
	"phi3":    `{"rms_norm_eps": 1e-5}`,
	"olmo2":   `{"rms_norm_eps": 1e-5}`,
	"olmo3":   `{"rms_norm_eps": 1e-5, "rope_theta": 5e5}`,
	"olmoe":   `{"rms_norm_eps": 1e-5}`,
	"smollm3": `{"rope_theta": 2e6}`,

	"starcoder2": `{"hidden_act": "gelu_pytorch_tanh"}`,
	"cohere":     `{"rope_theta": 5e5}`,
	"ernie4_5":   `{"rope_theta": 5e5}`,
	"exaone4":    `{"sliding_window": 4096}`,
}

// config returns what h describes.
func (h *hfConfig) config() (Config, error) {
	f, err := familyOf(h.ModelType)
	if err != nil {
		return Config{}, err
	}
	c := Config{
		Architecture: h.ModelType,
		Width:        h.Width, Hidden: h.Hidden, Layers: h.Layers, Heads: h.Heads, KVHeads: given(h.KVHeads, h.Heads),
		Vocabulary: h.Vocab, Context: h.Context, Epsilon: given(h.RMSEpsilon, 1e-6),
		Gated: true, Tied: given(h.Tied, false), Rope: &Rope{},
	}
	if c.Heads > 0 {
		c.HeadSize = given(h.Size, c.Width/c.Heads)
	}
	f.hf(&c, h)
	if c.Activation, err = activation(h.activation()); err != nil {
		return Config{}, err
	}
	if c.Window > 0 && len(h.LayerTypes) > 0 {
		if c.Windowed, err = hfconfig.Windowed(h.LayerTypes); err != nil {
			return Config{}, err
		}
	}
	if f.localRope && c.Window > 0 && c.Windowed != nil {
		c.Unrotated = inverted(c.Windowed)
	}
	if c.Rope != nil {
		if err := h.rope(&c); err != nil {
			return Config{}, err
		}
	}
	if h.ByLayer || h.CrossAttend || h.Bidirection || !given(h.Unscaled, true) {
		return Config{}, ir.Errorf(ir.ErrUnsupported, "%s with scale_attn_by_inverse_layer_idx %t, add_cross_attention %t, use_bidirectional_attention %t and scale_attn_weights %t: only the last must be true",
			h.ModelType, h.ByLayer, h.CrossAttend, h.Bidirection, given(h.Unscaled, true))
	}
	if h.NewFalcon || h.ALiBi || !given(h.AtOnce, true) {
		return Config{}, ir.Errorf(ir.ErrUnsupported, "%s has new_decoder_architecture %t, alibi %t and parallel_attn %t: only the last must be true", h.ModelType, h.NewFalcon, h.ALiBi, given(h.AtOnce, true))
	}
	if h.ClipQKV != nil {
		return Config{}, ir.Errorf(ir.ErrUnsupported, "%s has clip_qkv %v: it must be null", h.ModelType, *h.ClipQKV)
	}
	if h.NormQK || h.UseNormQK {
		return Config{}, ir.Errorf(ir.ErrUnsupported, "%s has qk_layernorm %t and use_qk_norm %t: they must be false", h.ModelType, h.NormQK, h.UseNormQK)
	}
	if given(h.SparseStep, 1) != 1 || len(h.DenseLayers) > 0 {
		return Config{}, ir.Errorf(ir.ErrUnsupported, "%s has decoder_sparse_step %d and mlp_only_layers %v: all layers must have experts", h.ModelType, given(h.SparseStep, 1), h.DenseLayers)
	}
	return c, c.Check()
}

// given returns the value that a pointer points to, or a default for nil.
func given[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func (h *hfConfig) activation() string {
	for _, name := range []string{h.Activation, h.Act, h.GPTAct, h.FalconAct} {
		if name != "" {
			return name
		}
	}
	switch h.ModelType {
	case "gemma", "gemma2", "gemma3", "gpt2", "gptj", "phi":
		return "gelu_pytorch_tanh"
	case "gpt_neox", "falcon":
		return "gelu"
	case "arcee", "nemotron":
		return "relu2"
	}
	return "silu"
}

func activation(name string) (nn.Activation, error) {
	a, ok := map[string]nn.Activation{
		"silu": nn.Silu, "swish": nn.Silu, "gelu": nn.Gelu, "gelu_new": nn.GeluTanh, "gelu_pytorch_tanh": nn.GeluTanh, "relu": nn.Relu, "relu2": nn.Relu2,
	}[name]
	if !ok {
		return "", ir.Errorf(ir.ErrUnsupported, "the activation is %q: it must be silu, gelu, gelu_new, gelu_pytorch_tanh, relu or relu2", name)
	}
	return a, nil
}

// allBut returns which of n layers have a window: all but each nth.
func allBut(layers, nth int) []bool {
	if layers < 0 || layers > maxLayers || nth < 1 {
		return nil
	}
	windowed := make([]bool, layers)
	for i := range windowed {
		windowed[i] = (i+1)%nth != 0
	}
	return windowed
}

// The families' own rules.

func llama(c *Config, h *hfConfig) {
	c.QKVBias = given(h.Bias, false)
	c.OutBias, c.MLPBias = c.QKVBias, given(h.MLPBias, false)
}

func mistral(c *Config, h *hfConfig) {
	c.Window = given(h.Window, 0)
	c.Experts, c.ExpertsPerToken = h.Experts, min(given(h.PerToken, 2), h.Experts)
}

func qwen2(c *Config, h *hfConfig) {
	c.QKVBias = true
	if given(h.UseWindow, false) {
		c.Window = given(h.Window, 0)
		from := given(h.WindowLayers, 0)
		if c.Windowed = allBut(c.Layers, 1); c.Windowed != nil {
			for i := range c.Windowed {
				c.Windowed[i] = i >= from
			}
		}
	}
}

func qwen3(c *Config, h *hfConfig) {
	qwen2(c, h)
	c.QKVBias, c.NormQK = given(h.Bias, false), true
	c.OutBias = c.QKVBias
}

func gemma(c *Config, h *hfConfig) {
	c.NormOffset, c.EmbeddingScale, c.Tied = 1, math.Sqrt(float64(max(c.Width, 0))), given(h.Tied, true)
	c.QKVBias = given(h.Bias, false)
	c.OutBias = c.QKVBias
}

func gemma2(c *Config, h *hfConfig) {
	gemma(c, h)
	c.PostNorms = true
	c.ScoreSoftcap, c.LogitSoftcap = given(h.ScoreCap, 0), given(h.LogitCap, 0)
	if s := given(h.QueryScalar, 256); s > 0 {
		c.Scale = 1 / math.Sqrt(s)
	}
	c.Window, c.Windowed = given(h.Window, 4096), allBut(c.Layers, 2)
}

func gemma3(c *Config, h *hfConfig) {
	gemma2(c, h)
	c.NormQK = true
	c.Windowed = allBut(c.Layers, int(given(h.WindowPattern, 6)))
}

func phi3(c *Config, h *hfConfig) {
	c.FusedQKV, c.FusedGateUp, c.Window = true, true, given(h.Window, 0)
}

func gpt2(c *Config, h *hfConfig) {
	c.Width, c.Layers, c.Heads, c.KVHeads, c.Context = h.GPTWidth, h.GPTLayers, h.GPTHeads, h.GPTHeads, h.GPTContext
	c.Hidden = given(h.GPTInner, 4*c.Width)
	if c.Heads > 0 {
		c.HeadSize = c.Width / c.Heads
	}
	c.LayerNorm, c.Epsilon, c.Rope, c.Gated = true, given(h.LayerEpsilon, 1e-5), nil, false
	c.QKVBias, c.OutBias, c.MLPBias, c.FusedQKV, c.InOut, c.Tied = true, true, true, true, true, given(h.Tied, true)
}

func qwen2MoE(c *Config, h *hfConfig) {
	qwen2(c, h)
	c.QKVBias = given(h.QKVBias, true)
	mixtureOfQwen(c, h)
	c.SharedHidden = h.SharedHidden
}

func qwen3MoE(c *Config, h *hfConfig) {
	qwen3(c, h)
	mixtureOfQwen(c, h)
}

func mixtureOfQwen(c *Config, h *hfConfig) {
	c.Experts = max(h.QwenExperts, h.Experts)
	c.ExpertsPerToken = min(given(h.PerToken, 8), c.Experts)
	c.Hidden, c.RawShares = h.ExpertHidden, !h.NormShares
}

func olmo2(c *Config, h *hfConfig) {
	llama(c, h)
	c.NoPreNorms, c.PostNorms, c.NormQKWhole = true, true, true
}

func olmo3(c *Config, h *hfConfig) {
	olmo2(c, h)
	c.Window, c.Windowed = given(h.Window, 4096), allBut(c.Layers, 4)
}

func olmoe(c *Config, h *hfConfig) {
	llama(c, h)
	mixtureOfQwen(c, h)
	c.Hidden, c.NormQKWhole = h.Hidden, true
}

func granite(c *Config, h *hfConfig) {
	llama(c, h)
	c.Scale, c.EmbeddingScale, c.ResidualScale = given(h.ScoreScale, 1), given(h.EmbeddingScale, 1), given(h.ResidualScale, 1)
	c.LogitScale = 1 / given(h.LogitDivisor, 1)
}

func smollm3(c *Config, h *hfConfig) {
	llama(c, h)
	c.Tied, c.Unrotated = given(h.Tied, true), eachNth(c.Layers, given(h.RotateStep, 4))
	if len(h.Rotated) > 0 {
		c.Unrotated = nil
		for _, rotated := range h.Rotated {
			c.Unrotated = append(c.Unrotated, rotated == 0)
		}
	}
	if given(h.UseWindow, false) {
		c.Window = given(h.Window, 0)
	}
}

// eachNth returns the layers that [allBut] does not.
func eachNth(layers, nth int) []bool { return inverted(allBut(layers, nth)) }

func inverted(list []bool) []bool {
	out := make([]bool, len(list))
	for i, x := range list {
		out[i] = !x
	}
	return out
}

func starcoder2(c *Config, h *hfConfig) {
	c.LayerNorm, c.Gated, c.Epsilon, c.Tied = true, false, given(h.NormEpsilon, 1e-5), given(h.Tied, true)
	c.QKVBias = given(h.UseBias, true)
	c.OutBias, c.MLPBias, c.Window = c.QKVBias, c.QKVBias, given(h.Window, 0)
}

func stableLM(c *Config, h *hfConfig) {
	c.LayerNorm, c.Epsilon, c.QKVBias, c.Parallel = true, given(h.NormEps, 1e-5), h.UseQKVBias, given(h.Parallel, false)
	h.Partial = orPointer(h.Partial, 0.25)
}

func cohere(c *Config, h *hfConfig) {
	c.LayerNorm, c.NoNormBias, c.Parallel, c.Epsilon = true, true, true, given(h.NormEps, 1e-5)
	c.Tied, c.LogitScale = given(h.Tied, true), given(h.LogitScale, 0.0625)
	c.QKVBias = given(h.Bias, false)
	c.OutBias = c.QKVBias
}

func cohere2(c *Config, h *hfConfig) {
	cohere(c, h)
	c.Window, c.Windowed = given(h.Window, 4096), allBut(c.Layers, int(given(h.WindowPattern, 4)))
}

func glm4(c *Config, h *hfConfig) {
	c.PostNorms, c.FusedGateUp, c.QKVBias = true, true, given(h.Bias, true)
	c.HeadSize, c.Epsilon = given(h.Size, 128), given(h.RMSEpsilon, 1.5625e-7)
	h.Partial = orPointer(h.Partial, 0.5)
}

func exaone4(c *Config, h *hfConfig) {
	c.NoPreNorms, c.PostNorms, c.NormQK, c.Epsilon = true, true, true, given(h.RMSEpsilon, 1e-5)
	if h.Window != nil {
		c.Window, c.Windowed = *h.Window, allBut(c.Layers, int(given(h.WindowPattern, 4)))
	}
}

func seedOSS(c *Config, h *hfConfig) {
	c.QKVBias, c.OutBias, c.MLPBias, c.HeadSize = given(h.Bias, true), h.OutBias, given(h.MLPBias, false), given(h.Size, 128)
}

func ernie(c *Config, h *hfConfig) {
	c.QKVBias, c.Tied, c.HeadSize, c.Epsilon = given(h.UseBias, false), given(h.Tied, true), given(h.Size, 128), given(h.RMSEpsilon, 1e-5)
	c.OutBias, c.MLPBias = c.QKVBias, c.QKVBias
}

func arcee(c *Config, h *hfConfig) {
	llama(c, h)
	c.Gated, c.Epsilon = false, given(h.RMSEpsilon, 1e-5)
}

func nemotron(c *Config, h *hfConfig) {
	llama(c, h)
	c.LayerNorm, c.NormOffset, c.Gated, c.Epsilon = true, 1, false, given(h.Eps, 1e-5)
	h.Partial = orPointer(h.Partial, 0.5)
}

func phi(c *Config, h *hfConfig) {
	c.LayerNorm, c.Parallel, c.Gated, c.Epsilon = true, true, false, given(h.NormEps, 1e-5)
	c.QKVBias, c.OutBias, c.MLPBias, c.HeadBias = true, true, true, true
	h.Partial = orPointer(h.Partial, 0.5)
}

func gptNeoX(c *Config, h *hfConfig) {
	c.LayerNorm, c.Gated, c.Epsilon, c.Parallel = true, false, given(h.NormEps, 1e-5), given(h.Parallel, true)
	c.ParallelNorms, c.FusedQKV, c.GroupedQKV = c.Parallel, true, true
	c.QKVBias, c.MLPBias = given(h.Bias, true), true
	c.OutBias = c.QKVBias
	h.Partial, h.Theta = orPointer(h.Partial, given(h.RotaryPart, 0.25)), orPointer(h.Theta, given(h.RotaryBase, 10000))
}

func gptJ(c *Config, h *hfConfig) {
	gpt2(c, h)
	c.Rope, c.Parallel, c.Tied, c.HeadBias = &Rope{}, true, given(h.Tied, false), true
	c.QKVBias, c.OutBias, c.FusedQKV, c.InOut = false, false, false, false
	h.rotated = given(h.RotarySize, 64)
}

// falcon has the blocks of Falcon-7B, whose queries share one key.
func falcon(c *Config, h *hfConfig) {
	c.Hidden, c.Context, c.Tied = given(h.FalconHidden, 4*c.Width), cmp.Or(c.Context, 2048), given(h.Tied, true)
	c.LayerNorm, c.Gated, c.Parallel, c.FusedQKV, c.Epsilon = true, false, true, true, given(h.LayerEpsilon, 1e-5)
	c.QKVBias, c.OutBias, c.MLPBias = h.FalconBias, h.FalconBias, h.FalconBias
	if c.KVHeads = c.Heads; given(h.OneKey, true) {
		c.KVHeads = 1
	}
	c.GroupedQKV = c.KVHeads > 1
}

// pattern is the number of layers from one without a window to the next: a number, or as EXAONE has it a text such as "LLLG".
type pattern int

// UnmarshalJSON implements [json.Unmarshaler].
func (p *pattern) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*int)(p))
	}
	if strings.TrimLeft(text, "L") != "G" {
		return ir.Errorf(ir.ErrUnsupported, "sliding_window_pattern is %q: it must be a number, or an L for each layer with a window and then a G", text)
	}
	*p = pattern(len(text))
	return nil
}
