// How the byte-level vocabularies of GGUF split text before merges, by the names of tokenizer.ggml.pre.

/** The rules of a family of models. */
export interface PreTokenizer {
  /** What a word is, tried in turn. */
  readonly patterns: readonly string[];
  /** A word of the vocabulary is not merged. */
  readonly wholeWords?: boolean;
  /** Text is in the normal form C first. */
  readonly compose?: boolean;
  /** A text begins with the token for that, unless the file says otherwise. */
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

const gpt2: PreTokenizer = { patterns: [gpt2Pattern] }, llama3: PreTokenizer = { patterns: [llama3Pattern], wholeWords: true, bos: true };
const qwen2: PreTokenizer = { patterns: [qwen2Pattern], compose: true }, gpt4o: PreTokenizer = { patterns: [gpt4oPattern] };
const digits: PreTokenizer = { patterns: [raw`\p{N}`, gpt2Pattern] }, bloom: PreTokenizer = { patterns: [' ?[^(\\s|[.,!?…。，、।۔،])]+'] };
const llama3Split: PreTokenizer = { patterns: [llama3Pattern] }, byDefault: PreTokenizer = { patterns: [raw`[\p{P}\$\+<=>\^~\|]+`, gpt2Pattern, raw`\p{N}+`, '[0-9][0-9][0-9]'] };

const families: readonly (readonly [names: string, rule: PreTokenizer])[] = [
  ['gpt-2 phi-2 jina-es jina-de mpt olmo jais trillion granite-docling', gpt2],
  ['llama3 llama-v3 llama-bpe falcon3 pixtral', llama3],
  ['dbrx smaug-bpe', llama3Split],
  ['qwen2 stablelm2 deepseek-r1-qwen hunyuan megrez', qwen2],
  ['gpt-4o llama4', gpt4o],
  ['starcoder refact command-r smollm codeshell exaone minerva-7b', digits],
  ['bloom poro-chat gpt3-finnish', bloom],
  ['deepseek-v3', { patterns: [raw`\p{N}{1,3}`, '[一-龥぀-ゟ゠-ヿ]+', deepseekPattern] }],
  ['tekken', { patterns: [tekkenPattern], wholeWords: true, bos: true }],
  ['default', byDefault],
  ['falcon', { patterns: [raw`[\p{P}\$\+<=>\^~\|\x60]+`, gpt2Pattern, '[0-9][0-9][0-9]'] }],
];

/** The rules of a name; undefined for one that is not known. */
export const preTokenizer = (name: string): PreTokenizer | undefined => families.find(([names]) => names.split(' ').includes(name || 'default'))?.[1];
