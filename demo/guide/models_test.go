package guide_test

import (
	"context"
	"fmt"
	"image"
	_ "image/png"
	"os"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/native/models"
)

func Example_embed() {
	ctx := context.Background()
	model := must(models.Open("../../native/models/testdata/minilm")) // a folder of Hugging Face
	defer model.Close()
	session := must(rlx.Open("cpu"))
	defer session.Close(ctx)
	texts := must(models.NewTexts(ctx, session, model, models.TextsOptions{}))
	defer texts.Close(ctx)
	vectors := must(texts.Embed(ctx, "a big dog runs", "a big dog", "the sky is blue"))
	cosine := func(x, y []float32) (sum float32) {
		for i := range x {
			sum += x[i] * y[i]
		}
		return sum
	}
	fmt.Println(model.Kind, len(vectors[0]), cosine(vectors[0], vectors[1]) > cosine(vectors[0], vectors[2]))
	// Output: text 12 true
}

func Example_images() {
	ctx := context.Background()
	session := must(rlx.Open("cpu"))
	defer session.Close(ctx)
	file := must(os.Open("../../native/models/testdata/photo0.png"))
	defer file.Close()
	photo, _, err := image.Decode(file)
	check(err)

	vit := must(models.Open("../../native/models/testdata/vit")) // labels that it was trained for
	defer vit.Close()
	images := must(models.NewImages(ctx, session, vit, models.ImagesOptions{}))
	defer images.Close(ctx)
	fmt.Println(must(images.Classify(ctx, photo))[0][0].Label)

	clip := must(models.Open("../../native/models/testdata/clip")) // labels that you write
	defer clip.Close()
	pairs := must(models.NewImageTexts(ctx, session, clip, models.ImagesOptions{}))
	defer pairs.Close(ctx)
	fmt.Println(must(pairs.Classify(ctx, []string{"a cat", "a red sun"}, photo))[0][0].Label)
	// Output:
	// so-so
	// a red sun
}

func Example_transcribe() {
	ctx := context.Background()
	model := must(models.Open("../../native/models/testdata/whisper"))
	defer model.Close()
	session := must(rlx.Open("cpu"))
	defer session.Close(ctx)
	whisper := must(models.NewTranscriber(ctx, session, model))
	defer whisper.Close(ctx)
	sound := make([]float32, whisper.Rate()) // a second of silence, or the samples of models.ReadWAV
	transcript := must(whisper.Transcribe(ctx, sound, models.TranscribeOptions{Language: "en"}))
	fmt.Println(transcript.Language, len(transcript.Tokens))
	// Output: en 1
}
