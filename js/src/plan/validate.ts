// The rules about plans, not files: 9 and up. The comment of the Go
// package internal/compiler/plan lists them with their reasons, and it checks the same in the same order. Here
// errors have a rule's number for its words: every page loads this file.

import { arrayTypes, roundUp, sizeOf } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import { type Binding, type Dispatch, type Entry, type Kernel, persistentOf, type Plan, type Slot, type Step } from './plan.js';

/** The stride of uniform rows, and the alignment of storage bindings. */
export const rowBytes = 256;
/** The size of the status word with its details. */
export const statusBytes = 16;
/** The maximal depth of repeats. */
export const maxCounters = 7;

const maxDispatches = 1 << 20, maxRepeat = 1 << 16, maxUniformBytes = 1 << 14, maxRowsBytes = 1 << 20;

/**
 * The bytes of an element of each type on the device, where a bool is a word; of quantised
 * types the bytes of a block.
 */
export const typeBytes: Record<string, number> = {
  bool: 4, i64: 8, u64: 8, f64: 8, c64: 8, c128: 16,
  q8_0: 34, q4_0: 18, q4_1: 20, q5_0: 22, q5_1: 24, q2_k: 84, q3_k: 110, q4_k: 144, q5_k: 176, q6_k: 210, q8_k: 292,
};
for (const dtype in arrayTypes) typeBytes[dtype] ??= arrayTypes[dtype]!.BYTES_PER_ELEMENT;

/** The kinds of buffer for slots of each role, and those that steps can write to. */
const kindsOf = { input: 'input', scalar: '', param: 'state', state: 'state', output: 'constant input state temp' }, writable = 'state temp status';

/** The limits of a plan, in the order of the file. */
type Nine = [number, number, number, number, number, number, number, number, number];

/** Throws: a part of a plan breaks a rule. */
export function refuse(rule: number, what: string, kind: 'plan' | 'version' = 'plan'): never {
  throw new RlxError(kind, `plan: ${what} (rule ${rule})`);
}

const distinct = <T>(list: T[], field: (item: T) => unknown): boolean => new Set(list.map(field)).size === list.length;
const nameOf = ({ name }: { name: string }): string => name;
const within = (n: number, max: number): boolean => n > 0 && n <= max;
const fitsRow = (bytes: number): boolean => bytes % 4 === 0 && bytes <= maxUniformBytes;

/** Whether non-empty windows are free of conflicts; sorts them. If any two conflict, two neighbours do. */
function disjoint(windows: (Binding & { writes: boolean })[]): boolean {
  windows.sort((a, b) => a.buffer - b.buffer || a.offset - b.offset);
  return windows.every((b, i) => {
    const a = windows[i - 1];
    return a?.buffer !== b.buffer || (a.writes ? b.writes && a.offset + a.bytes <= b.offset : !b.writes);
  });
}

/** Throws an {@link RlxError} of kind `plan` unless the plan can be run. It does not check variants. */
export function validate({ buffers, slots, constants, kernels, status, entries, requires }: Plan): void {
  /** The part of the plan that is checked, for errors. */
  let part = 'buffers';
  /** The bytes of all rows of scalars so far. */
  let rows = 0;
  const need = (ok: unknown, rule: number): void => { if (!ok) refuse(rule, part); };
  const [arrays, bindingBytes, bufferBytes, sharedBytes, threads, x, y, z, groups] = Object.values(requires.limits) as Nine;

  function window({ buffer, offset, bytes }: Binding, alignment: number, kinds?: string): void {
    // A missing buffer has no bytes.
    need(offset + bytes <= buffers[buffer]?.bytes! && offset % alignment === 0 && bytes % 4 === 0, 14);
    need(!kinds || kinds.includes(buffers[buffer]!.kind), 15);
  }

  const written = (buffer: number): void => need(writable.includes(buffers[buffer]!.kind), 35);

  function checkSlot(slot: Slot): void {
    const { role, name, dtype, shape, range } = slot;
    part = `${role} ${name}`;
    const block = dtype[0] !== 'q' ? 1 : dtype[3] === 'k' ? 256 : 32;
    const n = sizeOf(shape), product = sizeOf(shape.filter(Boolean));
    need(name, 10);
    need(Number.isSafeInteger(product) && n % block === 0 && slot.bytes === roundUp(n / block * typeBytes[dtype]!, 4), 11);
    need(!range || (role === 'input' && /^[iu]/.test(dtype) && range[0] <= range[1]), 12);
    if (role !== 'scalar') window(slot, 4, kindsOf[role]);
    else need(/32|bool/.test(dtype) && !shape.length && slot.offset % 4 === 0, 13);
  }

  function checkKernel(kernel: Kernel): void {
    part = `kernel ${kernel.name}`;
    need(/^[a-z0-9_]+$/.test(kernel.name) && kernel.source, 18);
    need(kernel.workgroup.every((n, axis) => within(n, [x, y, z][axis]!)) && sizeOf(kernel.workgroup) <= threads, 19);
    need(kernel.sharedBytes <= sharedBytes, 20);
    need(within(kernel.storage.length, arrays), 21);
    need(fitsRow(kernel.scalarBytes), 22);
    need(kernel.counters <= maxCounters, 24);
  }

  function checkEntry(entry: Entry): void {
    part = `entry ${entry.name}`;
    need(fitsRow(entry.uniformBytes), 22);
    need((rows += roundUp(entry.uniformBytes, rowBytes)) <= maxRowsBytes, 23);
    const list = (indices: number[], roles: string) => indices.map((i) => {
      need(slots[i] && roles.includes(slots[i].role), 27);
      return slots[i]!;
    });
    const given = list(entry.inputs, 'input'), row = list(entry.scalars, 'scalar'), results = list(entry.outputs, 'output param state');
    list([...entry.reads, ...entry.sets], 'param');
    need(distinct([...given, ...row], nameOf) && distinct(results, nameOf) && !results.some(({ role, name }) => role === 'output' && persistent.has(name)), 28);
    need(distinct(row, ({ offset }) => offset) && row.every(({ offset }) => offset + 4 <= entry.uniformBytes), 29);
    need(work(entry.steps, entry.uniformBytes, 0) <= maxDispatches, 40);
  }

  /** The dispatches and iterations of a list of steps. */
  function work(steps: Step[], uniformBytes: number, depth: number): number {
    return steps.reduce((total, step) => {
      if (step.kind === 'repeat') {
        need(within(step.count, maxRepeat), 38);
        if (step.condition) window(step.condition, 4);
        const { steps, odd, count } = step, of = (list: Step[]) => work(list, uniformBytes, depth + 1) || 1, even = of(steps);
        return total + Math.ceil(count / 2) * even + Math.floor(count / 2) * (odd === steps ? even : of(odd));
      }
      if (step.kind === 'copy') {
        const { from, to, bytes } = step;
        window({ buffer: from, offset: step.fromOffset, bytes }, 4);
        window({ buffer: to, offset: step.toOffset, bytes }, 4);
        need(from !== to, 37);
        need(bytes, 34);
        written(to);
      } else {
        checkDispatch(step, uniformBytes, depth);
      }
      return total + 1;
    }, 0);
  }

  function checkDispatch(step: Dispatch, uniformBytes: number, depth: number): void {
    const kernel = kernels[step.kernel]!;
    need(kernel, 30);
    const fits = (grid?: number[]) => grid?.every((n) => within(n, groups));
    need(fits(step.groups), 31);
    need(kernel.draft ? !step.grid && fits(step.draft) : !step.draft?.some(Boolean), 44);
    need(step.bindings.length === kernel.storage.length, 32);
    need(kernel.counters <= depth && kernel.scalarBytes <= uniformBytes, 33);
    need(disjoint(step.bindings.map((at, i) => {
      const writes = kernel.storage[i] !== 'read';
      window(at, rowBytes);
      need(within(at.bytes, bindingBytes), 34);
      if (writes) written(at.buffer);
      return { ...at, writes };
    })), 36);
    const { grid } = step;
    if (grid) {
      window(grid, 4);
      need(!step.bindings.some(({ buffer }, i) => buffer === grid.buffer && kernel.storage[i] !== 'read'), 36);
    }
  }

  for (const { bytes } of buffers) need(within(bytes, bufferBytes) && bytes % rowBytes === 0, 9);
  slots.forEach(checkSlot);
  part = 'slots';
  const states = persistentOf(slots), persistent = new Set(states.map(nameOf));
  need(persistent.size === states.length, 16);
  const owned = slots.filter(({ role, bytes }) => bytes > 0 && role !== 'scalar' && role !== 'output');
  need(disjoint(owned.map((slot) => ({ ...slot, writes: true }))), 17);
  part = 'constants';
  for (const constant of constants) window({ ...constant, bytes: constant.data.length }, 4, 'constant state');
  kernels.forEach(checkKernel);
  part = 'status';
  if (status) {
    window({ ...status, bytes: statusBytes }, rowBytes, 'status');
    need(distinct([{ code: 0 }, ...status.codes], ({ code }) => code), 25);
  }
  part = 'entries';
  need(distinct([{ name: '' }, ...entries], nameOf), 26);
  entries.forEach(checkEntry);
}
