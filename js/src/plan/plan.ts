// What a plan is. The format of its files and their rules are described, and files written, in
// the Go package internal/compiler/plan; decode.ts reads them.

/** The required device: WebGPU's names of features and limits, and the range of subgroup sizes. */
export interface Requires {
  features: string[];
  limits: Record<string, number>;
  /** The minimal and maximal subgroup size that the kernels support; zeros for any. */
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
  /** If set, elements lie in [lo, hi), which the host checks. */
  range?: [lo: number, hi: number];
}

/** The slots that persist between runs. */
export const persistentOf = (slots: Slot[]): Slot[] => slots.filter(({ role }) => role === 'param' || role === 'state');

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
  /** An alternative source with the same results, which is slower and compiles faster. */
  draft?: string;
}

/**
 * `grid`, if set, is the location of an indirect grid: `groups`, or zeros to skip the kernel.
 * `draft` is the number of groups of the kernel's draft.
 */
export interface Dispatch { kind: 'dispatch'; kernel: number; groups: number[]; bindings: Binding[]; grid?: Binding; draft?: number[] }
export interface Copy { kind: 'copy'; from: number; fromOffset: number; to: number; toOffset: number; bytes: number }
/**
 * `odd` lists the steps of odd iterations, if they differ. With `condition` the loop repeats until that word is 0 after
 * an iteration; iterations after that change nothing.
 */
export interface Repeat { kind: 'repeat'; count: number; steps: Step[]; odd: Step[]; condition?: Binding }
export type Step = Dispatch | Copy | Repeat;

/**
 * An entry point of a plan. Inputs, scalars, outputs, the parameters that it reads (`reads`) and
 * those that it sets (`sets`) are indices in `slots`.
 */
export interface Entry {
  name: string;
  inputs: number[];
  scalars: number[];
  outputs: number[];
  reads: number[];
  sets: number[];
  uniformBytes: number;
  steps: Step[];
}

/** The steps of lists, those in repeats as well. */
export function allSteps(lists: { steps: Step[] }[]): Step[] {
  return lists.flatMap(({ steps }) => steps).flatMap((step) => {
    if (step.kind !== 'repeat') return step;
    return [step, ...allSteps(step.odd === step.steps ? [step] : [step, { steps: step.odd }])];
  });
}

/** The status word for failed checks, and the meaning of its codes. */
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
  /** The buffers; `given` is a `GPUBuffer` of the caller to use in its place, which outlives the program. */
  buffers: { kind: BufferKind; bytes: number; given?: unknown }[];
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
