package models_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/ir/nn"
)

// small is config.json of a small BERT; other configurations replace a part of it.
const small = `{"model_type": "bert", "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2,
	"vocab_size": 10, "max_position_embeddings": 16}`

// with returns small with more fields, which replace those of the same name.
func with(fields string) string { return strings.TrimSuffix(small, "}") + ", " + fields + "}" }

func read(t *testing.T, text string) models.Config {
	t.Helper()
	c, err := models.ReadConfig(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// TestConfig holds the fields of files of several versions and architectures to what their authors say of them.
func TestConfig(t *testing.T) {
	for text, ok := range map[string]func(c models.Config) bool{
		`"num_attention_heads": 3, "head_dim": 5`: func(c models.Config) bool {
			return c.Kind() == models.TextKind && c.Text.HeadSize == 5 && c.Text.Offset == 0 && c.Text.Types == 2 && c.Text.Epsilon == 1e-12
		},
		`"architectures": ["BertForSequenceClassification"], "id2label": {"1": "b", "0": "a"}`: func(c models.Config) bool {
			return c.Text.Head == models.LabelHead && slices.Equal(c.Text.Labels, []string{"a", "b"}) && c.Text.Pooler
		},
		`"architectures": ["BertForQuestionAnswering"]`: func(c models.Config) bool { return c.Text.Head == models.NoHead && !c.Text.Pooler },
		`"architectures": ["BertForPreTraining"]`:       func(c models.Config) bool { return c.Text.Head == models.VocabularyHead && c.Text.Tied },
		`"model_type": "xlm-roberta", "pad_token_id": 1, "type_vocab_size": 1`: func(c models.Config) bool {
			return c.Text.Offset == 2 && c.Text.Positions() == 14
		},
		`"model_type": "modernbert", "global_attn_every_n_layers": 2, "num_hidden_layers": 3, "local_attention": 6, "global_rope_theta": 7.5`: func(c models.Config) bool {
			return slices.Equal(c.Text.Windowed, []bool{false, true, false}) && c.Text.Window == 3 && c.Text.GlobalBase == 7.5 && c.Text.LocalBase == 10000
		},
		`"model_type": "modernbert", "layer_types": ["sliding_attention", "full_attention"], "rope_parameters": {"full_attention": {"rope_theta": 5}, "sliding_attention": {"rope_theta": 6}}`: func(c models.Config) bool {
			return slices.Equal(c.Text.Windowed, []bool{true, false}) && c.Text.GlobalBase == 5 && c.Text.LocalBase == 6
		},
		`"model_type": "vit", "image_size": 30, "patch_size": [7, 10], "qkv_bias": false`: func(c models.Config) bool {
			return c.Kind() == models.ImageKind && c.Image.Size == [2]int{30, 30} && c.Image.Patches() == 12 && c.Image.NoQKVBias
		},
		`"model_type": "clip", "text_config": {"eos_token_id": 2}, "vision_config": {"patch_size": 16}`: func(c models.Config) bool {
			return c.Kind() == models.ImageTextKind && c.ImageText.End == 0 && c.ImageText.Text.Context == 77 && c.ImageText.Image.Patches() == 196
		},
		`"model_type": "whisper", "scale_embedding": true, "d_model": 36`: func(c models.Config) bool {
			return c.Kind() == models.SpeechKind && c.Speech.EmbeddingScale == 6 && c.Speech.SoundLength() == 480000
		},
	} {
		if c := read(t, with(text)); !ok(c) {
			t.Errorf("%s: %+v %+v %+v %+v", text, c.Text, c.Image, c.ImageText, c.Speech)
		}
	}
}

// TestHostileConfigsAreRefused has texts that are malformed, absurd or of models that are unknown.
func TestHostileConfigsAreRefused(t *testing.T) {
	for text, kind := range map[string]error{
		``:                                       lm.ErrConfig,
		`[1]`:                                    lm.ErrConfig,
		`{}`:                                     ir.ErrUnsupported,
		with(`"model_type": "llama"`):            ir.ErrUnsupported,
		with(`"hidden_size": "a"`):               lm.ErrConfig,
		with(`"num_hidden_layers": 1000000000`):  lm.ErrConfig,
		with(`"num_hidden_layers": -1`):          lm.ErrConfig,
		with(`"num_attention_heads": 0`):         lm.ErrConfig,
		with(`"num_attention_heads": 3`):         lm.ErrConfig,
		with(`"head_dim": 9223372036854775807`):  lm.ErrConfig,
		with(`"vocab_size": 0`):                  lm.ErrConfig,
		with(`"layer_norm_eps": -1`):             lm.ErrConfig,
		with(`"hidden_act": "mish"`):             ir.ErrUnsupported,
		with(`"is_decoder": true`):               ir.ErrUnsupported,
		with(`"id2label": {"1": "a"}`):           lm.ErrConfig,
		with(`"num_labels": -1`):                 lm.ErrConfig,
		with(`"num_labels": 100000000000`):       lm.ErrConfig,
		with(`"position_embedding_type": "key"`): ir.ErrUnsupported,
		with(`"architectures": ["BertForSequenceClassification"], "id2label": {}`):                                      lm.ErrConfig,
		with(`"model_type": "roberta", "pad_token_id": -5`):                                                             lm.ErrConfig,
		with(`"model_type": "distilbert", "dim": 7, "n_heads": 2`):                                                      lm.ErrConfig,
		with(`"model_type": "modernbert", "layer_types": ["full_attention"]`):                                           lm.ErrConfig,
		with(`"model_type": "modernbert", "layer_types": ["a", "b"]`):                                                   ir.ErrUnsupported,
		with(`"model_type": "modernbert", "num_hidden_layers": -3`):                                                     lm.ErrConfig,
		with(`"model_type": "modernbert", "global_attn_every_n_layers": 0`):                                             lm.ErrConfig,
		with(`"model_type": "modernbert", "local_rope_theta": 0`):                                                       lm.ErrConfig,
		with(`"model_type": "modernbert", "classifier_pooling": "max"`):                                                 ir.ErrUnsupported,
		with(`"model_type": "modernbert", "rope_parameters": {"full_attention": {"rope_type": "yarn"}}`):                ir.ErrUnsupported,
		with(`"model_type": "vit", "patch_size": 0`):                                                                    lm.ErrConfig,
		with(`"model_type": "vit", "image_size": [1]`):                                                                  lm.ErrConfig,
		with(`"model_type": "vit", "image_size": 1000000`):                                                              lm.ErrConfig,
		with(`"model_type": "vit", "pooler_act": "relu"`):                                                               ir.ErrUnsupported,
		with(`"model_type": "clip", "projection_dim": 0`):                                                               lm.ErrConfig,
		with(`"model_type": "clip", "vision_config": {"num_attention_heads": 7}`):                                       lm.ErrConfig,
		with(`"model_type": "whisper", "encoder_layers": 99999999`):                                                     lm.ErrConfig,
		with(`"model_type": "whisper", "max_source_positions": 0`):                                                      lm.ErrConfig,
		with(`"model_type": "whisper", "d_model": 384, "decoder_attention_heads": 5`):                                   lm.ErrConfig,
		with(`"model_type": "bert", "num_attention_heads": 16384, "head_dim": 4194304, "max_position_embeddings": 1e9`): lm.ErrConfig,
	} {
		if _, err := models.ReadConfig(strings.NewReader(text)); !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", text, err, kind)
		}
	}
	if _, err := models.ReadConfig(strings.NewReader(with(`"model_type": "t5"`))); !strings.Contains(fmt.Sprint(err), `"t5": it must be one of bert, camembert, clip,`) || !strings.Contains(fmt.Sprint(err), "llama") {
		t.Errorf("an unknown architecture: %v", err)
	}
	if _, err := models.ReadConfig(io.MultiReader(strings.NewReader(`{"x": "`), bytes.NewReader(make([]byte, 17<<20)))); !errors.Is(err, lm.ErrConfig) {
		t.Errorf("17 MB: %v", err)
	}
}

// TestWrongOperandsAreErrors calls each function with operands of another shape or kind.
func TestWrongOperandsAreErrors(t *testing.T) {
	text, image := *read(t, small).Text, *read(t, `{"model_type": "vit", "image_size": 8, "patch_size": 4, "hidden_size": 8, "num_attention_heads": 2}`).Image
	pair, speech := *read(t, `{"model_type": "clip"}`).ImageText, *read(t, `{"model_type": "whisper"}`).Speech
	ints := func(b *ir.Builder, dims ...int) ir.Value { return b.Input("i", ir.I32, ir.Dims(dims...)...) }
	floats := func(b *ir.Builder, dims ...int) ir.Value { return b.Input("x", ir.F32, ir.Dims(dims...)...) }
	for name, c := range map[string]struct {
		kind error
		f    func(b *ir.Builder) ir.Value
	}{
		"tokens of one axis": {ir.ErrShape, func(b *ir.Builder) ir.Value { return models.TextEncoder(b, text, ints(b, 3)) }},
		"too many tokens":    {ir.ErrShape, func(b *ir.Builder) ir.Value { return models.TextEncoder(b, text, ints(b, 1, 17)) }},
		"tokens of floats":   {ir.ErrDType, func(b *ir.Builder) ir.Value { return models.TextEncoder(b, text, floats(b, 1, 3)) }},
		"no tokens":          {ir.ErrGraph, func(b *ir.Builder) ir.Value { return models.TextEncoder(b, text, ir.Value{}) }},
		"another mask": {ir.ErrShape, func(b *ir.Builder) ir.Value {
			return models.TextEncoder(b, text, ints(b, 2, 3), models.TextOptions{Mask: floats(b, 2, 4)})
		}},
		"no head":          {ir.ErrUnsupported, func(b *ir.Builder) ir.Value { return models.TextHead(b, text, floats(b, 1, 3, 8), ir.Value{}) }},
		"no pooler":        {ir.ErrUnsupported, func(b *ir.Builder) ir.Value { return models.TextPooler(b, text, floats(b, 1, 3, 8)) }},
		"no images' head":  {ir.ErrUnsupported, func(b *ir.Builder) ir.Value { return models.ImageHead(b, image, floats(b, 1, 5, 8)) }},
		"another image":    {ir.ErrShape, func(b *ir.Builder) ir.Value { return models.ImageEncoder(b, image, floats(b, 1, 3, 9, 8)) }},
		"a way of pooling": {ir.ErrAttr, func(b *ir.Builder) ir.Value { return models.Pool(b, floats(b, 1, 3, 8), ir.Value{}, "max", true) }},
		"pooled vectors": {ir.ErrShape, func(b *ir.Builder) ir.Value {
			return models.Pool(b, floats(b, 3, 8), ir.Value{}, models.MeanPooling, true)
		}},
		"CLIP's image":     {ir.ErrShape, func(b *ir.Builder) ir.Value { return models.ImageFeatures(b, pair, floats(b, 1, 3, 8, 8)) }},
		"CLIP's tokens":    {ir.ErrShape, func(b *ir.Builder) ir.Value { return models.TextFeatures(b, pair, ints(b, 1, 78)) }},
		"another sound":    {ir.ErrShape, func(b *ir.Builder) ir.Value { return models.LogMel(b, speech, floats(b, 1, 16000)) }},
		"a spectrogram":    {ir.ErrShape, func(b *ir.Builder) ir.Value { return models.SpeechEncoder(b, speech, floats(b, 1, 80, 3000)) }},
		"another memory":   {ir.ErrShape, func(b *ir.Builder) ir.Value { return models.SpeechDecoder(b, speech, ints(b, 1, 3), nil) }},
		"no configuration": {lm.ErrConfig, func(b *ir.Builder) ir.Value { return models.ImageEncoder(b, models.Image{}, floats(b, 1, 3, 8, 8)) }},
		"no family":        {ir.ErrUnsupported, func(b *ir.Builder) ir.Value { return models.TextEncoder(b, models.Text{}, ints(b, 1, 3)) }},
	} {
		_, err := ir.Build("g", func(b *ir.Builder) {
			nn.Infer(b)
			b.Output("y", c.f(b))
		})
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
}

// TestProbabilities holds those of several labels, of independent ones and of one alone to their formulas.
func TestProbabilities(t *testing.T) {
	for _, c := range []struct {
		scores      []float64
		independent bool
		want        float64 // of the first label
	}{{[]float64{1, 0}, false, 0.7310586}, {[]float64{1, 0}, true, 0.7310586}, {[]float64{1, 5}, true, 0.7310586}, {[]float64{1}, false, 0.7310586}, {[]float64{1, 1}, false, 0.5}} {
		g, err := ir.Build("g", func(b *ir.Builder) {
			b.Output("p", models.Probabilities(b, b.Input("x", ir.F32, ir.Dims(len(c.scores))...), c.independent))
		})
		if err != nil {
			t.Fatal(err)
		}
		x := ir.NewArray(ir.F32, len(c.scores))
		copy(x.F, c.scores)
		out, err := ir.Eval(g, map[string]*ir.Array{"x": x}, ir.EvalOptions{})
		if err != nil || !(math.Abs(out[0].F[0]-c.want) <= 1e-6) {
			t.Errorf("%v, independent %t: %v, %v; want %v", c.scores, c.independent, out, err, c.want)
		}
	}
}

// file has the names of a configuration's parameters, and no elements.
type file map[string]lm.TensorInfo

func (f file) GGUF() bool                             { return false }
func (f file) Bytes(string) ([]byte, error)           { return nil, nil }
func (f file) Info(name string) (lm.TensorInfo, bool) { i, ok := f[name]; return i, ok }
func (f file) Names() (names []string) {
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// fileOf returns the tensors of a configuration's file, except dropped names.
func fileOf(t *testing.T, c models.Config, drop string) file {
	t.Helper()
	f := file{}
	g, err := ir.Build("g", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Stored(b, func(string) nn.Storage { return nn.Storage{OutIn: true} }, func() { c.Declare(b) })
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range g.Ports() {
		if dims, _ := p.Value.Shape().Ints(); p.Kind == ir.ParamPort && p.Name != drop {
			f[strings.ReplaceAll(p.Name, "/", ".")] = lm.TensorInfo{DType: ir.F16, Dims: dims}
		}
	}
	return f
}

// TestBind finds the parameters, ignores unused tensors, and names the faults of a file.
func TestBind(t *testing.T) {
	c := read(t, with(`"architectures": ["BertForMaskedLM"]`))
	f := fileOf(t, c, "")
	for _, name := range []string{"cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "bert.embeddings.position_ids", "cls.seq_relationship.weight"} {
		f[name] = lm.TensorInfo{DType: ir.F32, Dims: []int{1}}
	}
	f["bert.pooler.dense.weight"], f["bert.pooler.dense.bias"] = lm.TensorInfo{DType: ir.F32, Dims: []int{8, 8}}, lm.TensorInfo{DType: ir.F32, Dims: []int{8}}
	w, err := models.Bind(&c, f)
	if err != nil || !c.Text.Pooler {
		t.Fatalf("pooler %t, %v", c.Text.Pooler, err)
	}
	if s := w.Storage("bert/encoder/layer/0/attention/self/query/weight"); s != (nn.Storage{OutIn: true, DType: ir.F16}) {
		t.Errorf("a matrix is %+v", s)
	}
	f["bert.more"] = lm.TensorInfo{DType: ir.F32, Dims: []int{1}}
	if _, err := models.Bind(&c, f); !errors.Is(err, ir.ErrName) || !strings.Contains(fmt.Sprint(err), `"bert.more"`) {
		t.Errorf("a tensor more: %v", err)
	}
	c = read(t, small)
	if _, err := models.Bind(&c, fileOf(t, c, "bert/encoder/layer/1/output/dense/bias")); !errors.Is(err, ir.ErrName) || !strings.Contains(fmt.Sprint(err), "bert/encoder/layer/1/output/dense/bias") {
		t.Errorf("a tensor less: %v", err)
	}
	f = fileOf(t, c, "")
	f["bert.embeddings.LayerNorm.bias"] = lm.TensorInfo{DType: ir.F32, Dims: []int{9}}
	if _, err := models.Bind(&c, f); !errors.Is(err, ir.ErrShape) {
		t.Errorf("another shape: %v", err)
	}
	f = fileOf(t, c, "")
	f["qa_outputs.weight"] = lm.TensorInfo{DType: ir.F32, Dims: []int{2, 8}} // of a head that is not known
	if _, err := models.Bind(&c, f); err != nil {
		t.Errorf("another head: %v", err)
	}
}
