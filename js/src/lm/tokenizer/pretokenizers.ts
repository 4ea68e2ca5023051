// How the byte-level vocabularies of GGUF split text before merges, by the names of tokenizer.ggml.pre.

/** The rules of a family of models. */
export interface PreTokenizer {
  /** What a word is, tried in turn. */
  readonly patterns: readonly string[];
  /** A word of the vocabulary is not merged. */
  readonly wholeWords?: boolean;
  /** Text is in the normal form C first. */
  readonly compose?: boolean;
  /** Whether a text begins with a special token, unless the file says otherwise. */
  readonly bos?: boolean;
}

const { raw } = String;

export const gpt2Pattern = raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;
const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)", spaces = raw`\s*[\r\n]+|\s+(?!\S)|\s+`;
const upper = raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`, lower = raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`;
const llama3Pattern = raw`${contractions}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|${spaces}`;
const qwen2Pattern = raw`${contractions}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|${spaces}`;
const gpt4oPattern = raw`${upper}*${lower}+${contractions}?|${upper}+${lower}*${contractions}?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${spaces}`;
const tekkenPattern = raw`${upper}*${lower}+|${upper}+${lower}*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${spaces}`;
const deepseekPattern = raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_\x60{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|${spaces}`;

/** The rules by the names that have them. */
function families(): readonly (readonly [names: string, rule: PreTokenizer])[] {
  return [
    ['gpt-2 phi-2 jina-es jina-de mpt olmo jais trillion granite-docling', { patterns: [gpt2Pattern] }],
    ['llama3 llama-v3 llama-bpe falcon3 pixtral', { patterns: [llama3Pattern], wholeWords: true, bos: true }],
    ['dbrx smaug-bpe', { patterns: [llama3Pattern] }],
    ['qwen2 stablelm2 deepseek-r1-qwen hunyuan megrez', { patterns: [qwen2Pattern], compose: true }],
    ['gpt-4o llama4', { patterns: [gpt4oPattern] }],
    ['starcoder refact command-r smollm codeshell exaone minerva-7b', { patterns: [raw`\p{N}`, gpt2Pattern] }],
    ['bloom poro-chat gpt3-finnish', { patterns: [' ?[^(\\s|[.,!?…。，、।۔،])]+'] }],
    ['deepseek-v3', { patterns: [raw`\p{N}{1,3}`, '[一-龥぀-ゟ゠-ヿ]+', deepseekPattern] }],
    ['tekken', { patterns: [tekkenPattern], wholeWords: true, bos: true }],
    ['default', { patterns: [raw`[\p{P}\$\+<=>\^~\|]+`, gpt2Pattern, raw`\p{N}+`, '[0-9][0-9][0-9]'] }],
    ['falcon', { patterns: [raw`[\p{P}\$\+<=>\^~\|\x60]+`, gpt2Pattern, '[0-9][0-9][0-9]'] }],
  ];
}

/** The rules with a name; undefined for an unknown name. */
export const preTokenizer = (name: string): PreTokenizer | undefined => families().find(([names]) => names.split(' ').includes(name || 'default'))?.[1];
