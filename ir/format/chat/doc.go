// Package chat renders conversations as the text that a language model was trained on, by its chat
// template: a program in a part of Jinja, which a GGUF file or tokenizer_config.json has.
//
//	t, err := chat.Parse(source)
//	text, err := t.Render(map[string]any{
//		"messages":              []chat.Message{{Role: "user", Content: "Hello"}},
//		"add_generation_prompt": true,
//		"bos_token":             "<s>",
//	})
//
// Templates come with models and are not trusted: they reach nothing but the values given, and steps,
// nesting, values and output are bounded. Statements are for, if, set, macro, filter, break, continue
// and generation; white space is that of the transformers library (trim_blocks and lstrip_blocks). Text is the
// same as that of jinja2, which the tests compare with. Keys of mappings are strings and integers; inheritance, call blocks
// and automatic escaping are not supported. The file to read first is chat.go.
package chat
