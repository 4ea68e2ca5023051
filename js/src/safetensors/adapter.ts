// Low-rank adapters in the files of PEFT: https://huggingface.co/docs/peft/package_reference/lora.

import { convertible, decodeSafetensors, encodeSafetensors } from './file.js';
import { checkOptions, need, RlxError } from '../values/errors.js';
import type { StoredTensor } from '../values/tensor.js';
import { permuted } from './permute.js';
import { renamed } from './rename.js';

/** The low-rank matrices of a fine-tuned model and their options, those of `nn.lora`. */
export interface Adapter {
  /** The matrices by their names in `nn`: `SCOPE/lora_A/weight` [in, rank] and `SCOPE/lora_B/weight` [rank, out], f32. */
  tensors: Readonly<Record<string, StoredTensor>>;
  /** The rank of the matrices: that which they have if not given. */
  rank?: number;
  /** Divided by the rank it scales the added term. The rank if not given. */
  alpha?: number;
  /** The rate at which inputs of the matrices were dropped. 0 if not given. */
  dropout?: number;
  /** The model that the adapter belongs to. */
  base?: string;
  /** PEFT's name of what it does, such as `CAUSAL_LM`. */
  task?: string;
  /** Whether the model in PyTorch has weights [in, out], as GPT-2 has. */
  inOut?: boolean;
}

/** The files of an adapter, in its folder. */
export interface AdapterFiles {
  'adapter_model.safetensors': Uint8Array<ArrayBuffer>;
  'adapter_config.json': string;
}

/** Options of {@link encodeAdapter} and {@link decodeAdapter}. */
export interface AdapterOptions {
  /**
   * Replaces the beginning of a scope, whole parts of a path: `{ h: 'model/layers' }` when an adapter is written, `{ 'model/layers': 'h' }`
   * when it is read. Of several, the first that fits is used.
   */
  rename?: Readonly<Record<string, string>>;
}

/** Options of {@link mergeAdapter}. */
export interface MergeOptions {
  /** Whether the weight of a name is [out, in], as `outIn` of `nn.stored` has those of language models. None is if not given. */
  outIn?: (name: string) => boolean;
}

/** PEFT wraps a model twice. */
const prefix = 'base_model.model.';

/**
 * The files of an adapter as PEFT reads them: slashes of names become dots, matrices their transposes. Tensors with other names
 * are left out, so that all parameters of a program may be given. Throws an {@link RlxError} of kind `name` if there are no matrices,
 * one of a pair is missing or two have one new name, `shape` if shapes do not agree on a rank, and `dtype` for elements that are not f32.
 */
export function encodeAdapter(adapter: Adapter, options?: AdapterOptions): AdapterFiles {
  const matrices = matricesOf('encodeAdapter', adapter);
  checkOptions('encodeAdapter', options, 'rename');
  const rank = checkPairs(matrices, adapter.rank), { alpha = rank, dropout = 0, base = '', task = null, inOut = false } = adapter;
  const out = translated(matrices, ofLayer, (scope, which) => `${prefix}${renamed(scope, options?.rename).replaceAll('/', '.')}.lora_${which}.weight`);
  const config = {
    peft_type: 'LORA', task_type: task, base_model_name_or_path: base, r: rank, lora_alpha: alpha, lora_dropout: dropout, bias: 'none',
    fan_in_fan_out: inOut, inference_mode: true, target_modules: modules(Object.keys(out)),
  };
  return { 'adapter_model.safetensors': encodeSafetensors(out, { format: 'pt' }), 'adapter_config.json': `${JSON.stringify(config, undefined, 2)}\n` };
}

/**
 * Reads the files that {@link encodeAdapter} or PEFT's `save_pretrained` wrote. Matrices become f32, and their names those in `nn`:
 * `program.load(adapter.tensors, { allowMissing: true })` sets them. Throws an {@link RlxError} of kind `syntax` for malformed files,
 * `unsupported` for an adapter that `nn.lora` is not, such as DoRA or one with several ranks, and `name` and `shape` as
 * {@link encodeAdapter}.
 */
export function decodeAdapter(files: { readonly [N in keyof AdapterFiles]: N extends 'adapter_config.json' ? string : Uint8Array | ArrayBuffer }, options?: AdapterOptions): Required<Adapter> {
  checkOptions('decodeAdapter', options, 'rename');
  const c = configOf(files?.['adapter_config.json']), { r: rank, lora_alpha: alpha = rank } = c, read = decodeSafetensors(files['adapter_model.safetensors']).tensors;
  const other = Object.keys(read).find((name) => !/\.lora_[AB]\.weight$/.test(name));
  if (other !== undefined) throw new RlxError('unsupported', `decodeAdapter: tensor ${other}: names must end in .lora_A.weight or .lora_B.weight`, { name: other });
  const as32 = Object.fromEntries(Object.entries(read).map(([name, x]) => [name, x.as('f32', { narrow: true })]));
  const tensors = translated(as32, /\.lora_([AB])\.weight$/, (scope, which) => {
    const path = scope.startsWith(prefix) ? scope.slice(prefix.length) : scope;
    return `${renamed(path.replaceAll('.', '/'), options?.rename)}/lora_${which}/weight`;
  });
  checkPairs(tensors, rank);
  return {
    tensors, rank, alpha: c.use_rslora ? alpha * Math.sqrt(rank) : alpha, dropout: c.lora_dropout ?? 0, // the scale of rsLoRA is alpha/√rank
    base: c.base_model_name_or_path ?? '', task: c.task_type ?? '', inOut: c.fan_in_fan_out ?? false,
  };
}

/**
 * Weights by their names in `nn`, with the adapter in them, as PEFT's `merge_and_unload`: a model without `nn.lora` then computes what that with the
 * adapter did. The weight of a scope becomes weight + lora_A·lora_B·alpha/rank, computed in f64 and rounded to its type. Other
 * tensors are returned as they are, those of the adapter left out: all parameters of a training may be both the adapter's and the weights.
 * Throws an {@link RlxError} of kind `name` for a scope without a weight, `shape` for a weight that does not fit, `dtype` for one that is no
 * float, and as {@link encodeAdapter}.
 */
export function mergeAdapter(adapter: Adapter, weights: Readonly<Record<string, StoredTensor>>, options?: MergeOptions): Record<string, StoredTensor> {
  checkOptions('mergeAdapter', options, 'outIn');
  const { outIn = () => false } = options ?? {};
  need(typeof outIn === 'function', 'attr', 'mergeAdapter: outIn', 'a function of the name', outIn);
  const matrices = matricesOf('mergeAdapter', adapter), rank = checkPairs(matrices, adapter.rank), scale = (adapter.alpha ?? rank) / rank;
  need(Object(weights) === weights, 'missing', 'mergeAdapter: weights', 'tensors by name', weights);
  const out = Object.fromEntries(Object.entries(weights).filter(([name]) => !ofLayer.test(name)));
  for (const [name, a] of Object.entries(matrices)) {
    if (!name.endsWith('/lora_A/weight')) continue;
    const scope = name.replace(ofLayer, ''), to = `${scope}/weight`, weight = out[to];
    if (!weight) throw new RlxError('name', `mergeAdapter: ${name} has no ${to} to merge with`, { name });
    const b = matrices[`${scope}/lora_B/weight`]!;
    out[to] = outIn(to) ? plusProduct(to, weight, turned(b), turned(a), scale) : plusProduct(to, weight, a, b, scale); // (a·b)ᵀ = bᵀ·aᵀ
  }
  return out;
}

/** The transpose of a matrix. */
const turned = ({ dtype, shape, data }: StoredTensor): StoredTensor => ({ dtype, shape: [shape[1]!, shape[0]!], data: permuted(data, shape, [1, 0]) });

/** A weight plus the product of two matrices times a scale. */
function plusProduct(name: string, { dtype, shape, data }: StoredTensor, a: StoredTensor, b: StoredTensor, scale: number): StoredTensor {
  const [rows, rank] = a.shape as [number, number], columns = b.shape[1]!;
  if (`${shape}` !== `${[rows, columns]}`) throw new RlxError('shape', `mergeAdapter: ${name} is ${dtype}[${shape}]: it must be [${rows},${columns}]`, { name, shape });
  if (!/^b?f\d/.test(dtype)) throw new RlxError('dtype', `mergeAdapter: ${name} is ${dtype}: it must be of floats`, { name });
  const wide = Float64Array.from(convertible(name, { dtype, shape, data }).as('f64').data as Float64Array);
  const [left, right] = [a.data, b.data] as Float32Array[];
  for (let i = 0; i < rows; i++) {
    for (let r = 0; r < rank; r++) {
      const x = scale * left![i * rank + r]!;
      for (let o = 0; o < columns; o++) wide[i * columns + o]! += x * right![r * columns + o]!;
    }
  }
  return { ...convertible(name, { dtype: 'f64', shape, data: wide }).as(dtype, { narrow: true }) };
}

/** The end of a matrix's name in `nn`. */
const ofLayer = /\/lora_([AB])\/weight$/;

/** The matrices among the tensors of an adapter that a function is given. */
function matricesOf(what: string, adapter: Adapter): Record<string, StoredTensor> {
  checkOptions(what, adapter, 'tensors rank alpha dropout base task inOut');
  need(Object(adapter?.tensors) === adapter?.tensors, 'missing', `${what}: tensors`, 'tensors by name', adapter?.tensors);
  return Object.fromEntries(Object.entries(adapter.tensors).filter(([name]) => ofLayer.test(name)));
}

/** What is read of an adapter_config.json. */
interface Config {
  peft_type: string; task_type?: string | null; base_model_name_or_path?: string | null; r: number; lora_alpha?: number; lora_dropout?: number; bias?: string;
  fan_in_fan_out?: boolean; use_rslora?: boolean; use_dora?: boolean; rank_pattern?: object | null; alpha_pattern?: object | null; modules_to_save?: string[] | null;
}

/** The configuration, of an adapter that {@link Adapter} can represent. */
function configOf(text: string): Config {
  let c: Config;
  try {
    c = Object(JSON.parse(text)) as Config;
  } catch (cause) {
    throw new RlxError('syntax', `decodeAdapter: adapter_config.json is not JSON: ${(cause as Error).message}`, { cause });
  }
  const refuse = (kind: 'unsupported' | 'syntax', reason: string) => { throw new RlxError(kind, `decodeAdapter: ${reason}`); };
  const some = (given?: object | null): boolean => Object.keys(given ?? {}).length > 0;
  if (c.peft_type !== 'LORA') refuse('unsupported', `peft_type is ${c.peft_type}: it must be LORA`);
  if (c.use_dora || some(c.rank_pattern) || some(c.alpha_pattern) || some(c.modules_to_save) || (c.bias ?? 'none') !== 'none') {
    refuse('unsupported', 'use_dora, rank_pattern, alpha_pattern, modules_to_save and bias must be off or empty');
  }
  if (!(Number.isInteger(c.r) && c.r > 0)) refuse('syntax', `r is ${c.r}: it must be a whole number of 1 or more`);
  return c;
}

/** The transposes of matrices by the names that a function gives to scope and letter. */
function translated(tensors: Readonly<Record<string, StoredTensor>>, end: RegExp, to: (scope: string, which: string) => string): Record<string, StoredTensor> {
  const out: Record<string, StoredTensor> = {};
  for (const [name, tensor] of Object.entries(tensors)) {
    const [, which] = end.exec(name)!, renewed = to(name.replace(end, ''), which!);
    if (Object.hasOwn(out, renewed)) throw new RlxError('name', `adapter: two tensors have the name ${renewed}: the second is ${name}`, { name });
    out[renewed] = turned(tensor);
  }
  return out;
}

/** Checks that there are matrices, each with its partner, all of one rank, which is returned. */
function checkPairs(tensors: Readonly<Record<string, StoredTensor>>, given?: number): number {
  let rank = given;
  for (const [name, { dtype, shape }] of Object.entries(tensors)) {
    const isA = name.endsWith('/lora_A/weight'), other = name.replace(/[AB](?=\/weight$)/, isA ? 'B' : 'A');
    if (!Object.hasOwn(tensors, other)) throw new RlxError('name', `adapter: tensor ${name} lacks its partner ${other}`, { name });
    if (dtype !== 'f32') throw new RlxError('dtype', `adapter: tensor ${name} is ${dtype}: it must be f32`, { name });
    const own = shape[isA ? 1 : 0];
    if (shape.length !== 2 || own !== (rank ??= own)) throw new RlxError('shape', `adapter: tensor ${name} is f32[${shape}]: it must be a matrix of rank ${rank}`, { name, shape });
  }
  if (rank === undefined || !Object.keys(tensors).length) throw new RlxError('name', 'adapter: no tensor has a name that ends in /lora_A/weight or /lora_B/weight');
  return rank;
}

/** The last parts of modules, by which PEFT finds the layers of all blocks, and whole paths of those that are numbered; sorted. */
function modules(names: readonly string[]): string[] {
  const paths = names.map((name) => name.slice(prefix.length).replace(/\.lora_[AB]\.weight$/, ''));
  return [...new Set(paths.map((path) => path.split('.').at(-1)!).map((last, i) => /^\d*$/.test(last) ? paths[i]! : last))].sort();
}
