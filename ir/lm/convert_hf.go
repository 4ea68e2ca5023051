package lm

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
)

// Entry is a tensor of a Hugging Face file to write.
type Entry struct {
	Name  string
	DType ir.DType
	Dims  []int
	// Write writes the elements, little endian and row-major.
	Write func(w io.Writer) error
}

// HFOptions are the options of [ToHF].
type HFOptions struct {
	// DType is the element type of matrices: f32, f16 or bf16. The zero value keeps that of the file, and
	// has f32 for packed blocks. Vectors are f32.
	DType ir.DType
	// Config are more keys of config.json, as bos_token_id.
	Config map[string]any
}

// ToHF returns a decoder's file in the format of Hugging Face: the text of config.json and the
// tensors of model.safetensors, with the names and layout of transformers. Each tensor is read and
// converted only while it is written. The error is of kind [ir.ErrUnsupported] for a field that
// config.json cannot express, which it names, [ir.ErrDType] for another element type, and otherwise
// those of [Bind].
func ToHF(c Config, t Tensors, o HFOptions) (config []byte, tensors []Entry, err error) {
	if d := o.DType; d.Valid() && d != ir.F32 && d != ir.F16 && d != ir.BF16 {
		return nil, nil, ir.DTypef("matrices are to be %s: they must be f32, f16 or bf16", d)
	}
	v, err := newConverter(c, t)
	if err != nil {
		return nil, nil, err
	}
	h := &hfWriter{v, o}
	if config, err = h.text(); err != nil {
		return nil, nil, err
	}
	for _, p := range v.parameters {
		tensors = append(tensors, h.entry(p))
	}
	return config, tensors, nil
}

type hfWriter struct {
	*converter
	o HFOptions
}

// entry returns the tensor of a parameter.
func (h *hfWriter) entry(p ir.Port) Entry {
	dims, _ := p.Value.Shape().Ints()
	e := Entry{Name: strings.ReplaceAll(p.Name, "/", "."), DType: ir.F32, Dims: dims}
	inOut := h.config.Architecture == "gpt2" && len(dims) == 2 && h.isLinear(p.Name)
	if inOut {
		e.Dims = []int{dims[1], dims[0]}
	}
	if len(dims) > 1 {
		if e.DType = h.o.DType; !e.DType.Valid() {
			if e.DType = h.of[p.Name].info.DType; !e.DType.Valid() {
				e.DType = ir.F32
			}
		}
	}
	e.Write = func(w io.Writer) error {
		x, err := h.floats(p)
		if err != nil {
			return err
		}
		if n := h.heads(p.Name); n > 0 && h.config.Rope.Interleaved && !h.f.neighbours {
			x = paired(x, n, dims[0], true)
		}
		if offset := normOffset(h.config.Architecture); offset != 0 && isNormWeight(p.Name) {
			for i := range x {
				x[i] -= offset
			}
		}
		data, err := bytesAs(e.DType, x)
		if inOut {
			data = permute.Axes(data, e.DType.Size(), dims, []int{1, 0})
		}
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	return e
}

// normOffset returns the NormOffset of a family's safetensors.
func normOffset(architecture string) float32 {
	if strings.HasPrefix(architecture, "gemma") || architecture == "nemotron" {
		return 1
	}
	return 0
}

// bytesAs returns floats as elements of a type.
func bytesAs(d ir.DType, x []float32) ([]byte, error) {
	if d == ir.F32 {
		return binary.Append(nil, binary.LittleEndian, x)
	}
	a := ir.NewArray(d, len(x))
	for i, v := range x {
		a.F[i] = d.Round(float64(v))
	}
	return a.Bytes(), nil
}

// classes are the models' classes of transformers, by model_type.
var classes = map[string]string{
	"llama": "Llama", "mistral": "Mistral", "mixtral": "Mixtral", "qwen2": "Qwen2", "qwen3": "Qwen3",
	"gemma": "Gemma", "gemma2": "Gemma2", "gemma3_text": "Gemma3", "phi3": "Phi3", "gpt2": "GPT2",
	"qwen2_moe": "Qwen2Moe", "qwen3_moe": "Qwen3Moe", "olmo2": "Olmo2", "olmo3": "Olmo3", "olmoe": "Olmoe", "granite": "Granite", "smollm3": "SmolLM3", "starcoder2": "Starcoder2",
	"cohere": "Cohere", "cohere2": "Cohere2", "ernie4_5": "Ernie4_5", "exaone4": "Exaone4", "glm4": "Glm4", "seed_oss": "SeedOss", "stablelm": "StableLm",
	"arcee": "Arcee", "nemotron": "Nemotron", "phi": "Phi",
}

// text returns config.json. It reads the result back to check that no field is lost.
func (h *hfWriter) text() ([]byte, error) {
	c := h.config
	kind := c.Architecture
	switch {
	case kind == "gemma3":
		kind = "gemma3_text"
	case kind == "llama" && c.Window > 0: // of one architecture in GGUF
		kind = "mistral"
	}
	class := classes[kind] + "ForCausalLM"
	if kind == "gpt2" {
		class = "GPT2LMHeadModel"
	}
	all := map[string]any{
		"model_type": kind, "architectures": []string{class}, "vocab_size": c.Vocabulary, "tie_word_embeddings": c.Tied,
	}
	if kind == "gpt2" {
		gpt2Keys(all, c)
	} else if err := decoderKeys(all, c); err != nil {
		return nil, err
	}
	maps.Copy(all, h.o.Config)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, badConfig("config.json: %v", err)
	}
	read, err := ReadConfig(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), lossless(c.canonical(), read.canonical(), "config.json")
}

func gpt2Keys(all map[string]any, c Config) {
	all["n_embd"], all["n_layer"], all["n_head"], all["n_positions"], all["n_inner"] = c.Width, c.Layers, c.Heads, c.Context, c.Hidden
	all["layer_norm_epsilon"], all["activation_function"] = shortest(c.Epsilon), "gelu_new"
}

// decoderKeys sets the keys of all families but GPT-2.
func decoderKeys(all map[string]any, c Config) error {
	for key, n := range map[string]int{
		"hidden_size": c.Width, "intermediate_size": c.Hidden, "num_hidden_layers": c.Layers, "num_attention_heads": c.Heads,
		"num_key_value_heads": c.KVHeads, "head_dim": c.HeadSize, "max_position_embeddings": c.Context,
	} {
		all[key] = n
	}
	all["rms_norm_eps"] = shortest(c.Epsilon)
	all["attention_bias"], all["mlp_bias"] = c.QKVBias, c.MLPBias
	switch act := map[nn.Activation]string{nn.Silu: "silu", nn.Gelu: "gelu", nn.GeluTanh: "gelu_pytorch_tanh", nn.Relu: "relu", nn.Relu2: "relu2"}[c.Activation]; {
	case strings.HasPrefix(c.Architecture, "gemma"):
		all["hidden_activation"] = act
	default:
		all["hidden_act"] = act
	}
	familyKeys(all, c)
	windowKeys(all, c)
	if c.Architecture == "gemma2" || c.Architecture == "gemma3" {
		scale := c.Scale
		if scale == 0 {
			scale = 1 / math.Sqrt(float64(c.HeadSize))
		}
		all["query_pre_attn_scalar"] = shortest(1 / (scale * scale))
		all["attn_logit_softcapping"], all["final_logit_softcapping"] = orNull(c.ScoreSoftcap), orNull(c.LogitSoftcap)
	}
	return ropeKeys(all, c)
}

// familyKeys sets the keys that only some families have.
func familyKeys(all map[string]any, c Config) {
	switch c.Architecture {
	case "mixtral":
		all["num_local_experts"], all["num_experts_per_tok"] = c.Experts, c.ExpertsPerToken
	case "qwen2_moe", "qwen3_moe", "olmoe":
		all["num_experts"], all["num_experts_per_tok"] = c.Experts, c.ExpertsPerToken
		if c.Architecture != "olmoe" {
			all["moe_intermediate_size"] = c.Hidden
		}
		all["norm_topk_prob"], all["shared_expert_intermediate_size"], all["qkv_bias"] = !c.RawShares, c.SharedHidden, c.QKVBias
	case "granite":
		all["embedding_multiplier"], all["residual_multiplier"] = shortest(c.EmbeddingScale), shortest(c.ResidualScale)
		all["attention_multiplier"], all["logits_scaling"] = shortest(c.Scale), shortest(1/c.LogitScale)
	case "smollm3":
		rotated := make([]int, c.Layers)
		for i := range rotated {
			if c.Unrotated == nil || !c.Unrotated[i] {
				rotated[i] = 1
			}
		}
		all["no_rope_layers"] = rotated
	case "starcoder2":
		all["use_bias"], all["norm_epsilon"] = c.QKVBias, shortest(c.Epsilon)
	case "cohere", "cohere2":
		all["layer_norm_eps"], all["logit_scale"] = shortest(c.Epsilon), shortest(c.LogitScale)
	case "nemotron":
		all["norm_eps"] = shortest(c.Epsilon)
	case "phi":
		all["layer_norm_eps"] = shortest(c.Epsilon)
	case "ernie4_5":
		all["use_bias"] = c.QKVBias
	case "seed_oss":
		all["attention_out_bias"] = c.OutBias
	case "stablelm":
		all["layer_norm_eps"], all["use_qkv_bias"], all["use_parallel_residual"] = shortest(c.Epsilon), c.QKVBias, c.Parallel
	}
}

// orNull returns nil for 0.
func orNull(x float64) any {
	if x == 0 {
		return nil
	}
	return shortest(x)
}

// shortest returns the shortest decimal that is the same in f32, for a number that metadata of GGUF had in f32:
// 1e-05 in place of 9.999999747378752e-06.
func shortest(x float64) float64 {
	if float64(float32(x)) != x {
		return x
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', -1, 32), 64)
	if err != nil {
		return x
	}
	return short
}

func windowKeys(all map[string]any, c Config) {
	if c.Window == 0 {
		if c.Architecture == "mistral" || c.Architecture == "mixtral" || c.Architecture == "phi3" {
			all["sliding_window"] = nil
		}
		return
	}
	all["sliding_window"] = c.Window
	if strings.HasPrefix(c.Architecture, "qwen") {
		all["use_sliding_window"] = true
	}
	if c.Windowed == nil {
		return
	}
	types := make([]string, c.Layers)
	for i, w := range c.Windowed {
		if types[i] = "full_attention"; w {
			types[i] = "sliding_attention"
		}
	}
	all["layer_types"] = types
}

// ropeKeys sets rope_theta and rope_scaling.
func ropeKeys(all map[string]any, c Config) error {
	r := c.Rope
	if r == nil {
		return ir.Errorf(ir.ErrUnsupported, "config.json of %s cannot express that positions are learned", c.Architecture)
	}
	all["rope_theta"] = shortest(r.Base)
	if r.LocalBase != 0 {
		all["rope_local_base_freq"] = shortest(r.LocalBase)
	}
	switch c.Architecture {
	case "glm4", "nemotron", "phi", "stablelm": // a part rotates by default
		all["partial_rotary_factor"] = float64(r.Size) / float64(c.HeadSize)
	}
	if r.Size != c.HeadSize {
		all["partial_rotary_factor"] = float64(r.Size) / float64(c.HeadSize)
	}
	s, original, ok := r.scaling(c.Context)
	if !ok {
		return ir.Errorf(ir.ErrUnsupported, "config.json has no rule of rope_scaling by which the angles are divided by %v", r.Divisors)
	}
	switch s.Type {
	case "default":
		return nil
	case "longrope":
		all["original_max_position_embeddings"] = original
		all["rope_scaling"] = map[string]any{
			"rope_type": s.Type, "short_factor": s.Short, "long_factor": s.LongFactor,
			"original_max_position_embeddings": original, "attention_factor": shortest(r.Amplitude),
		}
		return nil
	}
	scaling := map[string]any{"rope_type": s.Type, "factor": s.Factor}
	switch s.Type {
	case "llama3":
		scaling["low_freq_factor"], scaling["high_freq_factor"] = s.LowFrequency, s.HighFrequency
		scaling["original_max_position_embeddings"] = original
	case "yarn":
		scaling["original_max_position_embeddings"] = original
	}
	all["rope_scaling"] = scaling
	return nil
}
