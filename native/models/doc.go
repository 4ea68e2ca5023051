// Package models opens pretrained models and uses them: vectors, labels and words for masks from texts by BERT
// and ModernBERT, labels of images by ViT, labels that the caller gives by CLIP, and transcripts of speech by
// Whisper. Package ir/models has the graphs.
//
//	model, err := models.Open("all-MiniLM-L6-v2") // a folder of Hugging Face
//	defer model.Close()
//	texts, err := models.NewTexts(ctx, session, model, models.TextsOptions{})
//	defer texts.Close(ctx)
//	vectors, err := texts.Embed(ctx, "The cat sits on the mat.", "A dog runs.")
//
// [Open] returns a model with its kind, which determines the constructor to use: [NewTexts],
// [NewImages], [NewImageTexts] or [NewTranscriber]; decoders are for package native/lm/generate.
// The file to read first is open.go.
package models
