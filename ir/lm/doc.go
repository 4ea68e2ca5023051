// Package lm provides pretrained language models: decoders of the families of Llama, Mistral,
// Mixtral, Qwen2, Qwen3, also with experts, Gemma, Phi-3, OLMo 2 and 3, OLMoE, Granite, SmolLM3, StarCoder2 and GPT-2, from a
// Hugging Face config.json or a GGUF file, and of Command R, ERNIE 4.5, EXAONE 4, GLM-4, Seed-OSS and StableLM from a config.json.
//
//	file, err := gguf.Open("model.gguf")
//	config, err := lm.FromGGUF(file)
//	weights, err := lm.Bind(config, lm.OfGGUF(file))
//	next, err := ir.Build("next", func(b *ir.Builder) {
//		nn.Infer(b)
//		nn.Cache(b, 512)
//		nn.Stored(b, weights.Storage, func() {
//			logits := lm.Decoder(b, config, b.Input("tokens", ir.I32, ir.Dims(1, 1)...), lm.DecoderOptions{Last: true})
//			b.Output("next", ops.ArgMax(b, logits, -1))
//		})
//	})
//
// All families share one definition, [Decoder]; a [Config] describes their differences. Parameters
// are named as in Hugging Face's files, with a slash for each dot:
// "model/layers/0/self_attn/q_proj/weight". [Weights] finds them in a file, in their storage
// format: packed blocks stay packed ([nn.Stored]). Package native/lm opens folders and files and
// sets the parameters of a program. The file to read first is decoder.go.
package lm
