package lm

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// names are the names of a family's layers in Hugging Face's files, with slashes for dots, "" for
// layers that the family lacks.
type names struct {
	embedding, positions, blocks, final, head string // of the model

	norm1, post1, norm2, post2 string // of a block: before and after attention and MLP
	attention, mlp             string

	qkv, q, k, v, qNorm, kNorm, out string // of the attention

	gateUp, gate, up, down string // of the MLP or of an expert
	router, experts        string
	shared, sharedGate     string // the expert of all tokens
}

// family is a family of models.
type family struct {
	names
	// gguf is the name of its architecture in GGUF files; "" for a family that is read from folders alone.
	gguf string
	// norm2InGGUF is the name of the norm before the MLP there; "" means "ffn_norm".
	norm2InGGUF string
	// hf sets the fields in which this family differs and for which config.json has no key.
	hf func(c *Config, h *hfConfig)
	// interleaved reports that GGUF files store the rows of queries and keys as adjacent pairs.
	interleaved bool
	// neighbours reports that safetensors have them in this order, too.
	neighbours bool
	// localRope reports that layers rotate only if they have a window, in models with windows.
	localRope bool
}

var llamaNames = names{
	embedding: "model/embed_tokens", blocks: "model/layers", final: "model/norm", head: "lm_head",
	norm1: "input_layernorm", norm2: "post_attention_layernorm",
	attention: "self_attn", q: "q_proj", k: "k_proj", v: "v_proj", out: "o_proj", qNorm: "q_norm", kNorm: "k_norm",
	mlp: "mlp", gate: "gate_proj", up: "up_proj", down: "down_proj",
}

// families are the known architectures by their model_type in config.json.
var families = map[string]family{
	"llama":   {names: llamaNames, gguf: "llama", hf: llama, interleaved: true},
	"mistral": {names: llamaNames, gguf: "llama", hf: mistral, interleaved: true},
	"mixtral": {names: mixtralNames(), gguf: "llama", hf: mistral, interleaved: true},
	"qwen2":   {names: llamaNames, gguf: "qwen2", hf: qwen2},
	"qwen3":   {names: llamaNames, gguf: "qwen3", hf: qwen3},
	"gemma":   {names: llamaNames, gguf: "gemma", hf: gemma},
	"gemma2":  {names: sandwichNames(), gguf: "gemma2", hf: gemma2},
	"gemma3":  {names: sandwichNames(), gguf: "gemma3", hf: gemma3},
	"phi3":    {names: phi3Names(), gguf: "phi3", hf: phi3},
	"gpt2":    {names: gpt2Names(), gguf: "gpt2", hf: gpt2},

	"qwen2_moe":  {names: qwenMoENames(), gguf: "qwen2moe", hf: qwen2MoE},
	"qwen3_moe":  {names: qwenMoENames(), gguf: "qwen3moe", hf: qwen3MoE},
	"olmo2":      {names: olmo2Names(), gguf: "olmo2", hf: olmo2},
	"olmo3":      {names: olmo2Names(), gguf: "olmo2", hf: olmo3},
	"olmoe":      {names: qwenMoENames(), gguf: "olmoe", hf: olmoe},
	"granite":    {names: llamaNames, gguf: "granite", hf: granite, interleaved: true},
	"smollm3":    {names: llamaNames, gguf: "smollm3", hf: smollm3, interleaved: true},
	"starcoder2": {names: starcoder2Names(), gguf: "starcoder2", hf: starcoder2},

	"cohere":   {names: llamaNames, gguf: "command-r", hf: cohere, interleaved: true, neighbours: true},
	"cohere2":  {names: llamaNames, gguf: "cohere2", hf: cohere2, interleaved: true, neighbours: true, localRope: true},
	"ernie4_5": {names: llamaNames, gguf: "ernie4_5", hf: ernie, interleaved: true, neighbours: true},
	"exaone4":  {names: olmo2Names(), gguf: "exaone4", hf: exaone4, localRope: true},
	"glm4":     {names: glm4Names(), gguf: "glm4", hf: glm4, interleaved: true, neighbours: true},
	"seed_oss": {names: llamaNames, gguf: "seed_oss", norm2InGGUF: "post_attention_norm", hf: seedOSS},
	"stablelm": {names: llamaNames, gguf: "stablelm", hf: stableLM},

	"arcee":    {names: ungatedNames(), gguf: "arcee", hf: arcee, interleaved: true},
	"falcon":   {names: neoXNames("transformer/word_embeddings", "transformer/h", "self_attention", "transformer/ln_f", "lm_head"), gguf: "falcon", hf: falcon},
	"gpt_neox": {names: neoXNames("gpt_neox/embed_in", "gpt_neox/layers", "attention", "gpt_neox/final_layer_norm", "embed_out"), gguf: "gptneox", hf: gptNeoX},
	"gptj":     {names: gptJNames(), hf: gptJ, neighbours: true},
	"nemotron": {names: ungatedNames(), gguf: "nemotron", hf: nemotron},
	"phi":      {names: phiNames(), gguf: "phi2", hf: phi},
}

func mixtralNames() names {
	n := llamaNames
	n.mlp, n.router, n.experts = "block_sparse_moe", "gate", "experts"
	n.gate, n.up, n.down = "w1", "w3", "w2"
	return n
}

func qwenMoENames() names {
	n := llamaNames
	n.router, n.experts, n.shared, n.sharedGate = "gate", "experts", "shared_expert", "shared_expert_gate"
	return n
}

// olmo2Names are those of blocks with norms after attention and MLP alone.
func olmo2Names() names {
	n := llamaNames
	n.norm1, n.post1, n.norm2, n.post2 = "", "post_attention_layernorm", "", "post_feedforward_layernorm"
	return n
}

func glm4Names() names {
	n := llamaNames
	n.post1, n.norm2, n.post2, n.gateUp = "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm", "gate_up_proj"
	return n
}

func ungatedNames() names {
	n := llamaNames
	n.gate = ""
	return n
}

func starcoder2Names() names {
	n := ungatedNames()
	n.up, n.down = "c_fc", "c_proj"
	return n
}

func phiNames() names {
	n := ungatedNames()
	n.final, n.norm2, n.out, n.up, n.down = "model/final_layernorm", "", "dense", "fc1", "fc2"
	return n
}

// neoXNames are those within the blocks of GPT-NeoX and Falcon.
func neoXNames(embedding, blocks, attention, final, head string) names {
	return names{
		embedding: embedding, blocks: blocks, final: final, head: head, norm1: llamaNames.norm1, norm2: llamaNames.norm2,
		attention: attention, qkv: "query_key_value", out: "dense", mlp: "mlp", up: "dense_h_to_4h", down: "dense_4h_to_h",
	}
}

func gptJNames() names {
	n := gpt2Names()
	n.positions, n.norm2, n.qkv, n.q, n.k, n.v, n.out, n.up, n.down = "", "", "", "q_proj", "k_proj", "v_proj", "out_proj", "fc_in", "fc_out"
	return n
}

// sandwichNames are those of blocks with norms before and after attention and MLP.
func sandwichNames() names {
	n := llamaNames
	n.post1, n.norm2, n.post2 = "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"
	return n
}

func phi3Names() names {
	n := llamaNames
	n.qkv, n.gateUp = "qkv_proj", "gate_up_proj"
	return n
}

func gpt2Names() names {
	return names{
		embedding: "transformer/wte", positions: "transformer/wpe", blocks: "transformer/h", final: "transformer/ln_f", head: "lm_head",
		norm1: "ln_1", norm2: "ln_2", attention: "attn", qkv: "c_attn", out: "c_proj",
		mlp: "mlp", up: "c_fc", down: "c_proj",
	}
}

// Architectures returns the names of the families that this package knows, sorted.
func Architectures() []string { return slices.Sorted(maps.Keys(families)) }

// familyOf returns a family. The error is of kind [ir.ErrUnsupported] and lists the known ones.
func familyOf(architecture string) (family, error) {
	f, ok := families[architecture]
	if !ok {
		return f, ir.Errorf(ir.ErrUnsupported, "the architecture is %q: it must be one of %s", architecture, strings.Join(Architectures(), ", "))
	}
	return f, nil
}

// stored is the GGUF tensor that holds a layer's parameter: the name without ".weight" or ".bias",
// and the number of the expert, or −1 for the whole tensor. all is the layer of all experts.
type stored struct {
	name   string
	expert int
	all    string
}

// inGGUF returns where the layers of a model are in a GGUF file, by their scope.
func (f family) inGGUF(c Config) map[string]stored {
	all := map[string]stored{}
	add := func(name, scope string, path ...string) {
		if last := path[len(path)-1]; last != "" {
			all[strings.Join(path, "/")] = stored{name: scope + name, expert: -1}
		}
	}
	add("token_embd", "", f.embedding)
	add("position_embd", "", f.positions)
	add("output_norm", "", f.final)
	add("output", "", f.head)
	for i := range c.Layers {
		block, scope := f.blocks+"/"+strconv.Itoa(i), "blk."+strconv.Itoa(i)+"."
		for _, l := range []struct{ name, layer string }{
			{"attn_norm", f.norm1}, {"post_attention_norm", f.post1}, {cmp.Or(f.norm2InGGUF, "ffn_norm"), f.norm2}, {"post_ffw_norm", f.post2},
		} {
			add(l.name, scope, block, l.layer)
		}
		for _, l := range []struct{ name, layer string }{
			{"attn_qkv", f.qkv},
			{"attn_q", f.q},
			{"attn_k", f.k},
			{"attn_v", f.v},
			{"attn_q_norm", f.qNorm},
			{"attn_k_norm", f.kNorm},
			{"attn_output", f.out},
		} {
			add(l.name, scope, block, f.attention, l.layer)
		}
		add("ffn_gate_inp", scope, block, f.mlp, f.router)
		add("ffn_gate_inp_shexp", scope, block, f.mlp, f.sharedGate)
		for _, l := range []struct{ name, layer string }{{"ffn_gate", f.gate}, {"ffn_up", f.up}, {"ffn_up", f.gateUp}, {"ffn_down", f.down}} {
			add(l.name, scope, block, f.mlp, l.layer)
			if f.shared != "" {
				add(l.name+"_shexp", scope, block, f.mlp, f.shared, l.layer)
			}
			scopeOfAll := strings.Join([]string{block, f.mlp, f.experts}, "/")
			for e := range c.Experts {
				all[scopeOfAll+"/"+strconv.Itoa(e)+"/"+l.layer] = stored{scope + l.name + "_exps", e, scopeOfAll + "/" + l.layer}
			}
		}
	}
	return all
}
