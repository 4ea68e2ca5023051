// Reading a file with open sizes: rules 1 to 8 and 46 to 48 of the Go package internal/compiler/plan, which writes it.

import { decodePlan, headerBytes, readHeader } from '../plan/decode.js';
import type { Plan, Slot } from '../plan/plan.js';
import type { Reader } from '../plan/reader.js';
import { refuse } from '../plan/validate.js';
import { RlxError } from '../values/errors.js';
import { isState, layoutOf, stateBuffers } from './device.js';
import { bindDim, parseDim } from './dim.js';
import { type Crop, keyOf, type OpenInput, sizePrefix, type Sizes, type Sizing } from './entry.js';

/** An entry of a file with open sizes. */
export interface FileEntry {
  readonly name: string;
  /** Whether a run changes parameters or states. */
  readonly writes: boolean;
  readonly symbols: readonly string[];
  /** For each symbol, whether its true size must be that of a bucket. */
  readonly exact: readonly boolean[];
  readonly inputs: readonly OpenInput[];
  readonly outputs: readonly { readonly name: string; readonly dtype: string; readonly axes: readonly (readonly string[])[] }[];
  /** Sizes that those of a bucket must not make smaller, and sizes that must be valid. */
  readonly sizes: readonly string[];
  readonly least: readonly string[];
}

/** An entry compiled for some sizes. */
export interface FileBucket { readonly entry: number; readonly sizes: readonly number[]; readonly plan: Plan }

/** A module compiled for some sizes of its symbols. `base` has the entries without open sizes. */
export interface OpenFile { name: string; entries: FileEntry[]; base: Plan; buckets: FileBucket[] }

const maxSize = 2 ** 31 - 1;

/** Whether a plan file has open sizes. */
export const isOpenFile = (file: Uint8Array): boolean => String.fromCharCode(...file.subarray(headerBytes, headerBytes + 4)) === 'OPEN';

/** Reads a file with open sizes. Throws an {@link RlxError} of kind `plan` or `version` that names the violated rule. */
export function decodeOpen(bytes: Uint8Array<ArrayBuffer>): OpenFile {
  const r = readHeader(bytes), file = { buckets: [] } as unknown as OpenFile, seen = new Set<string>();
  while (r.at < r.end) {
    const tag = r.where = r.tag(), required = r.u32() & 1;
    if (!Object.hasOwn(sections, tag) && required) refuse(8, tag === 'META' ? 'it has no open sizes: openProgram opens it' : `section ${tag} is not known`, 'version');
    if (seen.has(tag) && tag !== 'SIZE') r.fail(7, 'twice');
    seen.add(tag);
    r.record(() => {
      if (Object.hasOwn(sections, tag)) sections[tag]!(r, file);
      else r.at = r.end;
    });
  }
  for (const tag of ['OPEN', 'BASE']) if (!seen.has(tag)) r.fail(7, `section ${tag} is missing`);
  validate(file);
  return file;
}

const sections: Record<string, (r: Reader, file: OpenFile) => void> = {
  OPEN(r, file) {
    file.name = r.string();
    const texts = () => r.list(() => r.string());
    file.entries = r.records(() => ({
      name: r.string(), writes: r.oneOf([false, true]), symbols: texts(), exact: r.list(() => r.oneOf([false, true])),
      inputs: r.records(() => ({ name: r.string(), dtype: r.dtype(), shape: texts().map((dim) => /^\d+$/.test(dim) ? Number(dim) : dim) })),
      outputs: r.records(() => ({ name: r.string(), dtype: r.dtype(), axes: r.records(texts) })), sizes: texts(), least: texts(),
    }));
  },
  BASE(r, file) { file.base = decodePlan(r.take(r.end - r.at)); },
  SIZE(r, file) { file.buckets.push({ entry: r.u32(), sizes: r.list(() => r.u64(), 8), plan: decodePlan(r.take(r.u32())) }); },
};

const all = (plan: Plan): Plan[] => [plan, ...plan.variants];

/** Throws an {@link RlxError} of kind `plan` unless the parts of a file fit each other. */
function validate({ entries, base, buckets }: OpenFile): void {
  const names = new Set(base.entries.map(({ name }) => name)), seen = new Set<string>();
  for (const entry of entries) {
    if (!entry.name || names.has(entry.name)) refuse(46, `entry ${entry.name}: the name is empty or not the only one`);
    names.add(entry.name);
    checkEntry(entry);
  }
  for (const [i, bucket] of buckets.entries()) {
    const entry = entries[bucket.entry], key = `${bucket.entry} ${bucket.sizes}`;
    if (!entry || seen.has(key) || bucket.sizes.length !== entry.symbols.length) refuse(47, `bucket ${i}`);
    seen.add(key);
    for (const plan of all(bucket.plan)) {
      checkBucket(entry!, bucket, plan, `bucket ${i}`);
      if (!all(base).some((one) => one.target === plan.target && statesOf(one) === statesOf(plan))) refuse(48, `bucket ${i}: parameters and states for ${plan.target}`);
    }
  }
}

/** The locations and types of a plan's parameters and states. */
const statesOf = (plan: Plan): string => layoutOf(plan, stateBuffers(plan)) + plan.slots.filter(isState).map(({ name, role }) => `${role} ${name}`).sort();

function checkEntry({ name, symbols, exact, inputs, outputs, sizes, least }: FileEntry): void {
  const dims = [...inputs.flatMap(({ shape }) => shape.map(String)), ...sizes, ...least, ...outputs.flatMap(({ axes }) => axes.flat())];
  const axes = new Set(inputs.flatMap(({ shape }) => shape));
  const ok = symbols.length && exact.length === symbols.length && new Set(inputs.map((one) => one.name)).size === inputs.length &&
    symbols.every((symbol, i) => (!i || symbol > symbols[i - 1]!) && axes.has(symbol)) &&
    dims.every((dim) => parseDim(dim)?.symbols.every((symbol) => symbols.includes(symbol)));
  if (!ok) refuse(46, `entry ${name}`);
}

/** Checks the inputs and outputs of a bucket's plan. */
function checkBucket(entry: FileEntry, bucket: FileBucket, { entries, slots }: Plan, part: string): void {
  const found = entries.find(({ name }) => name === entry.name), bound = boundOf(entry, bucket);
  const need = (ok: unknown, name: string) => { if (!ok) refuse(47, `${part}: ${name}`); };
  need(found, entry.name);
  const same = ({ shape }: Slot, dims: readonly (string | number)[]) => `${shape}` === `${dims.map((dim) => bindDim(String(dim), bound))}`;
  for (const slot of [...found!.inputs, ...found!.scalars].map((i) => slots[i]!)) {
    const { name, dtype, shape } = slot, size = name.startsWith(sizePrefix) && name.slice(sizePrefix.length), input = entry.inputs.find((one) => one.name === name);
    if (typeof size === 'string') need(dtype === 'i32' && !shape.length && parseDim(size)?.symbols.every((symbol) => Object.hasOwn(bound, symbol)) && bindDim(size, bound) !== undefined, name);
    else need(input?.dtype === dtype && same(slot, input.shape), name);
  }
  const crops = cropsOf(entry, bound, bound);
  for (const slot of found!.outputs.map((i) => slots[i]!)) {
    if (isState(slot)) continue;
    need(entry.outputs.find(({ name }) => name === slot.name)?.dtype === slot.dtype && `${crops?.get(slot.name)?.dims}` === `${slot.shape}`, slot.name);
  }
}

/** The sizes of a bucket by symbol. */
const boundOf = ({ symbols }: FileEntry, { sizes }: FileBucket): Sizes => Object.fromEntries(symbols.map((symbol, i) => [symbol, sizes[i]!]));

/** The crops of the outputs; undefined if a size is not valid. */
function cropsOf({ outputs }: FileEntry, sizes: Sizes, bound: Sizes): Map<string, Crop> | undefined {
  const crops = new Map<string, Crop>();
  for (const { name, axes } of outputs) {
    const parts = axes.map((axis) => axis.map((dim) => bindDim(dim, sizes))), full = axes.flat().map((dim) => bindDim(dim, bound));
    if ([...parts.flat(), ...full].includes(undefined)) return undefined;
    crops.set(name, { dims: parts.map((axis) => axis.reduce<number>((product, n) => product * n!, 1)), box: parts.flat() as number[], full: full as number[] });
  }
  return crops;
}

/** The sizes of calls of an entry of a file: those of the smallest bucket that serves them. */
export class FileSizing implements Sizing {
  readonly #entry: FileEntry;
  readonly #buckets: readonly FileBucket[];

  constructor(entry: FileEntry, buckets: readonly FileBucket[]) {
    this.#entry = entry;
    this.#buckets = buckets;
  }

  most(): undefined {}

  bound(sizes: Sizes): Sizes {
    const volume = (bucket: FileBucket) => bucket.sizes.reduce((a, b) => a * b, 1);
    const fitting = this.#buckets.filter((bucket) => this.#serves(bucket, sizes)), least = fitting.reduce<FileBucket | undefined>((best, one) => best && volume(best) <= volume(one) ? best : one, undefined);
    if (least) return boundOf(this.#entry, least);
    const { name, symbols } = this.#entry, texts = this.#buckets.map((bucket) => keyOf(symbols, boundOf(this.#entry, bucket))), more = texts.splice(16);
    throw new RlxError('limit', `${name}: the file has no plan for ${keyOf(symbols, sizes)}: it has ${texts.join('; ')}${more.length ? `; ${more.length} more` : ''}`, { op: name });
  }

  /** The bucket of sizes that it is compiled for. */
  bucket(bound: Sizes): FileBucket { return this.#buckets.find(({ sizes }) => sizes.every((n, i) => bound[this.#entry.symbols[i]!] === n))!; }

  async fit(sizes: Sizes, bound: Sizes): Promise<ReadonlyMap<string, Crop> | undefined> { return cropsOf(this.#entry, sizes, bound); }

  async measure(names: readonly string[], sizes: Sizes): Promise<Record<string, number>> {
    return Object.fromEntries(names.map((name) => [name, bindDim(name.slice(sizePrefix.length), sizes) ?? -1])); // no axis has -1 elements
  }

  #serves(bucket: FileBucket, sizes: Sizes): boolean {
    const { symbols, exact, least, sizes: arrays } = this.#entry, bound = boundOf(this.#entry, bucket);
    return symbols.every((symbol, i) => exact[i] ? sizes[symbol] === bucket.sizes[i] : sizes[symbol]! >= 1) && least.every((dim) => bindDim(dim, sizes) !== undefined) &&
      arrays.every((dim) => {
        const n = bindDim(dim, sizes), limit = bindDim(dim, bound);
        return n !== undefined && limit !== undefined && n <= limit && limit <= maxSize;
      });
  }
}
