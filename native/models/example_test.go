package models_test

import (
	"context"
	"fmt"
	"image"
	_ "image/png" // for image.Decode
	"log"
	"os"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
	"github.com/rlx-go/rlx/ir/lm"
	irmodels "github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/models"
)

// check ends an example at an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// must returns x unless there is an error.
func must[T any](x T, err error) T {
	check(err)
	return x
}

// A folder says what its model is for.
func ExampleOpen() {
	for _, folder := range []string{"minilm", "modernbert", "vit", "clip", "whisper", "../../lm/testdata/llama"} {
		model := must(models.Open("testdata/" + folder))
		fmt.Println(folder, "is of kind", model.Kind)
		check(model.Close())
	}
	// Output:
	// minilm is of kind text
	// modernbert is of kind text
	// vit is of kind image
	// clip is of kind image and text
	// whisper is of kind speech
	// ../../lm/testdata/llama is of kind decoder
}

// The product of two vectors is the cosine of their texts.
func ExampleTexts_Embed() {
	ctx := context.Background()
	model := must(models.Open("testdata/minilm"))
	defer model.Close()
	texts := must(models.NewTexts(ctx, must(rlx.Open("cpu")), model, models.TextsOptions{}))
	defer texts.Close(ctx)
	vectors := must(texts.Embed(ctx, "the cat sat", "the cat sat on the mat", "the cat sat"))
	for _, v := range vectors[1:] {
		cosine := float32(0)
		for i, x := range v {
			cosine += x * vectors[0][i]
		}
		fmt.Printf("%.2f\n", cosine)
	}
	// Output:
	// 0.99
	// 1.00
}

func ExampleTexts_FillMask() {
	ctx := context.Background()
	model := must(models.Open("testdata/roberta"))
	defer model.Close()
	texts := must(models.NewTexts(ctx, must(rlx.Open("cpu")), model, models.TextsOptions{}))
	defer texts.Close(ctx)
	for _, filling := range must(texts.FillMask(ctx, "the <mask> sat", 2))[0] {
		fmt.Printf("%s %.2f\n", filling.Text, filling.Probability)
	}
	// Output:
	// ##ed 0.17
	// run 0.17
}

// Labels are texts that nobody trained the model for.
func ExampleImageTexts_Classify() {
	ctx := context.Background()
	model := must(models.Open("testdata/clip"))
	defer model.Close()
	clip := must(models.NewImageTexts(ctx, must(rlx.Open("cpu")), model, models.ImagesOptions{}))
	defer clip.Close(ctx)
	file := must(os.Open("testdata/photo0.png"))
	defer file.Close()
	photo, _, err := image.Decode(file)
	check(err)
	scores := must(clip.Classify(ctx, []string{"a cat", "a red sun", "the blue sky"}, photo))
	fmt.Printf("%s: %.2f\n", scores[0][0].Label, scores[0][0].Probability)
	// Output: a red sun: 0.78
}

// The encoder of a folder with a new head learns to tell cats from dogs.
func Example_fineTune() {
	ctx := context.Background()
	model := must(models.Open("testdata/minilm", lm.BindOptions{DType: ir.F32})) // weights to train are f32
	defer model.Close()
	config := *model.Config.Text
	classifier := func(b *ir.Builder, rows int) {
		tokens, mask := b.Input("tokens", ir.I32, ir.Dims(rows, 8)...), b.Input("mask", ir.I32, ir.Dims(rows, 8)...)
		hidden := irmodels.TextEncoder(b, config, tokens, irmodels.TextOptions{Mask: mask})
		logits := nn.Linear(b, irmodels.TextPooler(b, config, hidden), 2, nn.LinearOptions{Name: "head"})
		labels := b.Input("labels", ir.I32, ir.N(rows))
		b.Output("loss", ops.CrossEntropyMean(b, logits, labels))
		b.Output("accuracy", nn.Accuracy(b, logits, labels))
	}
	loss := must(model.Build("loss", func(b *ir.Builder) { nn.Train(b); classifier(b, 8) }))
	eval := must(model.Build("eval", func(b *ir.Builder) { classifier(b, 8) }))
	trainer := must(must(rlx.Open("cpu")).Train(ctx, loss, rlx.Training{Rate: 0.01, Seed: 1, Eval: []ir.Entry{{Name: "eval", Graph: eval}}}))
	check(model.Set(ctx, trainer.Program()))

	var tokens, mask, labels []int32
	for i, text := range []string{
		"the cat is big", "the dog is big", "a cat sat", "a dog sat", "the sky and the cat", "the sky and the dog", "cat on a mat", "dog on a mat",
	} {
		row := make([]int32, 16)
		for j, id := range must(model.Tokenizer.Encode(text, tokenizer.EncodeOptions{})) {
			row[j], row[8+j] = id, 1
		}
		tokens, mask, labels = append(tokens, row[:8]...), append(mask, row[8:]...), append(labels, int32(i%2))
	}
	data := rlx.Inputs{"tokens": rlx.Int32s(tokens, 8, 8), "mask": rlx.Int32s(mask, 8, 8), "labels": rlx.Int32s(labels)}
	last := must(rlx.Fit(ctx, trainer, rlx.Loop{
		Data: rlx.Shuffled(data, 8, 1), Epochs: 40, Eval: rlx.Evaluation{Entry: "eval", Data: rlx.InOrder(data, 8)},
	}))
	fmt.Println("accuracy", last.Eval["accuracy"])
	// Output: accuracy 1
}

// Sound is samples between −1 and 1.
func ExampleTranscriber_Transcribe() {
	ctx := context.Background()
	model := must(models.Open("testdata/whisper"))
	defer model.Close()
	whisper := must(models.NewTranscriber(ctx, must(rlx.Open("cpu")), model))
	defer whisper.Close(ctx)
	sound := make([]float32, whisper.Rate()/2) // half a second of silence, or the samples of ReadWAV
	transcript := must(whisper.Transcribe(ctx, sound, models.TranscribeOptions{Language: "en"}))
	fmt.Println(transcript.Language, len(transcript.Tokens[0]) > 4)
	// Output: en true
}
