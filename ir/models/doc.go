// Package models has pretrained models that read texts, images and speech: BERT with RoBERTa and DistilBERT,
// ModernBERT, ViT, CLIP and Whisper, from a config.json of Hugging Face. Decoders are in package lm.
//
//	config, err := models.ReadConfig(file)
//	weights, err := models.Bind(config, tensors)
//	hidden, err := ir.Build("hidden", func(b *ir.Builder) {
//		nn.Infer(b)
//		tokens := b.Input("tokens", ir.I32, ir.Sym("batch"), ir.Sym("time"))
//		mask := b.Input("mask", ir.Bool, ir.Sym("batch"), ir.Sym("time"))
//		nn.Stored(b, weights.Storage, func() {
//			b.Output("hidden", models.TextEncoder(b, *config.Text, tokens, models.TextOptions{Mask: mask}))
//		})
//	})
//
// A model is a function over a builder. A configuration holds the differences within a family:
//
//	text.go            TextEncoder, TextHead: hidden states of tokens; labels, or tokens for masks
//	bert.go            BERT, RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT
//	modernbert.go      ModernBERT
//	vit.go             ImageEncoder, ImageHead: ViT
//	clip.go            TextFeatures, ImageFeatures, Similarity: CLIP
//	whisper.go         LogMel, SpeechEncoder, SpeechMemory, SpeechDecoder: Whisper
//	tower.go           what their blocks share
//	config.go, hf.go   configurations, and config.json
//	gguf.go            BERT in GGUF files
//	bind.go            parameters in files
//
// Parameters have the names of Hugging Face's files with a slash for each dot. Package native/models opens
// folders and uses models: for vectors of texts, labels, words for masks, and transcripts.
package models
