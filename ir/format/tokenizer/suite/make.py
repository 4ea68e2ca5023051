"""Trains the small tokenizers of testdata and writes what they make of 10,000 random strings.

Run with tokenizers 0.23.3 in the folder of the package: python suite/make.py [folder for whole results]
"""
import json, os, struct, sys
from tokenizers import Tokenizer, Regex, models, normalizers, pre_tokenizers, decoders, processors, trainers, AddedToken

WORDS = ["the", "and", " of", " to", "ing", "tion", "'s", "'LL", " don't", "<s>", "</s>", "<|end|>", "[MASK]", "ſ", "İ", "ß", "ŉ",
         "ﬁ", "½", "é", "##", "▁", "<0x0A>", "👩‍👩‍👧", "中文", "한국어", "\r\n", "   ", "\n\n", " 12345", "Ａ", "'ſ"]
SPACES = ["\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\x0b", "\x0c", "\x85", "  "]
# Ranges of code points; all of them are assigned as they have been since Unicode 9.
RANGES = [(0x61, 0x7a), (0x61, 0x7a), (0x61, 0x7a), (0x41, 0x5a), (0x20, 0x20), (0x20, 0x20), (0x20, 0x20), (0x30, 0x39), (0x20, 0x7e),
          (0xa1, 0x17f), (0x300, 0x36f), (0x3a3, 0x3ff), (0x400, 0x4ff), (0x4e00, 0x9fa5), (0xac00, 0xd7a3), (0x3041, 0x3096),
          (0x621, 0x64a), (0x905, 0x94d), (0xe01, 0xe3a), (0x1f600, 0x1f64f), (0x2010, 0x2027), (0xff01, 0xff5e), (0x1100, 0x11ff),
          (0, 0x1f), (0xe000, 0xe0ff), (0x1e00, 0x1eff), (0x2150, 0x218b), (0x1d400, 0x1d454), (0xfe0e, 0xfe0f), (0x20000, 0x2a6d6)]
COUNT, BLOCK = 10000, 100


class Random:
    """Marsaglia's xorshift of 32 bits."""

    def __init__(self, seed):
        self.x = (seed * 2654435761 + 1) & 0xffffffff or 1

    def below(self, n):
        x = self.x
        x ^= x << 13 & 0xffffffff
        x ^= x >> 17
        x ^= x << 5 & 0xffffffff
        self.x = x
        return x % n


def string(i):
    r = Random(i)
    out = []
    for _ in range(r.below(40) + 1):
        kind = r.below(len(RANGES) + 4)
        if kind >= len(RANGES) + 1:
            out.append(WORDS[r.below(len(WORDS))])
        elif kind == len(RANGES):
            out.append(SPACES[r.below(len(SPACES))])
        else:
            low, high = RANGES[kind]
            out.append(chr(low + r.below(high - low + 1)))
    return "".join(out)


def fnv(h, data):
    """FNV-1a of 32 bits."""
    for b in data:
        h = (h ^ b) * 16777619 & 0xffffffff
    return h


STRINGS = [string(i) for i in range(COUNT)]
ROOT = "../../.."
TEXT = [line for name in ["README.md", "CONTRIBUTING.md", "RATIONALE.md", "CHANGELOG.md"] for line in open(f"{ROOT}/{name}", encoding="utf-8")]
CORPUS = TEXT + STRINGS[:600]
SPECIAL = ["<unk>", "<s>", "</s>", "<|end|>", "[MASK]"]

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]


def template(t, single, pair):
    used = [w for w in SPECIAL if w in single + pair]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[(w, t.token_to_id(w)) for w in used])


def bytes_bpe(split, size=700, normalizer=None, whole=False):
    t = Tokenizer(models.BPE(ignore_merges=whole))
    if normalizer:
        t.normalizer = normalizer
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in split]
    t.pre_tokenizer = pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False,
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL, show_progress=False,
                                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True, rstrip=True)])
    return t


def llama3():
    t = bytes_bpe([LLAMA3], whole=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(), template(t, "<s> $A", "<s> $A <s> $B:1")])
    return t


def llama2():
    """SentencePiece's BPE as converted for Llama 2: no pre-tokenizer, bytes for unknown characters."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    lines = [w for line in TEXT for w in line.split(" ")]
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=700, show_progress=False,
                                                     special_tokens=SPECIAL + [f"<0x{b:02X}>" for b in range(256)]))
    t.post_processor = template(t, "<s> $A", "<s> $A <s> $B:1")
    return t


def metaspace_bpe():
    """Word-wise BPE with a prefix at the beginning alone, and unknown characters that are not fused."""
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    t.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL[:1], show_progress=False))
    t.add_tokens([AddedToken("tion", single_word=True), AddedToken("and", normalized=True, rstrip=True)])
    t.add_special_tokens([AddedToken("<|end|>", normalized=False)])
    return t


def clip():
    """BPE over characters with a suffix of words."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
                                               pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("contiguous")])
    t.decoder = decoders.BPEDecoder()
    t.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=800, special_tokens=SPECIAL, show_progress=False, end_of_word_suffix="</w>"))
    return t


def charsmap():
    """A precompiled charsmap of some texts: a double array in which each node has a row of 256 units of its own."""
    texts = {"ﬁ": "fi", "½": "1/2", "Ａ": "A", "e\u0301": "é", "\u3000": " ", "\t": " ", "ß": "ss", "İ": "I", "e": "e", "\u00a0": " ", "\r\n": "\n"}
    replaced, at = b"", {}
    for k, v in texts.items():
        at[k.encode()] = len(replaced)
        replaced += v.encode() + b"\0"
    prefixes = sorted({k[:i] for k in at for i in range(len(k) + 1)}, key=len)
    row, units = {b"": 256}, [0] * (256 * (len(prefixes) + 2))
    link = lambda here, there: (here ^ there) >> 8 << 10 | 1 << 9  # a unit's offset, a multiple of 256
    units[0] = link(0, 256)
    for k, p in enumerate(prefixes[1:], 2):
        here = row[p[:-1]] ^ p[-1]
        row[p] = 256 * k | here & 0xff
        units[here] = link(here, row[p]) | p[-1]
        if p in at:
            units[here] |= 1 << 8
            units[row[p]] = 1 << 31 | at[p]
    return struct.pack("<I", 4 * len(units)) + b"".join(struct.pack("<I", u) for u in units) + replaced


def unigram(byte_fallback):
    t = Tokenizer(models.Unigram())
    steps = [normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " ")]
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(), steps[1]] if byte_fallback else steps)
    scheme = "never" if byte_fallback else "always"
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme=scheme)]) if byte_fallback else decoders.Metaspace()
    special = SPECIAL + ([f"<0x{b:02X}>" for b in range(256)] if byte_fallback else [])
    t.train_from_iterator(TEXT, trainers.UnigramTrainer(vocab_size=700 + len(special), special_tokens=special, unk_token="<unk>", show_progress=False))
    if byte_fallback:
        state = json.loads(t.to_str())
        state["model"]["byte_fallback"] = True
        t = Tokenizer.from_str(json.dumps(state))
    t.post_processor = template(t, "$A </s>", "$A </s> $B </s>")
    return t


def wordpiece(lowercase):
    t = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=100 if lowercase else 20))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer() if lowercase else pre_tokenizers.Whitespace()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=2500, limit_alphabet=900, special_tokens=SPECIAL, show_progress=False))
    t.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    return t


KINDS = {
    "gpt2": gpt2, "llama3": llama3, "qwen2": lambda: bytes_bpe([QWEN2], normalizer=normalizers.NFC()),
    "gpt4o": lambda: bytes_bpe([GPT4O]), "deepseek": lambda: bytes_bpe(DEEPSEEK), "llama2": llama2, "metaspace": metaspace_bpe, "clip": clip,
    "unigram": lambda: unigram(False), "unigrambytes": lambda: unigram(True), "bert": lambda: wordpiece(True), "wordpiece": lambda: wordpiece(False),
}


def sentencepiece(out, kind):
    """A model of SentencePiece 0.2.3, as GGUF has it: pieces, scores and types, and its ids and texts."""
    import sentencepiece as sp
    path = f"testdata/sp{kind}.json"
    if not os.path.exists(path):
        model = f"/tmp/sp{kind}"
        sp.SentencePieceTrainer.train(sentence_iterator=iter(TEXT), model_prefix=model, model_type=kind, vocab_size=700 if kind == "bpe" else 500,
                                      byte_fallback=kind == "bpe", normalization_rule_name="identity", remove_extra_whitespaces=False,
                                      hard_vocab_limit=False, minloglevel=2)
        m = sp.SentencePieceProcessor(model_file=model + ".model")
        types = [2 if m.is_unknown(i) else 3 if m.is_control(i) else 6 if m.is_byte(i) else 1 for i in range(len(m))]
        table = {"tokens": [m.id_to_piece(i) for i in range(len(m))], "scores": [m.get_score(i) for i in range(len(m))], "types": types}
        json.dump(table, open(path, "w", encoding="utf-8"), ensure_ascii=False, separators=(",", ":"))
    m = sp.SentencePieceProcessor(model_file=f"/tmp/sp{kind}.model")
    for block in range(0, COUNT, BLOCK):
        hashes = [0x811c9dc5] * 2
        for i in range(block, block + BLOCK):
            ids = m.encode(STRINGS[i])
            for k, data in enumerate([struct.pack(f"<{len(ids) + 1}i", *ids, -1), m.decode(ids).encode() + b"\xff"]):
                hashes[k] = fnv(hashes[k], data)
        out.write(f"sp{kind} {hashes[0]:08x} {hashes[1]:08x}\n")


def main():
    out = open("testdata/hashes.txt", "w")
    for name, make in KINDS.items():
        path = f"testdata/{name}.json"
        if not os.path.exists(path):
            json.dump(json.loads(make().to_str()), open(path, "w", encoding="utf-8"), ensure_ascii=False, separators=(",", ":"))
        t = Tokenizer.from_file(path)
        whole = open(f"{sys.argv[1]}/{name}.jsonl", "w") if len(sys.argv) > 1 else None
        size = t.get_vocab_size()
        for block in range(0, COUNT, BLOCK):
            hashes = [0x811c9dc5] * 3
            for i in range(block, block + BLOCK):
                ids = t.encode(STRINGS[i]).ids
                r = Random(i + COUNT)
                some = [r.below(size) for _ in range(r.below(12) + 1)]
                text, other = t.decode(ids), t.decode(some, skip_special_tokens=False)
                for k, data in enumerate([struct.pack(f"<{len(ids) + 1}i", *ids, -1), text.encode() + b"\xff", other.encode() + b"\xff"]):
                    hashes[k] = fnv(hashes[k], data)
                if whole:
                    whole.write(json.dumps([STRINGS[i], ids, text, some, other]) + "\n")
            out.write(f"{name} {hashes[0]:08x} {hashes[1]:08x} {hashes[2]:08x}\n")
    sentencepiece(out, "bpe")
    sentencepiece(out, "unigram")


main()
