// A plan made into GPU objects, once: buffers, layouts, pipelines, bind groups.

import { RlxError } from '../values/errors.js';
import { computeStage, usage } from './flags.js';
import type { Access, Binding, Dispatch, Entry, Kernel, Plan, Step } from '../plan/plan.js';
import { rowBytes } from '../plan/validate.js';

/** A dispatch with its objects. */
export interface DispatchOp {
  kind: 'dispatch';
  pipeline: GPUComputePipeline;
  storage: GPUBindGroup;
  /** The group of uniforms, absent where the kernel reads none. */
  uniforms?: GPUBindGroup;
  scalars: boolean;
  counters: number;
  groups: readonly number[];
  /** Where the device has the grid, in place of `groups`. */
  grid?: Place;
}
/** A place in a buffer. */
export type Place = [buffer: GPUBuffer, offset: number];
export interface CopyOp { kind: 'copy'; from: GPUBuffer; fromOffset: number; to: GPUBuffer; toOffset: number; bytes: number }
/** With `going` there are as many rounds as it takes for the word there to be 0 after one. */
export interface RepeatOp { kind: 'repeat'; count: number; ops: [even: Op[], odd: Op[]]; going?: Place | undefined }
export type Op = DispatchOp | CopyOp | RepeatOp;

/** An entry with its objects. */
export interface ProgramEntry {
  entry: Entry;
  ops: Op[];
  /** Rows of scalars, on the device and as the host fills them. */
  uniforms?: GPUBuffer;
  rows: DataView<ArrayBuffer>;
  stride: number;
  /** Whether a run has passed WebGPU's checks. */
  proven: boolean;
}

/** Makes calls, and gives what they give. Rejects with the first error that WebGPU does not throw, if there is no other. */
export async function watched<T>(gpu: GPUDevice, what: string, calls: () => T): Promise<Awaited<T>> {
  const filters = ['validation', 'out-of-memory', 'internal'] as const;
  for (const filter of filters) gpu.pushErrorScope(filter);
  let popped: Promise<(GPUError | null)[]>;
  let value: T;
  try {
    value = calls();
  } finally {
    popped = Promise.all(filters.map(() => gpu.popErrorScope().catch(() => null)));
  }
  const done = await value; // its own error says more than the scope's
  const errors = await popped, i = errors.findIndex(Boolean);
  // Scopes pop from the innermost, so the second of three is out-of-memory.
  if (i >= 0) throw new RlxError(i === 1 ? 'memory' : 'gpu', `${what}: ${errors[i]!.message}`, { op: what, cause: errors[i] });
  return done;
}

/**
 * Builds a plan's objects, for runs of up to `maxSteps` steps. With `drafts` those stand in for kernels
 * that are built meanwhile. Rejects with an {@link RlxError} of kind `shader`, `memory` or `gpu`.
 */
export async function buildProgram(gpu: GPUDevice, plan: Plan, maxSteps: number, drafts: boolean): Promise<Program> {
  const program = new Program(gpu, plan, maxSteps, drafts);
  const watch = <T>(calls: () => T) => watched(gpu, plan.name, calls);
  try {
    await watch(() => program.makeBuffers());
    await watch(() => program.makePipelines());
    await watch(() => program.makeEntries());
    watch(() => program.replaceDrafts()).catch(() => {}); // where that fails they stay
    return program;
  } catch (reason) {
    program.destroy();
    throw reason;
  }
}

type Window = [binding: number, buffer: GPUBuffer, at: Omit<Binding, 'buffer'>];

/** The objects of a plan, made by {@link buildProgram}. */
export class Program {
  readonly buffers: GPUBuffer[] = [];
  readonly entries = new Map<string, ProgramEntry>();
  /** Whether runs have to wait for what the device says. */
  looks = false;
  /** What only the labels of these objects begin with: an error that has it is about one of them. */
  readonly tag = `rlx-${Math.random().toString(36).slice(2)}`;
  readonly #owned: GPUBuffer[] = [];
  readonly #cache = new Map<string, unknown>();
  readonly #ids = new Map<object, number>();
  #counters: GPUBuffer | undefined;

  readonly #gpu: GPUDevice;
  readonly #plan: Plan;
  /** The most steps of one run: the rows of scalars there are. */
  readonly maxSteps: number;
  /** Whether drafts stand in for kernels. */
  #drafts: boolean;
  #pipelines: GPUComputePipeline[] = [];

  constructor(gpu: GPUDevice, plan: Plan, maxSteps: number, drafts: boolean) {
    this.#gpu = gpu;
    this.#plan = plan;
    this.maxSteps = maxSteps;
    this.#drafts = drafts;
  }

  /** Makes each key's object once. */
  #once<T extends object>(key: string, make: () => T): T {
    let made = this.#cache.get(key) as T | undefined;
    if (!made) {
      this.#cache.set(key, made = make());
      this.#ids.set(made, this.#ids.size);
    }
    return made;
  }

  #label(what: string): string { return `${this.tag} ${this.#plan.name} ${what}`; }

  #buffer(what: string, size: number, flags: number): GPUBuffer {
    const made = this.#gpu.createBuffer({ label: this.#label(what), size, usage: flags });
    this.#owned.push(made);
    return made;
  }

  makeBuffers(): void {
    const flags = usage.storage | usage.indirect | usage.copySrc | usage.copyDst;
    this.#plan.buffers.forEach(({ kind, bytes }, i) => this.buffers.push(this.#buffer(`${kind} ${i}`, bytes, flags)));
    for (const { buffer, offset, data } of this.#plan.constants) this.#gpu.queue.writeBuffer(this.buffers[buffer]!, offset, data);
    const most = this.#plan.entries.reduce((n, { steps }) => Math.max(n, mostRepeats(steps)), 0);
    if (most === 0 || !this.#plan.kernels.some(({ counters }) => counters > 0)) return;
    const rows = new Uint32Array(most * rowBytes / 4);
    for (let i = 0; i < most; i++) rows[i * rowBytes / 4] = i;
    this.#counters = this.#buffer('counters', rows.byteLength, usage.uniform | usage.copyDst);
    this.#gpu.queue.writeBuffer(this.#counters, 0, rows);
  }

  /** Makes the pipelines of all kernels, those of some from their drafts. */
  async makePipelines(): Promise<void> {
    this.#pipelines = await Promise.all(this.#plan.kernels.map((kernel) => this.#pipeline(kernel, this.#drafts && kernel.draft || kernel.source)));
  }

  async #pipeline(kernel: Kernel, code: string): Promise<GPUComputePipeline> {
    const label = this.#label(kernel.name), module = this.#gpu.createShaderModule({ label, code });
    const layout = this.#gpu.createPipelineLayout({ bindGroupLayouts: this.#layouts(kernel) });
    try {
      return await this.#gpu.createComputePipelineAsync({ label, layout, compute: { module, entryPoint: 'main' } });
    } catch (cause) {
      const { messages } = await module.getCompilationInfo();
      const lines = messages.filter(({ type }) => type === 'error').map(({ lineNum, linePos, message }) => `${lineNum}:${linePos}: ${message}`);
      throw new RlxError('shader', `kernel ${kernel.name}: ${lines.join('\n') || (cause as Error).message}`, { op: kernel.name, cause });
    }
  }

  /** Makes the pipelines that drafts stand in for. Runs that begin after that run those. */
  async replaceDrafts(): Promise<void> {
    if (!this.#drafts) return;
    const drafts = this.#pipelines;
    this.#pipelines = await Promise.all(this.#plan.kernels.map((kernel, i) => kernel.draft ? this.#pipeline(kernel, kernel.source) : drafts[i]!));
    this.#drafts = false;
    for (const made of this.entries.values()) made.ops = this.#ops(made, made.entry.steps);
  }

  #layouts(kernel: Kernel): GPUBindGroupLayout[] {
    const layouts = [this.#storageLayout(kernel.storage)];
    if (readsUniforms(kernel)) layouts.push(this.#uniformLayout(kernel));
    return layouts;
  }

  #storageLayout(storage: Access[]): GPUBindGroupLayout {
    return this.#once(`storage ${storage}`, () => this.#gpu.createBindGroupLayout({
      entries: storage.map((access, binding) => ({
        binding, visibility: computeStage, buffer: { type: access === 'read' ? 'read-only-storage' : 'storage' },
      })),
    }));
  }

  #uniformLayout(kernel: Kernel): GPUBindGroupLayout {
    const bindings = uniformBindings(kernel);
    return this.#once(`uniforms ${bindings}`, () => this.#gpu.createBindGroupLayout({
      entries: bindings.map((binding) => ({ binding, visibility: computeStage, buffer: { type: 'uniform', hasDynamicOffset: true } })),
    }));
  }

  makeEntries(): void {
    for (const entry of this.#plan.entries) {
      const stride = Math.ceil(entry.uniformBytes / rowBytes) * rowBytes, rows = stride * this.maxSteps;
      const made: ProgramEntry = { entry, ops: [], rows: new DataView(new ArrayBuffer(rows)), stride, proven: false };
      if (rows > 0) made.uniforms = this.#buffer(`${entry.name} scalars`, rows, usage.uniform | usage.copyDst);
      made.ops = this.#ops(made, entry.steps);
      this.entries.set(entry.name, made);
    }
  }

  #ops(entry: ProgramEntry, steps: Step[]): Op[] {
    return steps.map((step): Op => {
      switch (step.kind) {
        case 'dispatch':
          return this.#dispatch(entry, step);
        case 'copy':
          return { ...step, from: this.buffers[step.from]!, to: this.buffers[step.to]! };
        case 'repeat':
          this.looks ||= !!step.going;
          return { ...step, going: this.#place(step.going), ops: [this.#ops(entry, step.steps), this.#ops(entry, step.odd)] };
      }
    });
  }

  #dispatch(entry: ProgramEntry, { kernel: index, bindings, groups, grid, draft }: Dispatch): DispatchOp {
    const kernel = this.#plan.kernels[index]!, pipeline = this.#pipelines[index]!;
    const windows = bindings.map((b, binding): Window => [binding, this.buffers[b.buffer]!, b]);
    const storage = this.#group(kernel.name, this.#storageLayout(kernel.storage), windows);
    const op: DispatchOp = { kind: 'dispatch', pipeline, storage, scalars: kernel.scalarBytes > 0, counters: kernel.counters, groups: this.#drafts && draft || groups };
    if (grid) op.grid = this.#place(grid)!;
    if (readsUniforms(kernel)) {
      op.uniforms = this.#group(`${entry.entry.name} uniforms`, this.#uniformLayout(kernel), uniformBindings(kernel).map((binding) => [
        binding, binding === 0 ? entry.uniforms! : this.#counters!, { offset: 0, bytes: binding === 0 ? entry.stride : rowBytes },
      ]));
    }
    return op;
  }

  #place(at?: Binding): Place | undefined { return at && [this.buffers[at.buffer]!, at.offset]; }

  #group(what: string, layout: GPUBindGroupLayout, windows: Window[]): GPUBindGroup {
    const key = windows.map(([binding, buffer, { offset, bytes }]) => `${binding} ${this.#idOf(buffer)} ${offset} ${bytes}`);
    return this.#once(`${this.#ids.get(layout)}: ${key}`, () => this.#gpu.createBindGroup({
      label: this.#label(what), layout,
      entries: windows.map(([binding, buffer, { offset, bytes }]) => ({ binding, resource: { buffer, offset, size: bytes } })),
    }));
  }

  #idOf(buffer: GPUBuffer): number { return this.#owned.indexOf(buffer); }

  destroy(): void {
    for (const buffer of this.#owned) buffer.destroy();
  }
}

const readsUniforms = ({ scalarBytes, counters }: Kernel): boolean => scalarBytes > 0 || counters > 0;

/** Binding 0 is the row of scalars, 1 + d the counter of the repeat at depth d. */
function uniformBindings({ scalarBytes, counters }: Kernel): number[] {
  const bindings = Array.from({ length: counters }, (_, d) => 1 + d);
  return scalarBytes > 0 ? [0, ...bindings] : bindings;
}

function mostRepeats(steps: Step[]): number {
  return steps.reduce((n, step) => step.kind === 'repeat' ? Math.max(n, step.count, mostRepeats(step.steps), mostRepeats(step.odd)) : n, 0);
}
