package lm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
)

// tiny is config.json of a small Llama; other configurations replace a part of it.
const tiny = `{"model_type": "llama", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2,
	"num_key_value_heads": 1, "vocab_size": 10, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu", "rope_theta": 5e5}`

// with returns tiny with more fields, which replace those of the same name.
func with(fields string) string { return strings.TrimSuffix(tiny, "}") + ", " + fields + "}" }

func read(t *testing.T, text string) lm.Config {
	t.Helper()
	c, err := lm.ReadConfig(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// TestConfig holds the fields of files of several versions and families to what their authors say of them.
func TestConfig(t *testing.T) {
	want := lm.Config{
		Architecture: "llama", Width: 8, Hidden: 12, Layers: 2, Heads: 2, KVHeads: 1, HeadSize: 4, Vocabulary: 10, Context: 64,
		Epsilon: 1e-5, Activation: nn.Silu, Gated: true, Rope: &lm.Rope{Base: 5e5, Size: 4},
	}
	if got := read(t, tiny); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	scaled := want
	scaled.Rope = &lm.Rope{Base: 5e5, Size: 4, Divisors: []float64{4, 4}}
	for _, text := range []string{
		`"rope_scaling": {"type": "linear", "factor": 4}`,
		`"rope_scaling": {"rope_type": "linear", "factor": 4.0}`,
		`"rope_theta": 1, "rope_parameters": {"rope_type": "linear", "factor": 4, "rope_theta": 500000}`,
	} {
		if got := read(t, with(text)); !reflect.DeepEqual(got, scaled) {
			t.Errorf("%s: %+v", text, got.Rope)
		}
	}
	for _, c := range []struct {
		text string
		ok   func(c lm.Config) bool
	}{
		{`"model_type": "mistral", "sliding_window": 7`, func(c lm.Config) bool { return c.Window == 7 && c.Windowed == nil }},
		{`"model_type": "mistral", "sliding_window": null, "head_dim": 6`, func(c lm.Config) bool { return c.Window == 0 && c.HeadSize == 6 }},
		{`"model_type": "qwen2", "sliding_window": 7, "use_sliding_window": false`, func(c lm.Config) bool { return c.Window == 0 && c.QKVBias && !c.OutBias }},
		{`"model_type": "qwen2", "sliding_window": 7, "use_sliding_window": true, "max_window_layers": 1`, func(c lm.Config) bool { return slices.Equal(c.Windowed, []bool{false, true}) }},
		{`"model_type": "gemma2", "query_pre_attn_scalar": 16`, func(c lm.Config) bool {
			return c.Scale == 0.25 && c.Tied && c.NormOffset == 1 && c.Window == 4096 && slices.Equal(c.Windowed, []bool{true, false})
		}},
		{`"model_type": "exaone4", "num_hidden_layers": 5, "sliding_window": 9, "sliding_window_pattern": "LLG"`, func(c lm.Config) bool {
			return c.Window == 9 && slices.Equal(c.Windowed, []bool{true, true, false, true, true}) && slices.Equal(c.Unrotated, []bool{false, false, true, false, false})
		}},
		{`"model_type": "exaone4", "sliding_window": null, "sliding_window_pattern": null`, func(c lm.Config) bool { return c.Window == 0 && c.Unrotated == nil && c.NormQK }},
		{`"model_type": "stablelm", "partial_rotary_factor": 0.5, "use_parallel_residual": true`, func(c lm.Config) bool { return c.Parallel && c.LayerNorm && c.Rope.Size == 2 && !c.Tied }},
		{`"model_type": "glm4", "head_dim": 8`, func(c lm.Config) bool { return c.Rope.Interleaved && c.Rope.Size == 4 && c.QKVBias && !c.OutBias }},
		{`"model_type": "gpt_neox", "rotary_pct": 0.5, "rotary_emb_base": 500, "rope_theta": null, "use_parallel_residual": false`, func(c lm.Config) bool {
			return c.Rope.Size == 2 && c.Rope.Base == 500 && !c.Parallel && !c.ParallelNorms && c.GroupedQKV && c.KVHeads == 1 && c.Activation == nn.Silu
		}},
		{`"model_type": "falcon", "multi_query": false, "max_position_embeddings": 0`, func(c lm.Config) bool {
			return c.GroupedQKV && c.KVHeads == 2 && c.Hidden == 32 && c.Context == 2048 && c.Parallel && !c.ParallelNorms
		}},
		{`"model_type": "falcon"`, func(c lm.Config) bool { return c.KVHeads == 1 && c.FusedQKV && !c.GroupedQKV && c.Tied && !c.MLPBias }},
		{`"model_type": "gptj", "n_embd": 21, "n_layer": 2, "n_head": 3, "n_positions": 8, "rotary_dim": 6`, func(c lm.Config) bool {
			return c.Rope.Size == 6 && c.Rope.Interleaved && c.HeadBias && !c.QKVBias && c.MLPBias && c.Hidden == 84
		}},
		{`"model_type": "smollm3", "num_hidden_layers": 5`, func(c lm.Config) bool { return slices.Equal(c.Unrotated, []bool{false, false, false, true, false}) }},
		{`"model_type": "qwen2_moe", "num_experts": 4, "moe_intermediate_size": 3`, func(c lm.Config) bool { return c.RawShares && c.Hidden == 3 && c.ExpertsPerToken == 4 }},
		{`"model_type": "gemma3", "text_config": ` + with(`"model_type": "gemma3_text", "sliding_window": 5, "num_hidden_layers": 7`), func(c lm.Config) bool {
			return c.Architecture == "gemma3" && c.Rope.LocalBase == 10000 && !c.Windowed[5] && c.Windowed[6] && c.NormQK
		}},
	} {
		if got := read(t, with(c.text)); !c.ok(got) {
			t.Errorf("%s: %+v", c.text, got)
		}
	}
}

// TestHostileConfigsAreRefused has texts that are malformed, absurd or of models that are unknown.
// A config.json may lack what the configuration classes of transformers 5.24.0 have as defaults: those of Gemma 3 lack most.
func TestMissingFieldsAreThoseOfTransformers(t *testing.T) {
	const sizes = `"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 4, `
	const all = sizes + `"num_attention_heads": 8, "vocab_size": 64, "max_position_embeddings": 256, `
	for _, c := range []struct{ given, missing string }{
		{`"model_type": "gemma3", "text_config": {` + sizes + `"sliding_window": 1024, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}`, `"model_type": "gemma3_text", ` + sizes +
			`"sliding_window": 1024, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
			"vocab_size": 262208, "max_position_embeddings": 131072`},
		{all + `"model_type": "mistral"`, all + `"model_type": "mistral", "sliding_window": 4096`},
		{all + `"model_type": "mistral", "sliding_window": null`, all + `"model_type": "mistral", "sliding_window": 0`},
		{all + `"model_type": "mixtral", "num_local_experts": 4`, all + `"model_type": "mixtral", "num_local_experts": 4, "rms_norm_eps": 1e-5, "rope_theta": 1e6`},
		{all + `"model_type": "gemma2"`, all + `"model_type": "gemma2", "num_key_value_heads": 4, "head_dim": 256, "attn_logit_softcapping": 50, "final_logit_softcapping": 30`},
		{all + `"model_type": "olmo3"`, all + `"model_type": "olmo3", "rms_norm_eps": 1e-5, "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}`},
		{all + `"model_type": "starcoder2"`, all + `"model_type": "starcoder2", "hidden_act": "gelu_pytorch_tanh"`},
		{all + `"model_type": "ernie4_5"`, all + `"model_type": "ernie4_5", "rope_theta": 5e5`},
	} {
		got, err := lm.ReadConfig(strings.NewReader("{" + c.given + "}"))
		want, wrong := lm.ReadConfig(strings.NewReader("{" + c.missing + "}"))
		if err = errors.Join(err, wrong); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v: %v", c.given, got, want, err)
		}
	}
}

func TestHostileConfigsAreRefused(t *testing.T) {
	for text, kind := range map[string]error{
		``:                                      lm.ErrConfig,
		`[1]`:                                   lm.ErrConfig,
		`{"a":`:                                 lm.ErrConfig,
		`{}`:                                    ir.ErrUnsupported,
		with(`"model_type": "x"`):               ir.ErrUnsupported,
		with(`"hidden_size": 1e3`):              lm.ErrConfig,
		with(`"num_hidden_layers": 1000000000`): lm.ErrConfig,
		with(`"model_type": "gemma2", "num_hidden_layers": 99999999`):                           lm.ErrConfig,
		with(`"num_hidden_layers": -1`):                                                         lm.ErrConfig,
		with(`"num_attention_heads": 0`):                                                        lm.ErrConfig,
		with(`"num_key_value_heads": 3`):                                                        lm.ErrConfig,
		with(`"head_dim": 9223372036854775807`):                                                 lm.ErrConfig,
		with(`"head_dim": 3`):                                                                   lm.ErrConfig,
		with(`"vocab_size": 0`):                                                                 lm.ErrConfig,
		with(`"rms_norm_eps": -1`):                                                              lm.ErrConfig,
		with(`"rope_theta": 0`):                                                                 lm.ErrConfig,
		with(`"partial_rotary_factor": 1e300`):                                                  lm.ErrConfig,
		with(`"rope_scaling": {"type": "linear", "factor": 0}`):                                 lm.ErrConfig,
		with(`"rope_scaling": {"type": "dynamic", "factor": 2}`):                                ir.ErrUnsupported,
		with(`"rope_scaling": {"type": "llama3", "factor": 2}`):                                 lm.ErrConfig,
		with(`"rope_scaling": {"type": "longrope"}`):                                            lm.ErrConfig,
		with(`"rope_scaling": 3`):                                                               lm.ErrConfig,
		with(`"hidden_act": "mish"`):                                                            ir.ErrUnsupported,
		with(`"model_type": "mistral", "sliding_window": 4, "layer_types": ["a"]`):              ir.ErrUnsupported,
		with(`"model_type": "mistral", "sliding_window": 4, "layer_types": ["full_attention"]`): lm.ErrConfig,
		with(`"model_type": "mixtral", "num_local_experts": 4000, "num_experts_per_tok": 2`):    lm.ErrConfig,
		with(`"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 0`):       lm.ErrConfig,
		with(`"model_type": "qwen3_moe", "num_experts": 4, "moe_intermediate_size": 3, "decoder_sparse_step": 2`):           ir.ErrUnsupported,
		with(`"model_type": "qwen2_moe", "num_experts": 4, "moe_intermediate_size": 3, "mlp_only_layers": [1]`):             ir.ErrUnsupported,
		with(`"model_type": "olmoe", "num_experts": 4, "clip_qkv": 8`):                                                      ir.ErrUnsupported,
		with(`"model_type": "qwen2_moe", "shared_expert_intermediate_size": 3, "moe_intermediate_size": 3`):                 lm.ErrConfig,
		with(`"model_type": "granite", "logits_scaling": 0`):                                                                lm.ErrConfig,
		with(`"model_type": "stablelm", "head_dim": 8, "qk_layernorm": true`):                                               ir.ErrUnsupported,
		with(`"model_type": "cohere", "use_qk_norm": true`):                                                                 ir.ErrUnsupported,
		with(`"model_type": "exaone4", "sliding_window": 4, "sliding_window_pattern": "LGL"`):                               ir.ErrUnsupported,
		with(`"model_type": "falcon", "new_decoder_architecture": true`):                                                    ir.ErrUnsupported,
		with(`"model_type": "falcon", "alibi": true`):                                                                       ir.ErrUnsupported,
		with(`"model_type": "falcon", "parallel_attn": false`):                                                              ir.ErrUnsupported,
		with(`"model_type": "phi", "qk_layernorm": true`):                                                                   ir.ErrUnsupported,
		with(`"model_type": "smollm3", "no_rope_layers": [1]`):                                                              lm.ErrConfig,
		with(`"model_type": "gpt2", "n_embd": 4, "n_layer": 1, "n_head": 2, "scale_attn_weights": false, "n_positions": 3`): ir.ErrUnsupported,
	} {
		if _, err := lm.ReadConfig(strings.NewReader(text)); !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", text, err, kind)
		}
	}
	if _, err := lm.ReadConfig(strings.NewReader(with(`"model_type": "mamba"`))); !strings.Contains(fmt.Sprint(err), `"mamba": it must be one of arcee, cohere, cohere2,`) {
		t.Errorf("an unknown architecture: %v", err)
	}
	if _, err := lm.ReadConfig(io.MultiReader(strings.NewReader(`{"x": "`), bytes.NewReader(make([]byte, 17<<20)))); !errors.Is(err, lm.ErrConfig) {
		t.Errorf("17 MB: %v", err)
	}
}

// file has tensors of zeros.
type file struct {
	tensors map[string]lm.TensorInfo
	gguf    bool
}

func (f file) GGUF() bool { return f.gguf }

func (f file) Names() (names []string) {
	for name := range f.tensors {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (f file) Info(name string) (lm.TensorInfo, bool) { i, ok := f.tensors[name]; return i, ok }

func (f file) Bytes(name string) ([]byte, error) {
	i := f.tensors[name]
	n := i.DType.Size()
	for _, d := range i.Dims {
		n *= d
	}
	return make([]byte, n), nil
}

// fileOf returns the tensors that a configuration asks for, in bf16.
func fileOf(t *testing.T, c lm.Config) file {
	t.Helper()
	f := file{tensors: map[string]lm.TensorInfo{}}
	g, err := ir.Build("g", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Stored(b, func(string) nn.Storage { return nn.Storage{OutIn: true} }, func() {
			b.Output("y", lm.Decoder(b, c, b.Input("tokens", ir.I32, ir.Dims(1, 3)...)))
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range g.Ports() {
		if p.Kind == ir.ParamPort {
			dims, _ := p.Value.Shape().Ints()
			f.tensors[strings.ReplaceAll(p.Name, "/", ".")] = lm.TensorInfo{DType: ir.BF16, Dims: dims}
		}
	}
	return f
}

// TestBind finds the parameters, and names the faults of a file.
func TestBind(t *testing.T) {
	c := read(t, tiny)
	const q = "model.layers.1.self_attn.q_proj.weight"
	w, err := lm.Bind(c, fileOf(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.Names()); n != 3+2*9 {
		t.Errorf("%d parameters", n)
	}
	if typ, _ := w.Type("model/norm/weight"); !typ.Equal(ir.TypeOf(ir.F32, ir.N(8))) {
		t.Errorf("a norm is %v, want f32", typ)
	}
	if data, err := w.Bytes("model/norm/weight"); err != nil || len(data) != 32 {
		t.Errorf("a norm has %d bytes, %v", len(data), err)
	}
	if s := w.Storage("model/layers/1/self_attn/q_proj/weight"); s != (nn.Storage{OutIn: true, DType: ir.BF16}) {
		t.Errorf("a matrix is %+v", s)
	}
	if _, err := w.Bytes("x"); !errors.Is(err, ir.ErrName) {
		t.Errorf("an unknown name: %v", err)
	}
	for text, c := range map[string]struct {
		kind   error
		change func(f file)
	}{
		`the file lacks "model/layers/1/self_attn/q_proj/weight" (the nearest is "model.layers.1.self_attn.Q_proj.weight")`: {ir.ErrName, func(f file) {
			f.tensors["model.layers.1.self_attn.Q_proj.weight"] = f.tensors[q]
			delete(f.tensors, q)
		}},
		`the file has "model.layers.2.mlp.up_proj.weight", which are no parameters of llama`: {ir.ErrName, func(f file) {
			f.tensors["model.layers.2.mlp.up_proj.weight"] = f.tensors[q]
		}},
		`is [8 9]: it must be [8 8]`:  {ir.ErrShape, func(f file) { f.tensors[q] = lm.TensorInfo{DType: ir.F32, Dims: []int{8, 9}} }},
		`is i32: it must have floats`: {ir.ErrDType, func(f file) { f.tensors[q] = lm.TensorInfo{DType: ir.I32, Dims: []int{8, 8}} }},
	} {
		f := fileOf(t, read(t, tiny))
		c.change(f)
		if _, err := lm.Bind(read(t, tiny), f); !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

// metadata returns that of a small file of an architecture, with more pairs.
func metadata(architecture string, more ...gguf.Pair) []gguf.Pair {
	pairs := []gguf.Pair{{Key: "general.architecture", Value: architecture}}
	for key, value := range map[string]uint32{
		"embedding_length": 8, "feed_forward_length": 12, "block_count": 2, "attention.head_count": 2, "context_length": 64,
	} {
		pairs = append(pairs, gguf.Pair{Key: architecture + "." + key, Value: value})
	}
	return append(pairs, more...)
}

// ofMetadata reads a file of metadata and of zeros as the table of embeddings and as more tensors.
func ofMetadata(t *testing.T, pairs []gguf.Pair, table []int, tensors ...string) (lm.Config, error) {
	t.Helper()
	var buf bytes.Buffer
	entries := []gguf.Entry{{Name: "token_embd.weight", Dims: table}}
	for _, name := range tensors {
		entries = append(entries, gguf.Entry{Name: name, Dims: []int{1}})
	}
	for i, e := range entries {
		n := 4
		for _, d := range e.Dims {
			n *= d
		}
		entries[i].Write = func(w io.Writer) error {
			_, err := w.Write(make([]byte, n))
			return err
		}
	}
	if err := gguf.Write(&buf, pairs, entries); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenAt(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return lm.FromGGUF(f)
}

// TestGGUFConfig has fields that metadata state in several ways, or only by the tensors of a file.
func TestGGUFConfig(t *testing.T) {
	pair := func(key string, value any) gguf.Pair { return gguf.Pair{Key: key, Value: value} }
	window := pair("exaone4.attention.sliding_window", uint32(5))
	for _, c := range []struct {
		name    string
		pairs   []gguf.Pair
		tensors []string
		ok      func(c lm.Config) bool
	}{
		{"stablelm, in turn", metadata("stablelm"), []string{"blk.0.ffn_norm.weight"}, func(c lm.Config) bool { return c.LayerNorm && !c.Parallel }},
		{"stablelm, parallel", metadata("stablelm"), nil, func(c lm.Config) bool { return c.Parallel }},
		{"exaone4, no window", metadata("exaone4"), nil, func(c lm.Config) bool { return c.Window == 0 && c.Windowed == nil && c.Unrotated == nil }},
		{"exaone4, a period of 4", metadata("exaone4", window), nil, func(c lm.Config) bool {
			return slices.Equal(c.Windowed, []bool{true, true}) && slices.Equal(c.Unrotated, []bool{false, false})
		}},
		{"exaone4, a period", metadata("exaone4", window, pair("exaone4.attention.sliding_window_pattern", uint32(2))), nil, func(c lm.Config) bool {
			return slices.Equal(c.Windowed, []bool{true, false})
		}},
		{"exaone4, a list", metadata("exaone4", window, pair("exaone4.attention.sliding_window_pattern", []bool{false, true})), nil, func(c lm.Config) bool {
			return slices.Equal(c.Windowed, []bool{false, true}) && slices.Equal(c.Unrotated, []bool{true, false})
		}},
		{"gptneox", metadata("gptneox", pair("gptneox.use_parallel_residual", false)), nil, func(c lm.Config) bool {
			return c.Architecture == "gpt_neox" && !c.Parallel && !c.ParallelNorms && !c.GroupedQKV && c.FusedQKV && c.Activation == nn.Gelu
		}},
		{"command-r", metadata("command-r", pair("command-r.logit_scale", float32(0.5))), nil, func(c lm.Config) bool {
			return c.Architecture == "cohere" && c.Parallel && c.NoNormBias && c.LogitScale == 0.5 && c.Rope.Interleaved
		}},
	} {
		if got, err := ofMetadata(t, c.pairs, []int{10, 8}, c.tensors...); err != nil || !c.ok(got) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

// TestHostileGGUFIsRefused has metadata that are absent, of another type or absurd.
func TestHostileGGUFIsRefused(t *testing.T) {
	good := metadata("llama")
	c, err := ofMetadata(t, good, []int{10, 8})
	if err != nil || c.Vocabulary != 10 || !c.Tied || !c.Rope.Interleaved {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, bad := range []struct {
		key   string
		value any
		kind  error
	}{
		{"general.architecture", uint32(1), lm.ErrConfig},
		{"general.architecture", "mamba", ir.ErrUnsupported},
		{"general.architecture", "mistral", ir.ErrUnsupported},
		{"llama.block_count", uint32(1 << 31), lm.ErrConfig},
		{"llama.block_count", "two", lm.ErrConfig},
		{"llama.attention.head_count", []uint32{2, 1}, ir.ErrUnsupported},
		{"llama.attention.head_count", []uint32{}, lm.ErrConfig},
		{"llama.attention.value_length", uint32(3), ir.ErrUnsupported},
		{"llama.rope.freq_base", float32(-1), lm.ErrConfig},
		{"llama.rope.dimension_count", uint32(3), lm.ErrConfig},
		{"llama.rope.scaling.factor", float32(0.5), lm.ErrConfig},
		{"llama.expert_count", uint32(5000), lm.ErrConfig},
		{"llama.rope.dimension_sections", []int32{1, 1}, ir.ErrUnsupported},
	} {
		pairs := slices.DeleteFunc(slices.Clone(good), func(p gguf.Pair) bool { return p.Key == bad.key })
		if _, err := ofMetadata(t, append(pairs, gguf.Pair{Key: bad.key, Value: bad.value}), []int{10, 8}); !errors.Is(err, bad.kind) {
			t.Errorf("%s = %v: %v, want %v", bad.key, bad.value, err, bad.kind)
		}
	}
	if _, err := ofMetadata(t, metadata("stablelm"), []int{10, 8}, "blk.0.attn_q_norm.weight"); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("norms of each head: %v", err)
	}
	if _, err := ofMetadata(t, good, []int{80}); !errors.Is(err, lm.ErrConfig) {
		t.Errorf("a table of one axis: %v", err)
	}
}
