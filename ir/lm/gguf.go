package lm

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/nn"
)

// keyValues are the metadata and the tensor list of a GGUF file: a [*gguf.File].
type keyValues interface {
	Value(key string) any
	Text(key string) (string, bool)
	Int(key string) (int64, bool)
	Float(key string) (float64, bool)
	Info(tensor string) (gguf.Info, bool)
	Floats(tensor string) ([]float32, error)
}

// metadata reads the keys of a file's architecture.
type metadata struct {
	keyValues
	prefix string
	err    error
}

// FromGGUF returns the configuration in the metadata of a GGUF file. Errors are of kind [ErrConfig], and
// [ir.ErrUnsupported] for an architecture that this package does not know.
func FromGGUF(file *gguf.File) (Config, error) {
	if file == nil {
		return Config{}, ir.Attrf("file is nil: it must be an open file")
	}
	return fromGGUF(file)
}

func fromGGUF(file keyValues) (Config, error) {
	name, ok := file.Text("general.architecture")
	if !ok {
		return Config{}, badConfig("general.architecture is no text")
	}
	m := &metadata{keyValues: file, prefix: name + "."}
	architecture := name
	if experts := m.int("expert_count", 0); name == "llama" && experts > 0 {
		architecture = "mixtral"
	} else if name == "olmo2" && m.int("attention.sliding_window", 0) > 0 {
		architecture = "olmo3"
	} else if _, known := families[name]; !known {
		for key, f := range families {
			if f.gguf == name {
				architecture = key
			}
		}
	}
	f, ok := families[architecture]
	if !ok || f.gguf != name || name == "" {
		return Config{}, ir.Errorf(ir.ErrUnsupported, "general.architecture is %q: it must be one of %s", name, strings.Join(inFiles(), ", "))
	}
	c := m.config(architecture, f)
	if m.err != nil {
		return Config{}, m.err
	}
	return c, c.Check()
}

// inFiles returns the architectures of GGUF files that this package knows, sorted.
func inFiles() []string {
	all := map[string]bool{}
	for _, f := range families {
		if f.gguf != "" {
			all[f.gguf] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// int returns an integer, or a default if there is none. The elements of a list with one number per
// layer must be equal.
func (m *metadata) int(key string, otherwise int) int {
	switch v := m.Value(m.prefix + key).(type) {
	case nil:
		return otherwise
	case []int32:
		return same(m, key, v)
	case []uint32:
		return same(m, key, v)
	}
	n, ok := m.Int(m.prefix + key)
	if !ok || n != int64(int32(n)) {
		m.fail(badConfig("%s is %v: it must be an integer of 32 bits", m.prefix+key, m.Value(m.prefix+key)))
	}
	return int(n)
}

// same returns the single value of a list with one number per layer.
func same[T int32 | uint32](m *metadata, key string, list []T) int {
	for _, x := range list {
		if x != list[0] || int64(x) > math.MaxInt32 {
			m.fail(ir.Errorf(ir.ErrUnsupported, "%s is %v: it must be the same for all layers", m.prefix+key, list))
			return 0
		}
	}
	if len(list) == 0 {
		m.fail(badConfig("%s is an empty list: it must have a number for each layer", m.prefix+key))
		return 0
	}
	return int(list[0])
}

func (m *metadata) float(key string, otherwise float64) float64 {
	if m.Value(m.prefix+key) == nil {
		return otherwise
	}
	x, ok := m.Float(m.prefix + key)
	if !ok {
		m.fail(badConfig("%s is %v: it must be a float", m.prefix+key, m.Value(m.prefix+key)))
	}
	return x
}

func (m *metadata) flag(key string, otherwise bool) bool {
	switch v := m.Value(m.prefix + key).(type) {
	case nil:
		return otherwise
	case bool:
		return v
	}
	m.fail(badConfig("%s is %v: it must be true or false", m.prefix+key, m.Value(m.prefix+key)))
	return false
}

func (m *metadata) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// has reports whether the file has a tensor.
func (m *metadata) has(tensor string) bool {
	_, ok := m.Info(tensor)
	return ok
}

func (m *metadata) config(architecture string, f family) Config {
	c := Config{
		Architecture: architecture,
		Width:        m.int("embedding_length", 0), Hidden: m.int("feed_forward_length", 0), Layers: m.int("block_count", 0),
		Heads: m.int("attention.head_count", 0), Context: m.int("context_length", 0), Vocabulary: m.vocabulary(),
		Epsilon:         m.float("attention.layer_norm_rms_epsilon", 1e-6),
		Window:          m.int("attention.sliding_window", 0),
		Experts:         m.int("expert_count", 0),
		ExpertsPerToken: m.int("expert_used_count", 0),
		ScoreSoftcap:    m.float("attn_logit_softcapping", 0), LogitSoftcap: m.float("final_logit_softcapping", 0),
		Activation: nn.Silu, Gated: true,
		Tied:    !m.has("output.weight"),
		QKVBias: m.has("blk.0.attn_q.bias") || m.has("blk.0.attn_qkv.bias"), OutBias: m.has("blk.0.attn_output.bias"), MLPBias: m.has("blk.0.ffn_up.bias"), HeadBias: m.has("output.bias"),
		NormQK:   m.has("blk.0.attn_q_norm.weight"),
		FusedQKV: f.qkv != "", FusedGateUp: f.gateUp != "", PostNorms: f.post1 != "", NoPreNorms: f.norm1 == "",
	}
	c.KVHeads = m.int("attention.head_count_kv", c.Heads)
	if c.Heads > 0 {
		c.HeadSize = m.int("attention.key_length", c.Width/c.Heads)
	}
	if v := m.int("attention.value_length", c.HeadSize); v != c.HeadSize {
		m.fail(ir.Errorf(ir.ErrUnsupported, "%sattention.value_length is %d: it must be as key_length, %d", m.prefix, v, c.HeadSize))
	}
	m.special(&c)
	if f.localRope {
		m.windows(&c)
	}
	if f.positions == "" {
		c.Rope = m.rope(c, f)
	} else {
		c.Gated, c.Activation = false, nn.GeluTanh
		m.layerNorm(&c)
	}
	return c
}

// layerNorm sets the fields of norms by mean and variance. Those of queries and keys have a weight for each head, and are
// refused.
func (m *metadata) layerNorm(c *Config) {
	c.LayerNorm, c.Epsilon = true, m.float("attention.layer_norm_epsilon", 1e-5)
	if c.NormQK {
		m.fail(ir.Errorf(ir.ErrUnsupported, "%s has blk.0.attn_q_norm.weight: queries and keys must have no norms", c.Architecture))
	}
}

// windows sets the layers that have the window, which alone rotate: each period has one without, the last, or the
// metadata list them.
func (m *metadata) windows(c *Config) {
	if c.Window == 0 {
		return
	}
	const key = "attention.sliding_window_pattern"
	if list, ok := m.Value(m.prefix + key).([]bool); ok {
		c.Windowed = list
	} else {
		c.Windowed = allBut(c.Layers, m.int(key, 4))
	}
	c.Unrotated = inverted(c.Windowed)
}

// vocabulary returns the rows of the table of embeddings.
func (m *metadata) vocabulary() int {
	if i, ok := m.Info("token_embd.weight"); ok && len(i.Dims) == 2 {
		return i.Dims[0]
	}
	m.fail(badConfig("token_embd.weight is no matrix of the file"))
	return 0
}

// special sets fields missing from the metadata to llama.cpp's values for these architectures.
func (m *metadata) special(c *Config) {
	switch c.Architecture {
	case "gemma", "gemma2", "gemma3":
		c.Activation, c.EmbeddingScale = nn.GeluTanh, math.Sqrt(float64(max(c.Width, 0)))
	}
	switch c.Architecture {
	case "qwen2_moe":
		c.Hidden, c.SharedHidden, c.RawShares = m.int("expert_feed_forward_length", 0), m.int("expert_shared_feed_forward_length", 0), true
	case "qwen3_moe":
		c.Hidden = m.int("expert_feed_forward_length", 0)
	case "olmo2", "olmoe":
		c.NormQK, c.NormQKWhole, c.RawShares = false, c.NormQK, c.Experts > 0
	case "olmo3":
		c.NormQK, c.NormQKWhole, c.Windowed = false, c.NormQK, allBut(c.Layers, 4)
	case "granite":
		c.EmbeddingScale, c.ResidualScale, c.Scale = m.float("embedding_scale", 1), m.float("residual_scale", 1), m.float("attention.scale", 0)
		c.LogitScale = 1 / m.float("logit_scale", 1)
	case "smollm3":
		c.Unrotated = eachNth(c.Layers, 4)
	case "starcoder2", "phi":
		c.Gated, c.Activation, c.Parallel = false, nn.GeluTanh, c.Architecture == "phi"
		m.layerNorm(c)
	case "arcee":
		c.Gated, c.Activation = false, nn.Relu2
	case "nemotron":
		c.Gated, c.Activation = false, nn.Relu2
		m.layerNorm(c)
	case "falcon", "gpt_neox":
		c.Gated, c.Activation, c.Parallel = false, nn.Gelu, c.Architecture == "falcon" || m.flag("use_parallel_residual", true)
		c.ParallelNorms = c.Parallel && c.Architecture == "gpt_neox"
		m.layerNorm(c)
	case "stablelm":
		c.Parallel = !m.has("blk.0.ffn_norm.weight")
		m.layerNorm(c)
	case "cohere", "cohere2":
		c.Parallel, c.NoNormBias, c.LogitScale = true, true, m.float("logit_scale", 1)
		m.layerNorm(c)
	case "gemma2":
		c.Window, c.Windowed = m.int("attention.sliding_window", 4096), allBut(c.Layers, 2)
		if c.Layers == 46 && c.Heads > 0 { // 27B
			c.Scale = math.Sqrt(float64(c.Heads) / float64(max(c.Width, 1)))
		}
	case "gemma3":
		c.Windowed = allBut(c.Layers, 6)
		if c.Layers == 62 && c.Heads > 0 { // 27B
			c.Scale = math.Sqrt(float64(c.Heads) / float64(max(c.Width, 1)))
		}
	}
}

// rope returns the rotation. Angles are divided by tensors of the file or by the factor in its metadata.
func (m *metadata) rope(c Config, f family) *Rope {
	base := 10000.
	if c.Architecture == "gemma3" {
		base = 1e6
	}
	r := &Rope{Base: m.float("rope.freq_base", base), Size: m.int("rope.dimension_count", c.HeadSize), Interleaved: f.interleaved}
	switch c.Architecture {
	case "gemma3":
		r.LocalBase = m.float("rope.freq_base_swa", 10000)
	case "olmo3":
		r.LocalBase = m.float("rope.freq_base_swa", r.Base)
	}
	if sections := m.Value(m.prefix + "rope.dimension_sections"); sections != nil {
		m.fail(ir.Errorf(ir.ErrUnsupported, "%srope.dimension_sections is %v: a token must have one position", m.prefix, sections))
	}
	original := m.int("rope.scaling.original_context_length", c.Context)
	if err := r.check(c.HeadSize); err != nil || m.err != nil {
		m.fail(err)
		return r
	}
	r.Divisors = m.divisors("rope_freqs.weight", r.Size/2)
	if short := m.divisors("rope_factors_short.weight", r.Size/2); short != nil {
		r.Divisors, r.LongDivisors, r.Original = short, m.divisors("rope_factors_long.weight", r.Size/2), original
		r.Amplitude = m.float("rope.scaling.attn_factor", 1)
	}
	s := ropeScaling{Factor: m.float("rope.scaling.factor", m.float("rope.scale_linear", 1))}
	s.Type, _ = m.Text(m.prefix + "rope.scaling.type")
	if s.Type == "none" || s.Type == "longrope" || s.Factor == 1 {
		return r
	}
	if s.Type == "" {
		s.Type = "linear"
	}
	m.fail(s.apply(r, c.Context, original))
	return r
}

// divisors returns a vector of the file that divides the angles; nil if there is none.
func (m *metadata) divisors(name string, n int) []float64 {
	i, ok := m.Info(name)
	if !ok {
		return nil
	}
	if len(i.Dims) != 1 || i.Dims[0] != n {
		m.fail(badConfig("%s is %v: it must have %d elements", name, i.Dims, n))
		return nil
	}
	floats, err := m.Floats(name)
	m.fail(err)
	out := make([]float64, len(floats))
	for j, x := range floats {
		out[j] = float64(x)
	}
	return out
}
