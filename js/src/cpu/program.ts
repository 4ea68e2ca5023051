// A plan with code made into calls, once: memory, the module's functions, and for each entry a list of what to call.

import type { Entry, Plan, Step } from '../plan/plan.js';
import { rowBytes } from '../plan/validate.js';
import type { Runnable } from '../session/plan-session.js';
import { gridBytes, type Kernels, runGrid } from './grid.js';
import { helpers, sharing, startThreads } from './threads.js';

export interface ProgramEntry extends Runnable { steps: Call[] }
type Call = () => void;

export interface Program {
  memory: ArrayBufferLike;
  /** Where each buffer of the plan lies, and the row of scalars. */
  places: number[];
  row: number;
  entries: Map<string, ProgramEntry>;
  threads: Worker[];
}

const pageBytes = 1 << 16;

/** What an entry's row of scalars takes. */
const strideOf = ({ uniformBytes }: Entry): number => Math.ceil(uniformBytes / rowBytes) * rowBytes;

/** Lays out the memory, as the Go package ir/plan says, and compiles the module. */
export async function buildProgram(plan: Plan): Promise<Program> {
  let own = rowBytes; // below lies what is each kernel's own, once for each thread
  for (const { sharedBytes } of plan.kernels) own = Math.max(own, Math.ceil(sharedBytes / rowBytes) * rowBytes);
  const count = helpers(plan), grid = own * (1 + count), row = grid + gridBytes;
  let end = row;
  for (const entry of plan.entries) end = Math.max(end, row + strideOf(entry));
  const places = plan.buffers.map(({ bytes }) => (end += bytes) - bytes);
  const pages = Math.ceil(end / pageBytes), memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: count > 0 }), { buffer } = memory;
  for (const { buffer: at, offset, data } of plan.constants) new Uint8Array(buffer).set(data, places[at]! + offset);
  const module = await WebAssembly.compile(count > 0 ? sharing(plan.code!) : plan.code!), names = plan.kernels.map(({ source }) => source);
  const { exports } = await WebAssembly.instantiate(module, { rlx: { memory }, Math: Math as unknown as WebAssembly.ModuleImports });
  const words = count > 0 ? new Int32Array(buffer, grid, gridBytes / 4) : undefined;
  const maker = new Maker(plan, places, row, buffer, names.map((name) => exports[name]) as unknown as Kernels, words);
  const entries = plan.entries.map((entry): [string, ProgramEntry] => {
    const stride = strideOf(entry);
    return [entry.name, { entry, stride, rows: new DataView(new ArrayBuffer(stride)), steps: maker.calls(entry.steps, 0) }];
  });
  return { memory: buffer, places, row, entries: new Map(entries), threads: await startThreads(count, { module, memory, names, grid }, own) };
}

class Maker {
  readonly #plan: Plan;
  readonly #places: number[];
  readonly #row: number;
  readonly #buffer: ArrayBufferLike;
  readonly #kernels: Kernels;
  /** What threads share a grid by, if there are any. */
  readonly #words: Int32Array | undefined;
  /** The rounds of the repeats that are under way. */
  readonly #counts: number[] = [];

  constructor(plan: Plan, places: number[], row: number, buffer: ArrayBufferLike, kernels: Kernels, words: Int32Array | undefined) {
    this.#plan = plan;
    this.#places = places;
    this.#row = row;
    this.#buffer = buffer;
    this.#kernels = kernels;
    this.#words = words;
  }

  /** What runs a kernel over a grid: a kernel of several workgroups is told which, and where their memory lies. */
  #runner(index: number, groups: number): (args: number[]) => void {
    const kernels = this.#kernels, words = this.#words, kernel = kernels[index]!;
    if (groups < 2) return (args) => kernel(...args);
    return words ? (args) => runGrid(words, kernels, index, args, groups) : (args) => kernel(...args, 0, groups, 0);
  }

  calls(steps: Step[], depth: number): Call[] { return steps.map((step) => this.#call(step, depth)); }

  #call(step: Step, depth: number): Call {
    const places = this.#places, counts = this.#counts;
    switch (step.kind) {
      case 'dispatch': {
        const { scalarBytes, counters } = this.#plan.kernels[step.kernel]!, run = this.#runner(step.kernel, step.groups[0]!);
        const args = step.bindings.map(({ buffer, offset }) => places[buffer]! + offset);
        if (scalarBytes > 0) args.push(this.#row);
        const call = counters > 0 ? () => run([...args, ...counts.slice(0, counters)]) : () => run(args);
        if (!step.grid) return call;
        const grid = new Uint32Array(this.#buffer, places[step.grid.buffer]! + step.grid.offset, 1);
        return () => { if (grid[0]) call(); };
      }
      case 'copy': {
        const { from, fromOffset, to, toOffset, bytes } = step, source = new Uint8Array(this.#buffer, places[from]! + fromOffset, bytes);
        return () => new Uint8Array(this.#buffer).set(source, places[to]! + toOffset);
      }
      case 'repeat': {
        const { count, steps, odd } = step, even = this.calls(steps, depth + 1), rounds = [even, odd === steps ? even : this.calls(odd, depth + 1)];
        return () => {
          for (counts[depth] = 0; counts[depth]! < count; counts[depth]!++) for (const call of rounds[counts[depth]! % 2]!) call();
        };
      }
    }
  }
}

/** Makes room for the rows of some steps; what is bound stays. */
export function growRows(entry: ProgramEntry, steps: number): void {
  const bytes = entry.stride * steps, old = new Uint8Array(entry.rows.buffer);
  if (bytes <= old.length) return;
  entry.rows = new DataView(new ArrayBuffer(bytes));
  new Uint8Array(entry.rows.buffer).set(old);
}
