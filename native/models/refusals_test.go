package models_test

import (
	"errors"
	"image"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/native/models"
	"github.com/rlx-go/rlx/native/safetensors"
)

// TestFilters holds images in other sizes by each filter, smaller and larger, and parts in the middle to
// Pillow and transformers, to the bit.
func TestFilters(t *testing.T) {
	tensors, _, err := safetensors.ReadFile(filepath.Join("testdata", "resized.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	list := photos(t)
	for name, want := range tensors {
		part := strings.Split(name, "/")
		number := func(i int) int { n, _ := strconv.Atoi(part[i]); return n }
		size := [2]int{number(2), number(3)}
		p := models.Preprocessing{Resize: size, Filter: models.Filter(number(1))}
		if part[1] == "crop" {
			p = models.Preprocessing{Crop: size}
		}
		x, height, width, err := p.Pixels(list[number(0)])
		if err != nil || [2]int{height, width} != size {
			t.Fatalf("%s: %d by %d, %v", name, height, width, err)
		}
		wrong := 0
		for i, v := range x {
			if v != float32(want.Data[i]) {
				wrong++
			}
		}
		if wrong > 0 || len(x) != len(want.Data) {
			t.Errorf("%s: %d of %d values differ", name, wrong, len(x))
		}
	}
}

// TestImagesThatAreRefused has images and options without a meaning.
func TestImagesThatAreRefused(t *testing.T) {
	photo := photos(t)[0]
	for name, c := range map[string]struct {
		p    models.Preprocessing
		from image.Image
		kind error
	}{
		"no image":           {models.Preprocessing{}, nil, ir.ErrShape},
		"an empty image":     {models.Preprocessing{}, image.NewGray(image.Rect(0, 0, 0, 3)), ir.ErrShape},
		"a filter":           {models.Preprocessing{Filter: 7}, photo, ir.ErrUnsupported},
		"a negative size":    {models.Preprocessing{Resize: [2]int{-1, 3}}, photo, lm.ErrConfig},
		"a size":             {models.Preprocessing{Crop: [2]int{1 << 20, 3}}, photo, lm.ErrConfig},
		"two channels":       {models.Preprocessing{Mean: []float64{1, 2}}, photo, lm.ErrConfig},
		"a deviation of 0":   {models.Preprocessing{Mean: []float64{1, 2, 3}, Deviation: []float64{1, 0, 1}}, photo, lm.ErrConfig},
		"one axis of a pair": {models.Preprocessing{Resize: [2]int{0, 3}}, photo, lm.ErrConfig},
	} {
		if _, _, _, err := c.p.Pixels(c.from); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
}

// TestFoldersThatAreRefused opens folders that are not there, of unknown models, and without their parts.
func TestFoldersThatAreRefused(t *testing.T) {
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if from, ok := strings.CutPrefix(text, "@"); ok {
				data, err := os.ReadFile(filepath.Join("testdata", from))
				if err != nil {
					t.Fatal(err)
				}
				text = string(data)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for name, c := range map[string]struct {
		path, says string
		kind       error
	}{
		"nowhere":                 {"nowhere", "config.json", os.ErrNotExist},
		"no JSON":                 {folder(map[string]string{"config.json": "{"}), "config.json", lm.ErrConfig},
		"another model":           {folder(map[string]string{"config.json": `{"model_type": "t5"}`}), `"t5": it must be one of bert, camembert,`, ir.ErrUnsupported},
		"no weights":              {folder(map[string]string{"config.json": "@bert/config.json"}), "model.safetensors", os.ErrNotExist},
		"another model's weights": {folder(map[string]string{"config.json": "@bert/config.json", "model.safetensors": "@distilbert/model.safetensors"}), `the file lacks "bert/embeddings/word_embeddings/weight"`, ir.ErrName},
		"a damaged tokenizer":     {folder(map[string]string{"config.json": "@bert/config.json", "model.safetensors": "@bert/model.safetensors", "tokenizer.json": "{"}), "tokenizer", nil},
		"a damaged processor":     {folder(map[string]string{"config.json": "@whisper/config.json", "preprocessor_config.json": `{"hop_length": 0}`}), "Hop is 0", lm.ErrConfig},
	} {
		_, err := models.Open(c.path)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that says %s", name, err, c.kind, c.says)
		}
	}
}

// TestUsesThatAreRefused uses models for other purposes than theirs.
func TestUsesThatAreRefused(t *testing.T) {
	ctx, s := t.Context(), cpu(t)
	bert, bare, clip, whisper := open(t, "bert").Model, open(t, "vit").Model, open(t, "clip").Model, open(t, "whisper").Model
	texts, err := models.NewTexts(ctx, s, bert, models.TextsOptions{MaxTokens: 8})
	if err != nil {
		t.Fatal(err)
	}
	x, err := models.NewTranscriber(ctx, s, whisper)
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := models.NewImageTexts(ctx, s, clip, models.ImagesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	silent := *whisper
	silent.Tokenizer = nil
	for name, c := range map[string]struct {
		kind error
		f    func() error
	}{
		"texts of images":  {ir.ErrUnsupported, func() error { _, err := models.NewTexts(ctx, s, bare, models.TextsOptions{}); return err }},
		"images of texts":  {ir.ErrUnsupported, func() error { _, err := models.NewImages(ctx, s, bert, models.ImagesOptions{}); return err }},
		"images of speech": {ir.ErrUnsupported, func() error { _, err := models.NewImageTexts(ctx, s, whisper, models.ImagesOptions{}); return err }},
		"speech of images": {ir.ErrUnsupported, func() error { _, err := models.NewTranscriber(ctx, s, clip); return err }},
		"no tokenizer":     {os.ErrNotExist, func() error { _, err := models.NewTranscriber(ctx, s, &silent); return err }},
		"too many tokens":  {ir.ErrAttr, func() error { _, err := models.NewTexts(ctx, s, bert, models.TextsOptions{MaxTokens: 33}); return err }},
		"a batch":          {ir.ErrAttr, func() error { _, err := models.NewTexts(ctx, s, bert, models.TextsOptions{Batch: -1}); return err }},
		"a way of pooling": {ir.ErrAttr, func() error { _, err := models.NewTexts(ctx, s, bert, models.TextsOptions{Pooling: "max"}); return err }},
		"a mask":           {ir.ErrUnsupported, func() error { _, err := texts.FillMask(ctx, "a [MASK]", 1); return err }},
		"a token":          {ir.ErrIndex, func() error { _, err := texts.EmbedTokens(ctx, [][]int32{{1, 40}}); return err }},
		"no tokens":        {ir.ErrShape, func() error { _, err := texts.EmbedTokens(ctx, [][]int32{{}}); return err }},
		"a long text":      {ir.ErrShape, func() error { _, err := texts.EmbedTokens(ctx, [][]int32{make([]int32, 9)}); return err }},
		"no labels":        {ir.ErrShape, func() error { _, err := pairs.Classify(ctx, nil, photos(t)...); return err }},
		"no image":         {ir.ErrShape, func() error { _, err := pairs.EmbedImages(ctx, nil); return err }},
		"a language": {ir.ErrAttr, func() error {
			_, err := x.Transcribe(ctx, make([]float32, 9), models.TranscribeOptions{Language: "xx"})
			return err
		}},
		"images of no images": {ir.ErrUnsupported, func() error { _, err := models.PreprocessingOf(bert); return err }},
	} {
		if err := c.f(); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
	if none, err := texts.Embed(ctx); err != nil || len(none) != 0 {
		t.Errorf("no texts: %v, %v", none, err)
	}
	if none, err := x.Transcribe(ctx, nil, models.TranscribeOptions{}); err != nil || none.Text != "" {
		t.Errorf("no sound: %v, %v", none, err)
	}
}
