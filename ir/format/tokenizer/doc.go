// Package tokenizer turns text into the token ids of a language model and back, by the rules of a
// tokenizer.json file or of a GGUF file's metadata.
//
//	t, err := tokenizer.Open("tokenizer.json")
//	ids, err := t.Encode("The capital of France is", tokenizer.EncodeOptions{})
//	text, err := t.Decode(ids, tokenizer.DecodeOptions{})
//
// The models are byte-pair encoding (over characters, over bytes, and with a byte fallback as
// SentencePiece has it), Unigram, WordPiece and WordLevel. [Tokenizer.Stream] decodes the tokens of a
// generation one by one, into whole characters. Text of a user is encoded with
// [EncodeOptions.SpecialAsText], so that it cannot forge the special tokens of a conversation.
//
// Ids are those of Hugging Face's tokenizers library, whose output the tests compare with. They may
// differ for characters newer than Unicode 10, where tables of other versions classify or compose
// them, where a Metaspace that marks the first word follows a normalizer that changes the beginning
// of the text, and for a special token that must be a single word: within a word its text is never the token, so that
// none can be forged. Truncation, padding and dropout of merges in a file are ignored. The file to read first is
// tokenizer.go.
package tokenizer
