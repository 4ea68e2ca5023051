// Reading a plan file. The format and its rules are described, and files written, in the Go
// package ir/plan. Here are rules 1 to 8 and 39, in validate.ts the others.

import { maxCounters, refuse, typeBytes, validate } from './validate.js';

/** What a device must have: WebGPU's names of features and limits, and the range of subgroup sizes. */
export interface Requires {
  features: string[];
  limits: Record<string, number>;
  /** The least and the greatest subgroup size the kernels are right for; zeros where any will do. */
  subgroup: [number, number];
}

/** How a slot is used. Parameters and states persist between runs and belong to all entries. */
export type Role = 'input' | 'scalar' | 'param' | 'state' | 'output';

/** A named tensor. */
export interface Slot {
  name: string;
  role: Role;
  dtype: string;
  shape: number[];
  buffer: number;
  /** In bytes; of a scalar, in the entry's row of scalars. */
  offset: number;
  bytes: number;
  /** Where set, elements lie in [lo, hi), and the host checks it. */
  range?: [lo: number, hi: number];
}

export type BufferKind = 'constant' | 'input' | 'state' | 'temp' | 'status';
export type Access = 'read' | 'write' | 'atomic';

export interface Binding { buffer: number; offset: number; bytes: number }

export interface Kernel {
  name: string;
  source: string;
  workgroup: number[];
  sharedBytes: number;
  storage: Access[];
  scalarBytes: number;
  counters: number;
}

/** `grid`, where it is set, is where steps before left `groups`, or zeros: then the kernel does not run. */
export interface Dispatch { kind: 'dispatch'; kernel: number; groups: number[]; bindings: Binding[]; grid?: Binding }
export interface Copy { kind: 'copy'; from: number; fromOffset: number; to: number; toOffset: number; bytes: number }
/**
 * `odd` are the steps of rounds 1, 3, … where they differ. With `going` there are as many rounds as it
 * takes for the word there to be 0 after one: more of them change nothing.
 */
export interface Repeat { kind: 'repeat'; count: number; steps: Step[]; odd: Step[]; going?: Binding }
export type Step = Dispatch | Copy | Repeat;

/** One way to run a plan. Inputs, scalars and outputs are places in `slots`. */
export interface Entry {
  name: string;
  inputs: number[];
  scalars: number[];
  outputs: number[];
  uniformBytes: number;
  steps: Step[];
}

/** Where kernels report failed checks, and what their codes mean. */
export interface Status {
  buffer: number;
  offset: number;
  codes: { code: number; node: string; message: string }[];
}

/** A compiled module for one kind of device. */
export interface Plan {
  name: string;
  compiler: string;
  target: string;
  requires: Requires;
  symbols: { name: string; value: number }[];
  buffers: { kind: BufferKind; bytes: number }[];
  slots: Slot[];
  constants: { buffer: number; offset: number; data: Uint8Array<ArrayBuffer> }[];
  kernels: Kernel[];
  entries: Entry[];
  /** The WebAssembly module that the kernels are functions of: each `source` is a name there. */
  code?: Uint8Array<ArrayBuffer>;
  status?: Status;
  /** The same module for other devices. */
  variants: Plan[];
}

const major = 1, minor = 2, headerBytes = 16, variant = 'VARI';

const kinds = ['constant', 'input', 'state', 'temp', 'status'] as const;
const roles = ['input', 'scalar', 'param', 'state', 'output'] as const;
const accesses = ['read', 'write', 'atomic'] as const;
const limitNames = [
  'maxStorageBuffersPerShaderStage', 'maxStorageBufferBindingSize', 'maxBufferSize', 'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupSizeX', 'maxComputeWorkgroupSizeY', 'maxComputeWorkgroupSizeZ',
  'maxComputeWorkgroupsPerDimension',
];

/**
 * Reads a plan file. Whatever the bytes are, it ends soon, with a plan that can be run or an
 * {@link RlxError} of kind `plan` or `version`, whose message has the number of the rule that is
 * broken. The plan's constants are views of the bytes.
 */
export function decodePlan(file: Uint8Array | ArrayBuffer): Plan {
  const bytes = file instanceof Uint8Array ? file as Uint8Array<ArrayBuffer> : new Uint8Array(file);
  const plan = readFile(bytes, true);
  for (const one of [plan, ...plan.variants]) validate(one);
  return plan;
}

function readFile(bytes: Uint8Array<ArrayBuffer>, outer: boolean): Plan {
  const r = new Reader(bytes);
  if (bytes.length < headerBytes || r.tag() !== 'RLXP') r.fail(1, 'no plan file');
  const version = r.u32(), length = r.u32(), sum = r.u32();
  if ((version & 0xffff) !== major) refuse(2, `version ${version & 0xffff}, not ${major}`, 'version');
  if (length !== bytes.length) r.fail(1);
  if (crc32(bytes.subarray(headerBytes)) !== sum) r.fail(1);
  r.newer = version >>> 16 > minor;
  const plan = { symbols: [], variants: [] } as Partial<Plan> as Plan;
  const seen = new Set<string>();
  while (r.at < r.end) {
    const tag = r.where = r.tag(), required = r.u32() & 1;
    r.record(() => {
      if (!Object.hasOwn(sections, tag) || (tag === variant && !outer)) {
        if (required) refuse(8, `section ${tag} is not known`, 'version');
        r.at = r.end;
        return;
      }
      if (seen.has(tag) && tag !== variant) r.fail(7, 'twice');
      seen.add(tag);
      sections[tag]!(r, plan);
    });
  }
  for (const tag of ['META', 'REQS', 'BUFS', 'SLOT', 'CNST', 'KRNL', 'ENTR']) if (!seen.has(tag)) r.fail(7, `section ${tag} is missing`);
  return plan;
}

const sections: Record<string, (r: Reader, plan: Plan) => void> = {
  META(r, plan) { plan.name = r.string(); plan.compiler = r.string(); plan.target = r.string(); },
  REQS(r, plan) {
    const features = r.list(() => r.string());
    const limits = Object.fromEntries(limitNames.map((name) => [name, r.u64()]));
    plan.requires = { features, limits, subgroup: [r.u32(), r.u32()] };
  },
  SYMS(r, plan) { plan.symbols = r.records(() => ({ name: r.string(), value: r.u64() })); },
  BUFS(r, plan) { plan.buffers = r.records(() => ({ kind: r.oneOf(kinds), bytes: r.u64() })); },
  SLOT(r, plan) { plan.slots = r.records(() => readSlot(r)); },
  CNST(r, plan) { plan.constants = r.records(() => ({ buffer: r.u32(), offset: r.u64(), data: r.take(r.u32()) })); },
  KRNL(r, plan) {
    plan.kernels = r.records(() => ({
      name: r.string(), source: r.string(), workgroup: r.triple(), sharedBytes: r.u32(),
      storage: r.list(() => r.oneOf(accesses)), scalarBytes: r.u32(), counters: r.u32(),
    }));
  },
  CODE(r, plan) { plan.code = r.take(r.u32()); },
  ENTR(r, plan) {
    const numbers = () => r.list(() => r.u32());
    plan.entries = r.records(() => ({
      name: r.string(), inputs: numbers(), scalars: numbers(), outputs: numbers(), uniformBytes: r.u32(), steps: readSteps(r, 0),
    }));
  },
  STAT(r, plan) {
    plan.status = { buffer: r.u32(), offset: r.u64(), codes: r.records(() => ({ code: r.u32(), node: r.string(), message: r.string() })) };
  },
  [variant](r, plan) { plan.variants.push(readFile(r.take(r.end - r.at), false)); },
};

function readSlot(r: Reader): Slot {
  const slot: Slot = {
    name: r.string(), role: r.oneOf(roles), dtype: r.dtype(), shape: r.list(() => r.u64(), 8),
    buffer: r.u32(), offset: r.u64(), bytes: r.u64(),
  };
  const checked = r.oneOf([false, true]), range: [number, number] = [r.i64(), r.i64()];
  if (checked) slot.range = range;
  return slot;
}

function readCell(r: Reader): Binding { return { buffer: r.u32(), offset: r.u64(), bytes: 12 }; }

function readSteps(r: Reader, depth: number): Step[] {
  if (depth > maxCounters) r.fail(39);
  return r.records((): Step => {
    const kind = r.u32();
    switch (kind) {
      case 0:
      case 4: {
        const step: Dispatch = {
          kind: 'dispatch', kernel: r.u32(), groups: r.triple(),
          bindings: r.list(() => ({ buffer: r.u32(), offset: r.u64(), bytes: r.u64() }), 20),
        };
        if (kind) step.grid = readCell(r);
        return step;
      }
      case 1:
        return { kind: 'copy', from: r.u32(), fromOffset: r.u64(), to: r.u32(), toOffset: r.u64(), bytes: r.u64() };
      case 2:
      case 3: {
        const count = r.u32(), steps = readSteps(r, depth + 1);
        return { kind: 'repeat', count, steps, odd: kind > 2 ? readSteps(r, depth + 1) : steps };
      }
      case 6: {
        const going = readCell(r), steps = readSteps(r, depth + 1);
        return { kind: 'repeat', count: 1, steps, odd: steps, going };
      }
    }
    return refuse(8, `a step of kind ${kind} is not known`, 'version');
  });
}

/** Reads fields between at and end, and throws where there is none. */
class Reader {
  at = 0;
  end: number;
  /** Whether the file's minor version is above ours: then records may have more fields. */
  newer = false;
  where = 'header';
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #view: DataView;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = bytes;
    this.end = bytes.length;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Throws: the file breaks a rule here. */
  fail(rule: number, reason = 'damaged'): never {
    return refuse(rule, `${this.where} at byte ${this.at}: ${reason}`);
  }

  /** Throws unless n bytes are there. */
  #room(n: number): void {
    if (n > this.end - this.at) this.fail(3);
  }

  /** Steps over n bytes, and returns where they begin. */
  #skip(n: number): number {
    this.#room(n);
    return (this.at += n) - n;
  }

  take(n: number): Uint8Array<ArrayBuffer> { return this.#bytes.subarray(this.#skip(n), this.at); }

  tag(): string { return String.fromCharCode(...this.take(4)); }

  u32(): number { return this.#view.getUint32(this.#skip(4), true); }

  /** A number of 64 bits that is exact in JavaScript. */
  i64(): number {
    const at = this.#skip(8), n = this.#view.getUint32(at, true) + this.#view.getInt32(at + 4, true) * 2 ** 32;
    return Number.isSafeInteger(n) ? n : this.fail(4);
  }

  u64(): number {
    const n = this.i64();
    return n >= 0 ? n : this.fail(4);
  }

  triple(): number[] { return [this.u32(), this.u32(), this.u32()]; }

  oneOf<T>(values: readonly T[]): T { return values[this.u32()] ?? this.fail(6); }

  dtype(): string {
    const name = this.string();
    return Object.hasOwn(typeBytes, name) ? name : this.fail(6);
  }

  string(): string {
    const n = this.u32();
    this.#room(n + (-n & 3));
    const bytes = this.take(n);
    this.#skip(-n & 3);
    try {
      return utf8.decode(bytes);
    } catch {
      return this.fail(5);
    }
  }

  /** Every item takes at least `size` bytes, so the count is bounded by what is there. */
  list<T>(item: () => T, size = 4): T[] {
    const n = this.u32();
    this.#room(n * size);
    const items: T[] = [];
    while (items.length < n) items.push(item());
    return items;
  }

  record<T>(body: () => T): T {
    const n = this.u32(), outer = this.end;
    this.#room(n + (-n & 3));
    this.end = this.at + n;
    const value = body();
    if (this.at < this.end && !this.newer) this.fail(3);
    this.at = this.end;
    this.end = outer;
    this.#skip(-n & 3);
    return value;
  }

  records<T>(item: () => T): T[] { return this.list(() => this.record(item)); }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

let table: Uint32Array | undefined;

/** CRC-32 as in IEEE 802.3. */
function crc32(bytes: Uint8Array): number {
  table ??= Uint32Array.from({ length: 256 }, (_, n) => {
    for (let bit = 0; bit < 8; bit++) n = n & 1 ? n >>> 1 ^ 0xedb88320 : n >>> 1;
    return n;
  });
  let c = -1;
  for (let i = 0; i < bytes.length; i++) c = table[(c ^ bytes[i]!) & 255]! ^ c >>> 8;
  return ~c >>> 0;
}
