package models_test

import (
	"context"
	"image"
	"image/draw"
	_ "image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	irmodels "github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/models"
	"github.com/rlx-go/rlx/native/safetensors"
)

// The folders that testdata/models.py writes.
var (
	textModels  = []string{"bert", "bertlm", "minilm", "roberta", "robertalabels", "distilbert", "distilbertlm", "modernbert", "modernbertlabels", "tokenlabels"}
	imageModels = []string{"vit", "vitmodel"}
)

// texts are those of models.py.
var texts = []string{"the cat sat on the mat", "a big dog runs", "", "blue sky and red sun in the sky is big and it is green to the dog and the cat"}

// folder is an open model with what transformers computes by it, in f32.
type folder struct {
	*models.Model
	expected map[string]rlx.Tensor
}

func open(tb testing.TB, name string) folder {
	tb.Helper()
	m, err := models.Open(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close() })
	expected, _, err := safetensors.ReadFile(filepath.Join("testdata", name, "expected.safetensors"))
	if err != nil {
		tb.Fatal(err)
	}
	return folder{m, expected}
}

func (f folder) floats(tb testing.TB, name string) []float32 {
	tb.Helper()
	x, err := f.expected[name].Float32s()
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return x
}

func (f folder) ints(tb testing.TB, name string) []int32 {
	tb.Helper()
	x, err := f.expected[name].Int32s()
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return x
}

func cpu(tb testing.TB) *rlx.Session {
	tb.Helper()
	s, err := rlx.Open("cpu")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// call runs a graph with the weights of the model.
func (f folder) call(t *testing.T, in rlx.Inputs, build func(b *ir.Builder)) rlx.Outputs {
	t.Helper()
	g, err := f.Build("g", build)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "g", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := cpu(t).Compile(t.Context(), m)
	if err == nil {
		err = f.Set(t.Context(), p)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Call(t.Context(), "g", in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// near fails unless values differ by 1e-4 at most, where of, if it is not nil, is not 0: it has an element
// for as many values as there are of each.
func near(t *testing.T, what string, got, want []float32, of []int32) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	worst := 0.
	for i := range got {
		if of == nil || of[i/(len(got)/len(of))] != 0 {
			worst = max(worst, math.Abs(float64(got[i])-float64(want[i])))
		}
		if got[i] != got[i] {
			worst = math.NaN()
		}
	}
	if !(worst <= 1e-4) {
		t.Errorf("%s: they differ by %v", what, worst)
	}
}

func floats(t *testing.T, out rlx.Outputs, name string) []float32 {
	t.Helper()
	x, err := out[name].Float32s()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return x
}

// TestTextModels holds hidden states, pooled ones and scores of a batch with padding, and with two types of
// tokens, to those of transformers.
func TestTextModels(t *testing.T) {
	for _, name := range textModels {
		t.Run(name, func(t *testing.T) {
			f := open(t, name)
			c, tokens := *f.Config.Text, f.expected["tokens"]
			in := rlx.Inputs{"tokens": tokens, "mask": f.expected["mask"]}
			out := f.call(t, in, func(b *ir.Builder) {
				shape := ir.Dims(tokens.Dims...)
				o := irmodels.TextOptions{Mask: b.Input("mask", ir.I32, shape...)}
				if types, ok := f.expected["types"]; ok {
					in["types"], o.Types = types, b.Input("types", ir.I32, shape...)
				}
				hidden := irmodels.TextEncoder(b, c, b.Input("tokens", ir.I32, shape...), o)
				b.Output("hidden", hidden)
				if c.Pooler && c.Head != irmodels.LabelHead {
					b.Output("pooled", irmodels.TextPooler(b, c, hidden))
				}
				if c.Head != irmodels.NoHead {
					b.Output("scores", irmodels.TextHead(b, c, hidden, o.Mask))
				}
			})
			mask := f.ints(t, "mask")
			near(t, "hidden states", floats(t, out, "hidden"), f.floats(t, "hidden"), mask)
			for _, name := range []string{"pooled", "scores"} {
				if _, ok := out[name]; ok {
					of := mask
					if len(out[name].Dims) == 2 { // one for each text
						of = nil
					}
					near(t, name, floats(t, out, name), f.floats(t, name), of)
				}
			}
		})
	}
}

// TestImageModels holds hidden states, pooled ones and scores to those of transformers.
func TestImageModels(t *testing.T) {
	for _, name := range imageModels {
		t.Run(name, func(t *testing.T) {
			f := open(t, name)
			c, pixels := *f.Config.Image, f.expected["pixels"]
			out := f.call(t, rlx.Inputs{"pixels": pixels}, func(b *ir.Builder) {
				hidden := irmodels.ImageEncoder(b, c, b.Input("pixels", ir.F32, ir.Dims(pixels.Dims...)...))
				b.Output("hidden", hidden)
				if c.Pooler {
					b.Output("pooled", irmodels.ImagePooler(b, c, hidden))
				}
				if c.Head != irmodels.NoHead {
					b.Output("scores", irmodels.ImageHead(b, c, hidden))
				}
			})
			for name := range out {
				near(t, name, floats(t, out, name), f.floats(t, name), nil)
			}
		})
	}
}

// TestCLIP holds the scores of images and texts, padded after their ends, to those of transformers.
func TestCLIP(t *testing.T) {
	f := open(t, "clip")
	c, pixels, tokens := *f.Config.ImageText, f.expected["pixels"], f.expected["tokens"]
	out := f.call(t, rlx.Inputs{"pixels": pixels, "tokens": tokens}, func(b *ir.Builder) {
		images := irmodels.ImageFeatures(b, c, b.Input("pixels", ir.F32, ir.Dims(pixels.Dims...)...))
		texts := irmodels.TextFeatures(b, c, b.Input("tokens", ir.I32, ir.Dims(tokens.Dims...)...))
		b.Output("scores", irmodels.Similarity(b, c, images, texts))
	})
	near(t, "scores", floats(t, out, "scores"), f.floats(t, "scores"), nil)
}

// TestWhisper holds the spectrogram, the encoder and the scores of all tokens at once to those of transformers.
func TestWhisper(t *testing.T) {
	f := open(t, "whisper")
	c := *f.Config.Speech
	sound := make([]float32, c.SoundLength())
	copy(sound, f.floats(t, "sound"))
	tokens := f.ints(t, "translation")
	in := rlx.Inputs{"sound": rlx.Float32s(sound, 1, len(sound)), "tokens": rlx.Int32s(tokens, 1, len(tokens))}
	out := f.call(t, in, func(b *ir.Builder) {
		mels := irmodels.LogMel(b, c, b.Input("sound", ir.F32, ir.Dims(1, len(sound))...))
		b.Output("mels", ops.Transpose(b, mels, 0, 2, 1))
		hidden := irmodels.SpeechEncoder(b, c, mels)
		b.Output("hidden", hidden)
		b.Output("scores", irmodels.SpeechDecoder(b, c, b.Input("tokens", ir.I32, ir.Dims(1, len(tokens))...), irmodels.SpeechMemory(b, c, hidden)))
	})
	for name := range out {
		near(t, name, floats(t, out, name), f.floats(t, name), nil)
	}
}

// TestTexts compares vectors and labels of texts, one of them empty and one too long, with those of
// transformers, computed one by one.
func TestTexts(t *testing.T) {
	s := cpu(t)
	for _, name := range []string{"minilm", "roberta", "modernbert", "modernbertlabels", "distilbert"} {
		t.Run(name, func(t *testing.T) {
			f := open(t, name)
			x, err := models.NewTexts(t.Context(), s, f.Model, models.TextsOptions{MaxTokens: 16, Batch: 3})
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close(context.Background())
			vectors, err := x.Embed(t.Context(), texts...)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "vectors", slices.Concat(vectors...), f.floats(t, "vectors"), nil)
			if f.Config.Text.Head != irmodels.LabelHead {
				return
			}
			scores, err := x.Classify(t.Context(), texts...)
			if err != nil {
				t.Fatal(err)
			}
			nearScores(t, scores, f.Config.Text.Labels, f.floats(t, "labels"))
		})
	}
}

// TestPairs compares labels of pairs of texts, some of them truncated, with those of transformers.
func TestPairs(t *testing.T) {
	f := open(t, "bert")
	x, err := models.NewTexts(t.Context(), cpu(t), f.Model, models.TextsOptions{MaxTokens: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	var pairs []models.Pair
	for _, p := range [][2]int{{0, 1}, {1, 0}, {3, 1}, {0, 3}, {3, 3}, {2, 1}} {
		pairs = append(pairs, models.Pair{First: texts[p[0]], Second: texts[p[1]]})
	}
	scores, err := x.ClassifyPairs(t.Context(), pairs...)
	if err != nil {
		t.Fatal(err)
	}
	nearScores(t, scores, f.Config.Text.Labels, f.floats(t, "pairs"))
}

// nearScores fails unless probabilities are those wanted, and the likeliest are first.
func nearScores(t *testing.T, scores [][]models.Score, labels []string, want []float32) {
	t.Helper()
	got := make([]float32, len(want))
	for i, row := range scores {
		for j, score := range row {
			got[i*len(labels)+slices.Index(labels, score.Label)] = score.Probability
			if j > 0 && score.Probability > row[j-1].Probability {
				t.Errorf("row %d is not sorted: %v", i, row)
			}
		}
	}
	near(t, "probabilities", got, want, nil)
}

// TestFillMask holds the likeliest tokens for two masks to those of transformers.
func TestFillMask(t *testing.T) {
	s := cpu(t)
	for name, mask := range map[string]string{"bertlm": "[MASK]", "roberta": "<mask>"} {
		f := open(t, name)
		x, err := models.NewTexts(t.Context(), s, f.Model, models.TextsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close(context.Background())
		fillings, err := x.FillMask(t.Context(), "the "+mask+" sat on a "+mask, 4)
		if err != nil {
			t.Fatal(err)
		}
		var tokens []int32
		var probabilities []float32
		for _, filling := range slices.Concat(fillings...) {
			tokens, probabilities = append(tokens, filling.Token), append(probabilities, filling.Probability)
			if text, _ := f.Tokenizer.Token(filling.Token); text != filling.Text {
				t.Errorf("%s: token %d is %q, want %q", name, filling.Token, filling.Text, text)
			}
		}
		if want := f.ints(t, "fill_tokens"); !slices.Equal(tokens, want) {
			t.Errorf("%s: %v, want %v", name, tokens, want)
		}
		near(t, name, probabilities, f.floats(t, "fill_probabilities"), nil)
	}
}

func photos(tb testing.TB) (list []image.Image) {
	tb.Helper()
	for _, name := range []string{"photo0.png", "photo1.png"} {
		file, err := os.Open(filepath.Join("testdata", name))
		if err != nil {
			tb.Fatal(err)
		}
		defer file.Close()
		img, _, err := image.Decode(file)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, img)
	}
	return list
}

// TestImages holds the labels of files of images to those of transformers with Pillow.
func TestImages(t *testing.T) {
	f := open(t, "vit")
	x, err := models.NewImages(t.Context(), cpu(t), f.Model, models.ImagesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	scores, err := x.Classify(t.Context(), photos(t)...)
	if err != nil {
		t.Fatal(err)
	}
	nearScores(t, scores, f.Config.Image.Labels, f.floats(t, "labels"))
	vectors, err := x.Embed(t.Context(), photos(t)...)
	if err != nil {
		t.Fatal(err)
	}
	width, rows := f.Config.Image.Width, 1+f.Config.Image.Patches()
	for i, v := range vectors {
		first := f.floats(t, "hidden")[i*rows*width:][:width]
		length := 0.
		for _, h := range first {
			length += float64(h) * float64(h)
		}
		want := make([]float32, width)
		for j, h := range first {
			want[j] = float32(float64(h) / math.Sqrt(length))
		}
		near(t, "vector", v, want, nil)
	}
}

// TestTranslucentImages holds that the opacity of pixels does not count, as Pillow's convert("RGB") drops it.
func TestTranslucentImages(t *testing.T) {
	f := open(t, "vit")
	x, err := models.NewImages(t.Context(), cpu(t), f.Model, models.ImagesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	opaque := photos(t)[0]
	faint := image.NewNRGBA(opaque.Bounds())
	draw.Draw(faint, faint.Bounds(), opaque, opaque.Bounds().Min, draw.Src)
	for i := 3; i < len(faint.Pix); i += 4 {
		faint.Pix[i] = uint8(i % 200)
	}
	vectors, err := x.Embed(t.Context(), opaque, faint)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "vector", vectors[1], vectors[0], nil)
}

// TestImageTexts holds vectors of images and texts and the probabilities of labels to those of transformers.
func TestImageTexts(t *testing.T) {
	f := open(t, "clip")
	x, err := models.NewImageTexts(t.Context(), cpu(t), f.Model, models.ImagesOptions{Batch: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	images, err := x.EmbedImages(t.Context(), photos(t)...)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "images", slices.Concat(images...), f.floats(t, "images"), nil)
	vectors, err := x.EmbedTexts(t.Context(), texts...)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "texts", slices.Concat(vectors...), f.floats(t, "texts"), nil)
	scores, err := x.Classify(t.Context(), texts, photos(t)...)
	if err != nil {
		t.Fatal(err)
	}
	nearScores(t, scores, texts, f.floats(t, "labels"))
}

// TestPixels holds preprocessed images to those of transformers with Pillow, whose arithmetic is the same.
func TestPixels(t *testing.T) {
	for _, name := range []string{"vit", "vitmodel", "clip"} {
		f := open(t, name)
		p, err := models.PreprocessingOf(f.Model)
		if err != nil {
			t.Fatal(err)
		}
		var all []float32
		for _, img := range photos(t) {
			x, _, _, err := p.Pixels(img)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, x...)
		}
		near(t, name, all, f.floats(t, "pixels"), nil)
	}
}

// TestTranscriber holds transcripts and translations, also of sound of two parts, to the greedy tokens of
// transformers.
func TestTranscriber(t *testing.T) {
	f := open(t, "whisper")
	x, err := models.NewTranscriber(t.Context(), cpu(t), f.Model)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(context.Background())
	sound := make([]float32, f.Config.Speech.SoundLength())
	copy(sound, f.floats(t, "sound"))
	transcript, err := x.Transcribe(t.Context(), slices.Concat(sound, f.floats(t, "sound")), models.TranscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := f.ints(t, "transcript")
	if len(transcript.Tokens) != 2 || !slices.Equal(transcript.Tokens[0], want) || !slices.Equal(transcript.Tokens[1], want) || transcript.Language != "en" {
		t.Errorf("%v in %q, want twice %v", transcript.Tokens, transcript.Language, want)
	}
	translation, err := x.Transcribe(t.Context(), sound[:14000], models.TranscribeOptions{Language: "de", Translate: true})
	if err != nil {
		t.Fatal(err)
	}
	want = f.ints(t, "translation")
	if end := len(want) - 1; !slices.Equal(translation.Tokens[0], want[:end]) || want[end] != 0 {
		t.Errorf("%v, want %v without the end", translation.Tokens, want)
	}
	if translation.Text == "" {
		t.Error("the text is empty")
	}
}
