// Reading a plan file. Here and in reader.ts are rules 1 to 8 and 39, in validate.ts the others.

import type { Binding, Dispatch, Plan, Slot, Step } from './plan.js';
import { Reader } from './reader.js';
import { maxCounters, refuse, validate } from './validate.js';

const major = 1, minor = 4, variant = 'VARI';

/** The bytes of a plan file before its first section. */
export const headerBytes = 16;

const kinds = ['constant', 'input', 'state', 'temp', 'status'] as const;
const roles = ['input', 'scalar', 'param', 'state', 'output'] as const;
const accesses = ['read', 'write', 'atomic'] as const;
const limitNames = [
  'maxStorageBuffersPerShaderStage', 'maxStorageBufferBindingSize', 'maxBufferSize', 'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupSizeX', 'maxComputeWorkgroupSizeY', 'maxComputeWorkgroupSizeZ',
  'maxComputeWorkgroupsPerDimension',
];

/**
 * Reads a plan file. For any bytes it ends soon, with a plan that can be run or an {@link
 * RlxError} of kind `plan` or `version` that names the violated rule. The plan's constants are
 * views of the bytes.
 */
export function decodePlan(file: Uint8Array | ArrayBuffer): Plan {
  const bytes = file instanceof Uint8Array ? file as Uint8Array<ArrayBuffer> : new Uint8Array(Object(file) as ArrayBuffer);
  const plan = readFile(bytes, true);
  for (const one of [plan, ...plan.variants]) validate(one);
  return plan;
}

/** Checks the header of a plan file and returns a reader of its sections. */
export function readHeader(bytes: Uint8Array<ArrayBuffer>): Reader {
  const r = new Reader(bytes);
  if (r.end < headerBytes || r.tag() !== 'RLXP') r.fail(1, 'no plan file');
  const version = r.u32(), found = version & 0xffff;
  if (found !== major) refuse(2, `version ${found}, not ${major}`, 'version');
  if (r.u32() !== r.end || r.u32() !== crc32(bytes.subarray(headerBytes))) r.fail(1);
  r.newer = version >>> 16 > minor;
  return r;
}

function readFile(bytes: Uint8Array<ArrayBuffer>, outer: boolean): Plan {
  const r = readHeader(bytes);
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
  for (const tag in mandatory) if (!seen.has(tag)) r.fail(7, `section ${tag} is missing`);
  return plan;
}

type Sections = Record<string, (r: Reader, plan: Plan) => void>;

const mandatory: Sections = {
  META(r, plan) { plan.name = r.string(); plan.compiler = r.string(); plan.target = r.string(); },
  REQS(r, plan) {
    const features = r.list(() => r.string());
    const limits = Object.fromEntries(limitNames.map((name) => [name, r.u64()]));
    plan.requires = { features, limits, subgroup: [r.u32(), r.u32()] };
  },
  BUFS(r, plan) { plan.buffers = r.records(() => ({ kind: r.oneOf(kinds), bytes: r.u64() })); },
  SLOT(r, plan) { plan.slots = r.records(() => readSlot(r)); },
  CNST(r, plan) { plan.constants = r.records(() => ({ buffer: r.u32(), offset: r.u64(), data: r.take(r.u32()) })); },
  KRNL(r, plan) {
    plan.kernels = r.records(() => ({
      name: r.string(), source: r.string(), workgroup: r.triple(), sharedBytes: r.u32(),
      storage: r.list(() => r.oneOf(accesses)), scalarBytes: r.u32(), counters: r.u32(),
    }));
  },
  ENTR(r, plan) {
    const numbers = () => r.list(() => r.u32()), more = () => r.at < r.end ? numbers() : []; // since version 1.4
    plan.entries = r.records(() => ({
      name: r.string(), inputs: numbers(), scalars: numbers(), outputs: numbers(), uniformBytes: r.u32(), steps: readSteps(r, 0),
      reads: more(), sets: more(),
    }));
  },
};

const sections: Sections = {
  ...mandatory,
  SYMS(r, plan) { plan.symbols = r.records(() => ({ name: r.string(), value: r.u64() })); },
  DRFT(r, plan) {
    r.records(() => {
      const kernel = plan.kernels?.[r.u32()], draft = r.string();
      (kernel ?? r.fail(44)).draft = draft;
    });
  },
  CODE(r, plan) { plan.code = r.take(r.u32()); },
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
        else if (r.at < r.end) step.draft = r.triple();
        return step;
      }
      case 1:
        return { kind: 'copy', from: r.u32(), fromOffset: r.u64(), to: r.u32(), toOffset: r.u64(), bytes: r.u64() };
      case 2:
      case 3:
      case 6: {
        const condition = kind > 3 && readCell(r), count = condition ? 1 : r.u32(), steps = readSteps(r, depth + 1);
        return { kind: 'repeat', count, steps, odd: kind === 3 ? readSteps(r, depth + 1) : steps, ...condition && { condition } };
      }
    }
    return refuse(8, `step kind ${kind} is not known`, 'version');
  });
}

let table: Uint32Array | undefined;

/** CRC-32 as in IEEE 802.3. */
export function crc32(bytes: Uint8Array): number {
  table ??= Uint32Array.from({ length: 256 }, (_, n) => {
    for (let i = 0; i < 8; i++) n = n >>> 1 ^ (n & 1 && 0xedb88320);
    return n;
  });
  let c = -1;
  for (let i = 0; i < bytes.length; i++) c = c >>> 8 ^ table[(c ^ bytes[i]!) & 255]!;
  return ~c >>> 0;
}
