package models

import (
	"math"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
)

// ArchitectureInGGUF is the general.architecture of the GGUF files that [FromGGUF] knows: that of BERT, which
// llama.cpp also writes for RoBERTa and XLM-RoBERTa.
const ArchitectureInGGUF = "bert"

// The ways of pooling in GGUF files, by their numbers.
var ggufPooling = map[int64]Pooling{0: "", 1: MeanPooling, 2: FirstPooling}

// FromGGUF returns the configuration of an encoder of texts in a GGUF file, and how it pools, "" if the file
// does not say. The encoder has no head. Errors are those of [ReadConfig], and of kind [ir.ErrUnsupported] for another
// architecture and for files that rerank.
func FromGGUF(file *gguf.File) (Config, Pooling, error) {
	if file == nil {
		return Config{}, "", ir.Attrf("file is nil: it must be an open file")
	}
	if name, _ := file.Text("general.architecture"); name != ArchitectureInGGUF {
		return Config{}, "", ir.Errorf(ir.ErrUnsupported, "general.architecture is %q: it must be %q", name, ArchitectureInGGUF)
	}
	r := &ggufReader{file: file}
	width, heads := r.int("embedding_length"), r.int("attention.head_count")
	c := Text{
		Family: "bert", Context: r.int("context_length"),
		Tower: Tower{
			Width: width, Hidden: r.int("feed_forward_length"), Layers: r.int("block_count"), Heads: heads, HeadSize: perHead(width, heads, nil),
			Epsilon: r.float("attention.layer_norm_epsilon"), Activation: "gelu",
		},
	}
	if table, ok := file.Info("token_embd.weight"); ok && len(table.Dims) == 2 {
		c.Vocabulary = table.Dims[0]
	}
	if table, ok := file.Info("token_types.weight"); ok && len(table.Dims) == 2 {
		c.Types = table.Dims[0]
	}
	if table, ok := file.Info("position_embd.weight"); ok && len(table.Dims) == 2 {
		c.Context = table.Dims[0] // RoBERTa's without the rows that are not used
	}
	key := ArchitectureInGGUF + ".pooling_type"
	kind, _ := file.Int(key)
	pooling, ok := ggufPooling[kind]
	switch {
	case r.err != nil:
		return Config{}, "", r.err
	case !ok:
		return Config{}, "", ir.Errorf(ir.ErrUnsupported, "%s is %d: it must be 0 for none, 1 for the mean or 2 for the first token", key, kind)
	}
	if err := divided(c.Tower, nil); err != nil {
		return Config{}, "", err
	}
	config := Config{Architecture: c.Family, Text: &c}
	return config, pooling, config.Check()
}

// ggufReader reads the keys of the architecture. err is the first error.
type ggufReader struct {
	file *gguf.File
	err  error
}

func (r *ggufReader) int(key string) int {
	key = ArchitectureInGGUF + "." + key
	n, ok := r.file.Int(key)
	if (!ok || n < 0 || n > math.MaxInt32) && r.err == nil {
		r.err = badConfig("%s is %v: it must be an integer that is not negative", key, r.file.Value(key))
	}
	return int(int32(n))
}

func (r *ggufReader) float(key string) float64 {
	key = ArchitectureInGGUF + "." + key
	x, ok := r.file.Float(key)
	if !ok && r.err == nil {
		r.err = badConfig("%s is %v: it must be a float", key, r.file.Value(key))
	}
	return x
}

// ggufNames are the names of BERT's layers in GGUF files.
var ggufNames = map[string]string{
	"embeddings/word_embeddings": "token_embd", "embeddings/position_embeddings": "position_embd", "embeddings/token_type_embeddings": "token_types",
	"embeddings/LayerNorm": "token_embd_norm", "attention/self/query": "attn_q", "attention/self/key": "attn_k", "attention/self/value": "attn_v",
	"attention/output/dense": "attn_output", "attention/output/LayerNorm": "attn_output_norm", "intermediate/dense": "ffn_up", "output/dense": "ffn_down",
	"output/LayerNorm": "layer_output_norm",
}

// inGGUF returns the names that a parameter has in GGUF files.
func inGGUF(parameter string) []string {
	name := strings.TrimPrefix(parameter, "bert/")
	block := ""
	if rest, ok := strings.CutPrefix(name, "encoder/layer/"); ok {
		number, layer, _ := strings.Cut(rest, "/")
		block, name = "blk."+number+".", layer
	}
	at := max(strings.LastIndexByte(name, '/'), 0)
	return []string{block + ggufNames[name[:at]] + strings.ReplaceAll(name[at:], "/", ".")}
}
