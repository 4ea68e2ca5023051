"""Writes a tiny random model of each architecture into a folder beside this file, with what transformers
computes by it in f32, and images with the pixels of its processors.

    pip install torch==2.15.0 transformers==5.24.0 tokenizers safetensors pillow==13.0.0
    python models.py

Weights are random, and the configurations odd on purpose.
"""

import json
import os
import shutil
import sys

import numpy as np
import PIL.Image
import torch
import transformers as tf
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers.image_transforms import center_crop
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = "the a of to and in is it on cat dog sat mat sun sky blue red green big small run ##s ##ed ##ing ##er ##ly".split()
TEXTS = ["the cat sat on the mat", "a big dog runs", "", "blue sky and red sun in the sky is big and it is green to the dog and the cat"]
BATCH, TIME = 3, 19
LENGTHS = [19, 5, 12]
DTYPES = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)
VOCABULARY = 40
TEXT = dict(vocab_size=VOCABULARY, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, max_position_embeddings=32, pad_token_id=0)
NAMES = dict(id2label={0: "bad", 1: "so-so", 2: "good"}, label2id={"bad": 0, "so-so": 1, "good": 2})
MODERN = dict(TEXT, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, local_attention=6, num_hidden_layers=3, global_attn_every_n_layers=2,
              rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=500.0), sliding_attention=dict(rope_type="default", rope_theta=100.0)))
DISTIL = dict(vocab_size=VOCABULARY, dim=12, n_layers=2, n_heads=2, hidden_dim=20, max_position_embeddings=32, pad_token_id=0)
ROBERTA = dict(TEXT, max_position_embeddings=34, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5)
TOWER = dict(num_hidden_layers=2, num_attention_heads=2, intermediate_size=14)
CLIP = dict(text_config=dict(TOWER, vocab_size=VOCABULARY, hidden_size=12, num_attention_heads=3, max_position_embeddings=24, bos_token_id=1, eos_token_id=3, pad_token_id=0),
            vision_config=dict(TOWER, hidden_size=8, image_size=13, patch_size=4), projection_dim=6)
WHISPER = dict(vocab_size=VOCABULARY, num_mel_bins=8, d_model=12, encoder_layers=2, encoder_attention_heads=3, encoder_ffn_dim=16, decoder_layers=2,
               decoder_attention_heads=2, decoder_ffn_dim=20, max_source_positions=50, max_target_positions=24, pad_token_id=0, bos_token_id=0, eos_token_id=0,
               decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None)

MODELS = {
    "bert": (tf.BertForSequenceClassification, tf.BertConfig, "f32", dict(TEXT, **NAMES)),
    "bertlm": (tf.BertForMaskedLM, tf.BertConfig, "bf16", dict(TEXT, hidden_act="gelu_new")),
    "minilm": (tf.BertModel, tf.BertConfig, "f16", dict(TEXT, num_attention_heads=4)),
    "roberta": (tf.RobertaForMaskedLM, tf.RobertaConfig, "f32", ROBERTA),
    "robertalabels": (tf.RobertaForSequenceClassification, tf.RobertaConfig, "f16", dict(ROBERTA, num_hidden_layers=1, **NAMES)),
    "distilbert": (tf.DistilBertForSequenceClassification, tf.DistilBertConfig, "f32", dict(DISTIL, **NAMES)),
    "distilbertlm": (tf.DistilBertForMaskedLM, tf.DistilBertConfig, "bf16", DISTIL),
    "modernbert": (tf.ModernBertForMaskedLM, tf.ModernBertConfig, "f32", MODERN),
    "modernbertlabels": (tf.ModernBertForSequenceClassification, tf.ModernBertConfig, "bf16", dict(
        MODERN, attention_bias=True, mlp_bias=True, norm_bias=True, classifier_bias=True, classifier_pooling="mean", local_attention=64, **NAMES)),
    "tokenlabels": (tf.BertForTokenClassification, tf.BertConfig, "f32", dict(TEXT, num_hidden_layers=1, **NAMES)),
    "vit": (tf.ViTForImageClassification, tf.ViTConfig, "f32", dict(TOWER, hidden_size=12, image_size=[13, 18], patch_size=[5, 4], qkv_bias=False, **NAMES)),
    "vitmodel": (tf.ViTModel, tf.ViTConfig, "bf16", dict(TOWER, hidden_size=12, image_size=12, patch_size=4, num_channels=3)),
    "clip": (tf.CLIPModel, tf.CLIPConfig, "f32", CLIP),
    "whisper": (tf.WhisperForConditionalGeneration, tf.WhisperConfig, "f32", WHISPER),
}
SEEDS = {"whisper": 13}  # one whose transcript is not one word


def build(name):
    kind, config, dtype, options = MODELS[name]
    torch.manual_seed(SEEDS.get(name, sorted(MODELS).index(name) + 1))
    options = dict(options)
    if kind is tf.CLIPModel:
        model = kind(config(text_config=options["text_config"], vision_config=options["vision_config"], projection_dim=options["projection_dim"]))
    else:
        model = kind(config(**options))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "embed_positions" in key and "encoder" in key:
                pass  # sinusoids
            elif p.dim() > 1:
                fan = p[0].numel()
                p.normal_(0, 1 / fan ** 0.5 * (2 if "embed" in key else 3 if "attn" in key and name == "whisper" else 1.3))
            elif key.endswith("norm.weight") or "LayerNorm.weight" in key or "layer_norm" in key and key.endswith("weight") or "layernorm" in key and key.endswith("weight"):
                p.copy_(1 + 0.3 * torch.randn(p.shape))
            elif p.dim() == 1:
                p.normal_(0, 0.3)
            p.copy_(p.to(DTYPES[dtype]).float())
    return model.eval()


def wordpiece(folder):
    vocabulary = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"] + WORDS
    t = Tokenizer(models.WordPiece({w: i for i, w in enumerate(vocabulary)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    t.add_special_tokens(vocabulary[:5])
    t.save(os.path.join(folder, "tokenizer.json"))
    return t


def words(folder, special, template=None):
    """Words between spaces, with special tokens before them."""
    t = Tokenizer(models.WordLevel({w: i for i, w in enumerate(special + WORDS)}, unk_token="<unk>" if "<unk>" in special else special[0]))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.add_special_tokens(special)
    if template:
        t.post_processor = processors.TemplateProcessing(single=template[0], special_tokens=template[1])
    t.save(os.path.join(folder, "tokenizer.json"))
    return t


def tokens_of(generator):
    tokens = torch.randint(5, VOCABULARY, (BATCH, TIME), generator=generator)
    mask = torch.zeros(BATCH, TIME, dtype=torch.long)
    for row, n in enumerate(LENGTHS):
        mask[row, :n] = 1
    return tokens, mask


def expect_text(model, name, folder):
    generator = torch.Generator().manual_seed(7)
    tokens, mask = tokens_of(generator)
    if "roberta" in name:
        tokens[mask == 0] = model.config.pad_token_id
    out = {"tokens": tokens.int(), "mask": mask.int()}
    options = dict(attention_mask=mask)
    if getattr(model.config, "type_vocab_size", 0) > 1:
        types = (torch.arange(TIME)[None] >= torch.tensor([[9], [3], [12]])).long()
        out["types"], options["token_type_ids"] = types.int(), types
    base = getattr(model, model.base_model_prefix, model)
    result = base(tokens, **options)
    out["hidden"] = result.last_hidden_state
    if getattr(result, "pooler_output", None) is not None:
        out["pooled"] = result.pooler_output
    if base is not model:
        out["scores"] = model(tokens, **options).logits
    if "roberta" in name:
        t = words(folder, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], ("<s> $A </s>", [("<s>", 0), ("</s>", 2)]))
        mask_token = "<mask>"
    else:
        t = wordpiece(folder)
        mask_token = "[MASK]"
    longest = 16  # texts are cut, as transformers does
    vectors, labels = [], []
    for text in TEXTS:
        t.enable_truncation(longest)
        ids = torch.tensor([t.encode(text).ids])
        hidden = base(ids).last_hidden_state[0]
        vector = hidden.mean(0)
        vectors.append(vector / vector.norm())
        if "scores" in out and out["scores"].dim() == 2:
            labels.append(model(ids).logits[0].softmax(-1))
    out["vectors"] = torch.stack(vectors)
    if labels:
        out["labels"] = torch.stack(labels)
    if name == "bert":
        t.enable_truncation(longest, strategy="longest_first")
        rows = []
        for a, b in ((0, 1), (1, 0), (3, 1), (0, 3), (3, 3), (2, 1)):
            e = t.encode(TEXTS[a], TEXTS[b])
            rows.append(model(torch.tensor([e.ids]), token_type_ids=torch.tensor([e.type_ids])).logits[0].softmax(-1))
        out["pairs"] = torch.stack(rows)
    if "MaskedLM" in type(model).__name__:
        t.no_truncation()
        ids = torch.tensor([t.encode(f"the {mask_token} sat on a {mask_token}").ids])
        probabilities = model(ids).logits[0].softmax(-1)[ids[0] == t.token_to_id(mask_token)]
        top = probabilities.topk(4)
        out["fill_tokens"], out["fill_probabilities"] = top.indices.int(), top.values
    return out


def photo(height, width):
    """A picture with edges and slopes."""
    y, x = np.mgrid[:height, :width]
    channels = [(x * 255 // width), ((x + y) * 37 % 256), np.where((x - width / 2) ** 2 + (y - height / 2) ** 2 < (height / 3) ** 2, 230, 20)]
    return PIL.Image.fromarray(np.stack(channels, -1).astype(np.uint8))


def processor_of(name):
    if name == "vit":
        return ViTImageProcessorPil(size=dict(height=13, width=18), image_mean=[0.5, 0.4, 0.3], image_std=[0.5, 0.25, 0.2])
    if name == "vitmodel":
        return ViTImageProcessorPil(size=dict(height=12, width=12), do_normalize=False, resample=3)
    return CLIPImageProcessorPil(size=dict(shortest_edge=15), crop_size=dict(height=13, width=13))


def expect_image(model, name, folder, processor):
    images = [photo(23, 31), photo(40, 14)]
    for i, image in enumerate(images):
        image.save(os.path.join(HERE, f"photo{i}.png"))
    pixels = processor(images, return_tensors="pt")["pixel_values"].float()
    processor.save_pretrained(folder)
    out = {"pixels": pixels}
    if name == "clip":
        t = words(folder, ["<pad>", "<start>", "<unk>", "<end>"], ("<start> $A <end>", [("<start>", 1), ("<end>", 3)]))
        t.enable_padding(pad_id=0)
        ids = torch.tensor([e.ids for e in t.encode_batch(TEXTS)])
        mask = torch.tensor([e.attention_mask for e in t.encode_batch(TEXTS)])
        result = model(input_ids=ids, attention_mask=mask, pixel_values=pixels)
        out.update(tokens=ids.int(), images=result.image_embeds, texts=result.text_embeds, scores=result.logits_per_image, labels=result.logits_per_image.softmax(-1))
        return out
    base = getattr(model, model.base_model_prefix, model)
    result = base(pixels)
    out["hidden"] = result.last_hidden_state
    if getattr(result, "pooler_output", None) is not None:
        out["pooled"] = result.pooler_output
    if base is not model:
        out["scores"] = model(pixels).logits
        out["labels"] = out["scores"].softmax(-1)
    return out


SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|notimestamps|>"]


def expect_speech(model, folder):
    words(folder, SPECIAL)
    extractor = tf.WhisperFeatureExtractor(feature_size=8, chunk_length=1)
    extractor.save_pretrained(folder)
    rng = np.random.default_rng(5)
    time = np.arange(14000) / 16000
    sound = (0.4 * np.sin(2 * np.pi * 440 * time * (1 + time)) + 0.02 * rng.standard_normal(14000)).astype(np.float32)
    mels = extractor(sound, sampling_rate=16000, return_tensors="pt").input_features
    hidden = model.model.encoder(mels).last_hidden_state
    generation = dict(decoder_start_token_id=1, eos_token_id=0, pad_token_id=0, bos_token_id=0, is_multilingual=True, lang_to_id={"<|en|>": 2, "<|de|>": 3},
                      task_to_id={"translate": 4, "transcribe": 5}, no_timestamps_token_id=6, suppress_tokens=[7, 9, 1, 2, 3, 4, 5, 6, 33, 34, 35, 36, 37, 38, 39],
                      begin_suppress_tokens=[0, 12], max_length=24)
    with open(os.path.join(folder, "generation_config.json"), "w") as f:
        json.dump(generation, f, indent=1)
    out = {"sound": torch.from_numpy(sound), "mels": mels, "hidden": hidden}
    language = model(mels, decoder_input_ids=torch.tensor([[1]])).logits[0, -1]
    out["language"] = torch.tensor([2 if language[2] > language[3] else 3]).int()
    for key, task in (("transcript", 5), ("translation", 4)):
        start = [1, int(out["language"]) if key == "transcript" else 3, task, 6]
        tokens, prefix = torch.tensor([start]), len(start)
        while tokens.shape[1] < 24:
            scores = model(mels, decoder_input_ids=tokens).logits[0, -1].clone()
            scores[generation["suppress_tokens"]] = -torch.inf
            if tokens.shape[1] == prefix:
                scores[generation["begin_suppress_tokens"]] = -torch.inf
            top = scores.topk(2).values
            assert top[0] - top[1] > 1e-3, "the greedy choice is not clear, take another seed"
            tokens = torch.cat([tokens, scores.argmax()[None, None]], 1)
            if tokens[0, -1] == 0:
                break
        out[key] = tokens[0].int()
    out["scores"] = model(mels, decoder_input_ids=tokens).logits[0]
    print(out["transcript"], out["translation"])
    return out


def resized():
    """The pixels of both photos by each filter of Pillow, and cut or surrounded as transformers does."""
    out = {}
    for i in range(2):
        image = PIL.Image.open(os.path.join(HERE, f"photo{i}.png"))
        for resample in range(4):
            for height, width in ((9, 12), (31, 17), (50, 45)):
                out[f"{i}/{resample}/{height}/{width}"] = torch.from_numpy(np.asarray(image.resize((width, height), resample)).transpose(2, 0, 1).copy())
        pixels = np.asarray(image).transpose(2, 0, 1)
        for height, width in ((10, 11), (30, 27), (45, 9)):
            out[f"{i}/crop/{height}/{width}"] = torch.from_numpy(center_crop(pixels, (height, width), data_format="channels_first", input_data_format="channels_first").astype(np.uint8))
    save_file({k: v.contiguous() for k, v in out.items()}, os.path.join(HERE, "resized.safetensors"), {"pillow": PIL.__version__, "transformers": tf.__version__})


def main():
    if not sys.argv[1:] or "resized" in sys.argv:
        resized()
    for name in sys.argv[1:] or MODELS:
        if name == "resized":
            continue
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        model = build(name)
        with torch.no_grad():
            if name == "whisper":
                out = expect_speech(model, folder)
            elif name in ("vit", "vitmodel", "clip"):
                out = expect_image(model, name, folder, processor_of(name))
            else:
                out = expect_text(model, name, folder)
        save_file({k: v.contiguous() for k, v in out.items()}, os.path.join(folder, "expected.safetensors"), {"transformers": tf.__version__, "torch": torch.__version__})
        generation = os.path.join(folder, "generation_config.json")
        kept = open(generation).read() if os.path.exists(generation) else None
        model.to(DTYPES[MODELS[name][2]]).save_pretrained(folder)
        if kept:
            with open(generation, "w") as f:
                f.write(kept)
        elif os.path.exists(generation):
            os.remove(generation)
        path = os.path.join(folder, "model.safetensors")
        if name == "bertlm":  # the names of norms in old files
            old = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v for k, v in load_file(path).items()}
            save_file(old, path)
        if name == "minilm":
            os.makedirs(os.path.join(folder, "1_Pooling"))
            with open(os.path.join(folder, "1_Pooling", "config.json"), "w") as f:
                json.dump({"word_embedding_dimension": 12, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, f)
        print(name, {f: os.path.getsize(os.path.join(folder, f)) for f in sorted(os.listdir(folder))}, flush=True)


if __name__ == "__main__":
    main()
