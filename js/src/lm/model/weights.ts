// Finds the parameters of a decoder in a file, and chooses their storage.

import type { Port } from '../../graph/graph.js';
import type { Storage } from '../../nn/layer.js';
import { packedBlock } from '../../nn/storage.js';
import { arrayOf, converted } from '../../safetensors/convert.js';
import { listed } from '../../safetensors/nearest.js';
import { RlxError } from '../../values/errors.js';
import type { HostTensor } from '../../values/tensor.js';
import type { ModelFile, TensorInfo } from '../gguf.js';
import type { Config } from './config.js';
import { familyOf, inGGUF } from './family.js';
import type { Read, Unpacker } from './unpack.js';

/** The tensor of a file that a parameter is read from. */
interface Source { info: TensorInfo; expert?: number }

/** A parameter of a program. */
interface Parameter { name: string; dtype: string; shape: readonly number[] }

/** A parameter, and its bytes of a tensor. */
interface Part<P> { parameter: P; info: TensorInfo; from: number; size: number }

/** The bytes that are asked for at once, unless a parameter has more: each read takes long. */
const bytesAtOnce = 8 << 20;

const floats = /^(f32|f16|bf16)$/;

/** Whether a file is a GGUF file: otherwise its metadata are those of config.json. */
export const isGGUF = (file: ModelFile): boolean => file.metadata.has('general.architecture');

/** A parameter of the matrices that `nn.lora` adds: it is of no file of the model. */
export const isAdapter = (name: string): boolean => /\/lora_[AB]\/weight$/.test(name);

/** Options of {@link Weights}. */
export interface WeightsOptions {
  /**
   * Converts all matrices to f32. By default rows stay packed if products support the format, and
   * unpacked matrices keep their type.
   */
  unpack?: boolean;
}

/** The parameters of a decoder in a file. */
export class Weights {
  readonly #file: ModelFile;
  readonly #config: Config;
  readonly #find: (parameter: string) => Source | undefined;

  readonly #unpacks: boolean;
  #unpacker: Unpacker | undefined;

  /** `configOf` returns the configuration. */
  constructor(file: ModelFile, config: Config, options: WeightsOptions = {}) {
    this.#file = file;
    this.#config = config;
    this.#unpacks = !!options.unpack;
    this.#find = isGGUF(file) ? this.#inGGUF() : (parameter) => this.#inHF(parameter);
  }

  #inGGUF(): (parameter: string) => Source | undefined {
    const layers = inGGUF(this.#config);
    return (parameter) => {
      const at = parameter.lastIndexOf('/'), layer = layers.get(parameter.slice(0, Math.max(at, 0)));
      const info = layer && this.#file.tensors.get(`${layer.name}.${parameter.slice(at + 1)}`);
      return info && { info, ...layer.expert !== undefined && { expert: layer.expert } };
    };
  }

  #inHF(parameter: string): Source | undefined {
    const dotted = parameter.replaceAll('/', '.'), short = dotted.slice(dotted.indexOf('.') + 1);
    for (const name of [dotted, short, `language_model.${dotted}`, `model.language_model.${short}`]) {
      const info = this.#file.tensors.get(name);
      if (info) return { info };
    }
    return undefined;
  }

  /** The storage of a weight, for `nn.stored`. */
  storage(name: string): Storage {
    const { info } = this.#find(name) ?? {}, type = info?.type, numbers = this.#unpacks && 'f32';
    if (type === undefined) return { outIn: true };
    if (floats.test(type)) return { outIn: !this.#isInOut(name), dtype: numbers || type as 'f32' };
    if (packedBlock(type)) return { outIn: true, ...numbers ? { dtype: numbers } : { format: type } };
    throw new RlxError('unsupported', `tensor ${info!.name} is ${type}, which cannot be read`, { name });
  }

  /** Whether the file has a matrix as [in, out]. */
  #isInOut(name: string): boolean {
    const { names } = familyOf(this.#config.architecture), layer = name.slice(0, name.lastIndexOf('/'));
    return !!this.#config.inOut && !isGGUF(this.#file) && ![names.embedding, names.head, names.positions].includes(layer);
  }

  /**
   * Throws unless the file fits the parameters of graphs: of kind `missing` for missing
   * parameters, `name` for tensors that are no parameters, each with the nearest name, and
   * `shape`.
   */
  check(ports: readonly Port[]): void {
    const missing: string[] = [], used = new Set<string>();
    for (const port of ports) {
      if (port.kind !== 'param' || isAdapter(port.name)) continue;
      const found = this.#find(port.name);
      if (!found) missing.push(port.name);
      else {
        used.add(found.info.name);
        this.#fit(port, found);
      }
    }
    const unused = [...this.#file.tensors.keys()].filter((name) => !used.has(name) && !this.#isNeedless(name));
    if (missing.length) throw new RlxError('missing', `the file lacks ${listed(missing, unused)}`, { name: missing[0]! });
    if (unused.length) throw new RlxError('name', `the file has ${listed(unused, missing)}, of which ${this.#config.architecture} has no parameters`, { name: unused[0]! });
  }

  #fit({ name, dtype, shape }: Port, { info, expert }: Source): void {
    const given = info.shape.slice(expert === undefined ? 0 : 1);
    if (dtype === 'u8') {
      const [elements, bytes] = packedBlock(info.type)!;
      given[given.length - 1] = given.at(-1)! / elements * bytes;
    }
    const { experts = info.shape[0] } = this.#config;
    if (`${given}` === `${shape}` && (expert === undefined || info.shape[0] === experts)) return;
    throw new RlxError('shape', `tensor ${info.name} is ${info.type}[${info.shape}], which does not fit parameter ${name}, ${dtype}[${shape}]`, { name, shape: info.shape });
  }

  /** Whether a tensor is no parameter but follows from the configuration, or is of the part of a model that reads images. */
  #isNeedless(name: string): boolean {
    return /^rope_(freqs|factors_)|\.(rotary_emb\.inv_freq|(attn|attention)\.(masked_)?bias)$|^(model\.)?(vision_tower|multi_modal_projector)\./.test(name) ||
      !!this.#config.tied && /^(language_model\.)?lm_head\.weight$/.test(name);
  }

  /** Reads a parameter, as a program takes it. */
  async read(parameter: Parameter): Promise<HostTensor> {
    return (await this.each([parameter]).next()).value![1];
  }

  /** Reads parameters in the order of the file, some at a time: the next ones are read while the last ones are used. Some are `packed`, if that is allowed. */
  async *each<P extends Parameter>(parameters: readonly P[], packed = false): AsyncGenerator<[P, Read], void, void> {
    const groups: Part<P>[][] = [];
    let room = -1; // for bytes, in the last group
    const all = parameters.map((parameter): Part<P> => {
      const { name } = parameter, { info, expert } = this.#find(name) ?? {};
      if (!info) throw new RlxError('missing', `the file lacks ${name}`, { name });
      const size = info.bytes / (expert === undefined ? 1 : this.#config.experts!);
      return { parameter, info, size, from: size * (expert ?? 0) };
    });
    for (const one of all.sort((a, b) => a.info.offset - b.info.offset)) {
      if ((room -= one.size) >= 0) groups.at(-1)!.push(one);
      else {
        groups.push([one]);
        room = bytesAtOnce - one.size;
      }
    }
    const begin = (group: Part<P>[] = []) => Promise.all(group.map(({ info, from, size }) => this.#file.read(info.name, from, from + size)));
    let next = begin(groups[0]);
    for (const [at, group] of groups.entries()) {
      const bytes = await next;
      next = begin(groups[at + 1]);
      next.catch(() => {}); // which is waited for later, or no more
      for (const { parameter, info } of group) yield [parameter, await this.#value(parameter, info, bytes.shift()!, packed)];
    }
    this.#unpacker = undefined; // whose memory is needed no longer
  }

  async #value({ name, dtype, shape }: Parameter, info: TensorInfo, bytes: Uint8Array<ArrayBuffer>, packed: boolean): Promise<Read> {
    if (dtype === 'u8') return { dtype, shape, data: elements(dtype, bytes) };
    if (packedBlock(info.type)) {
      if (!this.#unpacks) throw new RlxError('unsupported', `tensor ${info.name} is ${info.type}, and parameter ${name} has numbers: unpack it`, { name });
      this.#unpacker ??= new (await import('./unpack.js')).Unpacker();
      return this.#unpacker.value(dtype, shape, info.type, bytes, packed);
    }
    const data = converted(name, { dtype: info.type, shape: info.shape, data: elements(info.type, bytes) }, dtype) as Float32Array;
    const offset = /norm.*\/weight$/.test(name) && shape.length === 1 && !isGGUF(this.#file) && this.#config.normOffset;
    return { dtype, shape, data: offset ? data.map((x) => x + offset) : data };
  }

  /** The bytes that the parameters take in memory. */
  get bytes(): number {
    let sum = 0;
    for (const { name, shape, bytes } of this.#file.tensors.values()) if (!this.#isNeedless(name)) sum += this.#unpacks ? shape.reduce((n, size) => n * size, 4) : bytes;
    return sum;
  }
}

/** Bytes as elements; those within larger memory are copied: not by `slice`, which of a Buffer is a view. */
function elements(type: string, bytes: Uint8Array): HostTensor['data'] {
  const array = arrayOf(type) as { new (buffer: ArrayBufferLike, offset: number, length: number): HostTensor['data']; readonly BYTES_PER_ELEMENT: number };
  const { buffer } = bytes.byteOffset ? new Uint8Array(bytes) : bytes;
  return new array(buffer, 0, bytes.length / array.BYTES_PER_ELEMENT);
}
