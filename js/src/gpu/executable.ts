// The GPU objects of a plan, made once: buffers, layouts, pipelines, bind groups.

import { allSteps, type Binding, type Dispatch, type Kernel, type Plan, type Repeat } from '../plan/plan.js';
import { rowBytes } from '../plan/validate.js';
import { type Runnable, runnable } from '../program/base.js';
import { maxOf } from '../values/dtype.js';
import { RlxError } from '../values/errors.js';
import * as flags from './flags.js';

/** The objects of a dispatch, but for its pipeline. */
export interface DispatchObjects {
  storage: GPUBindGroup;
  /** The bind group of uniforms, absent if the kernel reads none, and its bindings. */
  uniforms?: GPUBindGroup;
  dynamic: readonly number[];
  /** The location of an indirect grid. */
  grid?: [buffer: GPUBuffer, offset: number];
}
/** The objects of each dispatch of an entry. */
export type Dispatches = Map<Dispatch, DispatchObjects>;

/** An entry with its objects. */
export interface ExecutableEntry extends Runnable {
  dispatches: Dispatches;
  /** The rows of scalars of runs that share the next submission. Between submissions the first is that on the device. */
  pending: Uint8Array<ArrayBuffer>;
  /** The rows of scalars on the device. */
  uniforms?: GPUBuffer;
  /** Whether a run has passed WebGPU's checks, and none waits for the device. */
  validated: boolean;
}

/** Makes calls and returns their results. Rejects with the first error of an error scope, unless a call throws. */
export async function inErrorScopes<T>(gpu: GPUDevice, what: string, calls: () => Promise<T>): Promise<T> {
  const filters = ['validation', 'out-of-memory', 'internal'] as const;
  for (const filter of filters) gpu.pushErrorScope(filter);
  const value = calls(), popped = Promise.all(filters.map(() => gpu.popErrorScope().catch(() => null)));
  const done = await value; // its own error has more detail than the scope's
  const errors = await popped, i = errors.findIndex(Boolean);
  // Scopes pop from the innermost, so the second of three is out-of-memory.
  if (i >= 0) throw new RlxError(i === 1 ? 'memory' : 'gpu', `${what}: ${errors[i]!.message}`, { op: what, cause: errors[i] });
  return done;
}

/**
 * Builds a plan's objects, for runs of up to `maxSteps` steps. With `drafts` those replace their kernels,
 * until {@link Executable.replaceDrafts}. Rejects with an {@link RlxError} of kind `shader`, `memory` or `gpu`.
 */
export async function buildExecutable(gpu: GPUDevice, plan: Plan, maxSteps: number, drafts: boolean): Promise<Executable> {
  const executable = new Executable(gpu, plan, maxSteps, drafts);
  try {
    await inErrorScopes(gpu, plan.name, () => executable.make());
    return executable;
  } catch (reason) {
    executable.destroy();
    throw reason;
  }
}

type Window = [binding: number, buffer: GPUBuffer, at: Omit<Binding, 'buffer'>];

/** The objects of a plan, made by {@link buildExecutable}. */
export class Executable {
  buffers: readonly GPUBuffer[] = [];
  readonly entries = new Map<string, ExecutableEntry>();
  /** The unique prefix of these objects' labels, which attributes errors to them. */
  readonly tag = `rlx-${Math.random()}`;
  readonly #owned: GPUBuffer[] = [];
  readonly #cache = new Map<string, unknown>();
  #counters: GPUBuffer | undefined;

  readonly gpu: GPUDevice;
  readonly plan: Plan;
  /** The maximal number of steps of a run: that of the rows of scalars. */
  readonly maxSteps: number;
  /** The pipelines of the kernels, in their order. */
  pipelines: readonly GPUComputePipeline[] = [];
  /** Whether drafts replace their kernels. */
  drafts: boolean;
  /** Whether the final pipelines are still being compiled. */
  #replaceable: boolean;

  constructor(gpu: GPUDevice, plan: Plan, maxSteps: number, drafts: boolean) {
    this.gpu = gpu;
    this.plan = plan;
    this.maxSteps = maxSteps;
    this.#replaceable = this.drafts = drafts && plan.kernels.some(({ draft }) => draft);
  }

  /** Makes the object of each key once. Keys include labels, so no two objects share one. */
  #once<T extends object>(key: string, make: (label: string) => T): T {
    let made = this.#cache.get(key) as T | undefined;
    if (!made) this.#cache.set(key, made = make(this.#label(key)));
    return made;
  }

  #label(what: string): string { return `${this.tag} ${this.plan.name} ${what}`; }

  /** Makes a buffer that is destroyed with the others. */
  buffer(what: string, size: number, usage: GPUBufferUsageFlags, mappedAtCreation = false): GPUBuffer {
    const made = this.gpu.createBuffer({ label: this.#label(what), size, usage, mappedAtCreation });
    this.#owned.push(made);
    return made;
  }

  #makeBuffers(): void {
    const usage = flags.storage | flags.indirect | flags.copySrc | flags.copyDst;
    this.buffers = this.plan.buffers.map(({ kind, bytes, given }, i) => given as GPUBuffer | undefined ?? this.buffer(`${kind} ${i}`, bytes, usage));
    for (const { buffer, offset, data } of this.plan.constants) this.gpu.queue.writeBuffer(this.buffers[buffer]!, offset, data);
    if (!this.plan.kernels.some(({ counters }) => counters)) return;
    const max = maxOf(allSteps(this.plan.entries), (step) => (step as Repeat).count ?? 1, 1);
    const words = rowBytes / 4, rows = Uint32Array.from({ length: max * words }, (_, i) => i % words ? 0 : i / words);
    this.#counters = this.buffer('counters', rows.byteLength, flags.uniform | flags.copyDst);
    this.gpu.queue.writeBuffer(this.#counters, 0, rows);
  }

  /** Makes all objects. */
  async make(): Promise<void> {
    this.#makeBuffers();
    this.#makeEntries();
    this.pipelines = await Promise.all(this.plan.kernels.map((kernel) => this.#pipeline(kernel, this.drafts && kernel.draft || kernel.source)));
  }

  async #pipeline(kernel: Kernel, code: string): Promise<GPUComputePipeline> {
    const label = this.#label(kernel.name), module = this.gpu.createShaderModule({ label, code });
    const layout = this.gpu.createPipelineLayout({ bindGroupLayouts: this.#layouts(kernel) });
    try {
      return await this.gpu.createComputePipelineAsync({ label, layout, compute: { module, entryPoint: 'main' } });
    } catch (cause) {
      const { messages } = await module.getCompilationInfo();
      const lines = messages.filter(({ type }) => type === 'error').map(({ lineNum, linePos, message }) => `${lineNum}:${linePos}: ${message}`);
      throw new RlxError('shader', `kernel ${kernel.name}: ${lines.join('\n') || (cause as Error).message}`, { op: kernel.name, cause });
    }
  }

  /**
   * Compiles the kernels that drafts replace, after the first run of an entry with drafts, which compiling
   * would delay. Later runs use them.
   */
  replaceDrafts({ dispatches }: ExecutableEntry): void {
    if (!this.#replaceable || ![...dispatches.keys()].some(({ draft }) => draft)) return;
    this.#replaceable = false;
    inErrorScopes(this.gpu, this.plan.name, async () => {
      this.pipelines = await Promise.all(this.plan.kernels.map((kernel, i) => kernel.draft ? this.#pipeline(kernel, kernel.source) : this.pipelines[i]!));
      this.drafts = false;
    }).catch(() => {}); // after a failure the drafts stay
  }

  /** The bind group layouts of a kernel: storage arrays, and uniforms if it reads any. */
  #layouts(kernel: Kernel): GPUBindGroupLayout[] {
    const uniforms = uniformBindings(kernel), visibility = flags.computeStage;
    const layouts = [this.#layout(kernel.storage.map((access, binding) => ({ binding, visibility, buffer: { type: access === 'read' ? 'read-only-storage' : 'storage' } })))];
    if (uniforms.length) layouts.push(this.#layout(uniforms.map((binding) => ({ binding, visibility, buffer: { type: 'uniform', hasDynamicOffset: true } }))));
    return layouts;
  }

  #layout(entries: (GPUBindGroupLayoutEntry & { buffer: GPUBufferBindingLayout })[]): GPUBindGroupLayout {
    const key = `layout ${entries.map(({ binding, buffer }) => [binding, buffer.type])}`;
    return this.#once(key, (label) => this.gpu.createBindGroupLayout({ label, entries }));
  }

  #makeEntries(): void {
    for (const entry of this.plan.entries) {
      const base = runnable(this.plan, entry, this.maxSteps);
      const made: ExecutableEntry = { ...base, pending: base.rows.slice(), dispatches: new Map(), validated: false };
      if (made.stride) made.uniforms = this.buffer(`${entry.name} scalars`, made.rows.byteLength, flags.uniform | flags.copyDst);
      for (const step of allSteps([entry])) if (step.kind === 'dispatch') made.dispatches.set(step, this.#dispatch(made, step));
      this.entries.set(entry.name, made);
    }
  }

  #dispatch(entry: ExecutableEntry, { kernel: index, bindings, grid }: Dispatch): DispatchObjects {
    const kernel = this.plan.kernels[index]!;
    const windows = bindings.map((b, binding): Window => [binding, this.buffers[b.buffer]!, b]);
    const [storageLayout, uniformLayout] = this.#layouts(kernel), storage = this.#group(kernel.name, storageLayout!, windows);
    const op: DispatchObjects = { storage, dynamic: uniformBindings(kernel) };
    if (grid) op.grid = [this.buffers[grid.buffer]!, grid.offset];
    if (uniformLayout) {
      op.uniforms = this.#group(`${entry.entry.name} uniforms`, uniformLayout, op.dynamic.map((binding) => binding
        ? [binding, this.#counters!, { offset: 0, bytes: rowBytes }]
        : [binding, entry.uniforms!, { offset: 0, bytes: entry.stride }]));
    }
    return op;
  }

  #group(what: string, layout: GPUBindGroupLayout, windows: Window[]): GPUBindGroup {
    const key = windows.map(([binding, buffer, { offset, bytes }]) => [binding, buffer.label, offset, bytes]);
    return this.#once(layout.label + key, () => this.gpu.createBindGroup({
      label: this.#label(what), layout,
      entries: windows.map(([binding, buffer, { offset, bytes }]) => ({ binding, resource: { buffer, offset, size: bytes } })),
    }));
  }

  destroy(): void {
    for (const buffer of this.#owned) buffer.destroy();
  }
}

/** Binding 0 is the row of scalars, 1 + d the counter of the repeat at depth d. */
function uniformBindings({ scalarBytes, counters }: Kernel): number[] {
  return [...Array(1 + counters).keys()].slice(scalarBytes ? 0 : 1);
}
