package tokenizer

// preTokenizer is how a byte-level vocabulary of GGUF splits text before merges.
type preTokenizer struct {
	patterns   []string
	wholeWords bool // a word of the vocabulary is not merged
	compose    bool // text is in the normal form C first
	bos        bool // a text begins with the token bos, unless the file says otherwise
}

// The patterns of families of models, as their tokenizer.json files have them. Each is a list of alternatives,
// tried in turn.
const (
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt4oPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	tekkenPattern = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|` +
		`\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	bloomPattern       = ` ?[^(\s|[.,!?…。，、।۔،])]+`
	digitPattern       = `\p{N}`
	digitsPattern      = `\p{N}{1,3}`
	deepseekCJKPattern = `[一-龥぀-ゟ゠-ヿ]+`
	deepseekPattern    = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|" +
		`[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	falconPattern = "[\\p{P}\\$\\+<=>\\^~\\|`]+"
)

var (
	gpt2      = preTokenizer{patterns: []string{gpt2Pattern}}
	llama3    = preTokenizer{patterns: []string{llama3Pattern}, wholeWords: true, bos: true}
	qwen2     = preTokenizer{patterns: []string{qwen2Pattern}, compose: true}
	gpt4o     = preTokenizer{patterns: []string{gpt4oPattern}}
	digits    = preTokenizer{patterns: []string{digitPattern, gpt2Pattern}}
	bloom     = preTokenizer{patterns: []string{bloomPattern}}
	byDefault = preTokenizer{patterns: []string{`[\p{P}\$\+<=>\^~\|]+`, gpt2Pattern, `\p{N}+`, `[0-9][0-9][0-9]`}}
	deepseek  = preTokenizer{patterns: []string{digitsPattern, deepseekCJKPattern, deepseekPattern}}
)

// preTokenizers are the rules by the names of tokenizer.ggml.pre.
var preTokenizers = map[string]preTokenizer{
	"gpt-2": gpt2, "phi-2": gpt2, "jina-es": gpt2, "jina-de": gpt2, "mpt": gpt2, "olmo": gpt2, "jais": gpt2, "trillion": gpt2,
	"granite-docling": gpt2,
	"llama3":          llama3, "llama-v3": llama3, "llama-bpe": llama3, "falcon3": llama3, "pixtral": llama3,
	"dbrx": {patterns: []string{llama3Pattern}}, "smaug-bpe": {patterns: []string{llama3Pattern}},
	"qwen2": qwen2, "stablelm2": qwen2, "deepseek-r1-qwen": qwen2, "hunyuan": qwen2, "megrez": qwen2,
	"gpt-4o": gpt4o, "llama4": gpt4o,
	"starcoder": digits, "refact": digits, "command-r": digits, "smollm": digits, "codeshell": digits, "exaone": digits, "minerva-7b": digits,
	"bloom": bloom, "poro-chat": bloom, "gpt3-finnish": bloom,
	"deepseek-v3": deepseek,
	"tekken":      {patterns: []string{tekkenPattern}, wholeWords: true, bos: true},
	"":            byDefault, "default": byDefault,
	"falcon": {patterns: []string{falconPattern, gpt2Pattern, `[0-9][0-9][0-9]`}},
}
