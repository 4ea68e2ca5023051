// A plan made into GPU objects, once: buffers, layouts, pipelines, bind groups.

import { RlxError } from '../values/errors.js';
import { computeStage, usage } from './flags.js';
import { allSteps, type Binding, type Dispatch, type Kernel, type Plan, type Step } from '../plan/plan.js';
import { greatest } from '../values/dtype.js';
import { rowBytes } from '../plan/validate.js';
import { type Runnable, withRows } from '../session/plan-session.js';

/** A dispatch with its objects. */
export interface DispatchOp {
  kind: 'dispatch';
  pipeline: GPUComputePipeline;
  storage: GPUBindGroup;
  /** The group of uniforms, absent where the kernel reads none, and its bindings. */
  uniforms?: GPUBindGroup;
  dynamic: readonly number[];
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
export interface ProgramEntry extends Runnable {
  ops: Op[];
  /** The rows of scalars on the device. */
  uniforms?: GPUBuffer;
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

  /** Makes each key's object once. Labels are among what keys are made of: no two objects here share one. */
  #once<T extends object>(key: string, make: (label: string) => T): T {
    let made = this.#cache.get(key) as T | undefined;
    if (!made) this.#cache.set(key, made = make(this.#label(key)));
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
    const most = greatest(this.#plan.entries.flatMap(({ steps }) => allSteps(steps)), 0, (step) => step.kind === 'repeat' ? step.count : 0);
    if (most === 0 || !this.#plan.kernels.some(({ counters }) => counters > 0)) return;
    const words = rowBytes / 4, rows = Uint32Array.from({ length: most * words }, (_, i) => i % words ? 0 : i / words);
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

  /** The layouts of a kernel's bind groups: that of its storage arrays, and of its uniforms where it reads any. */
  #layouts(kernel: Kernel): GPUBindGroupLayout[] {
    const uniforms = uniformBindings(kernel);
    const layouts = [this.#layout('storage', [...kernel.storage.keys()], (i) => ({ type: kernel.storage[i] === 'read' ? 'read-only-storage' : 'storage' }))];
    if (uniforms[0] !== undefined) layouts.push(this.#layout('uniforms', uniforms, () => ({ type: 'uniform', hasDynamicOffset: true })));
    return layouts;
  }

  #layout(what: string, bindings: number[], buffer: (binding: number) => GPUBufferBindingLayout): GPUBindGroupLayout {
    const entries = bindings.map((binding) => ({ binding, visibility: computeStage, buffer: buffer(binding) }));
    const key = `${what} ${entries.map((entry) => [entry.binding, entry.buffer.type])}`;
    return this.#once(key, (label) => this.#gpu.createBindGroupLayout({ label, entries }));
  }

  makeEntries(): void {
    for (const entry of this.#plan.entries) {
      const made: ProgramEntry = { ...withRows(entry, this.maxSteps), ops: [], proven: false };
      if (made.stride > 0) made.uniforms = this.#buffer(`${entry.name} scalars`, made.rows.byteLength, usage.uniform | usage.copyDst);
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
    const [storageLayout, uniformLayout] = this.#layouts(kernel), storage = this.#group(kernel.name, storageLayout!, windows);
    const op: DispatchOp = { kind: 'dispatch', pipeline, storage, dynamic: uniformBindings(kernel), groups: this.#drafts && draft || groups };
    if (grid) op.grid = this.#place(grid)!;
    if (uniformLayout) {
      op.uniforms = this.#group(`${entry.entry.name} uniforms`, uniformLayout, op.dynamic.map((binding) => [
        binding, binding === 0 ? entry.uniforms! : this.#counters!, { offset: 0, bytes: binding === 0 ? entry.stride : rowBytes },
      ]));
    }
    return op;
  }

  #place(at?: Binding): Place | undefined { return at && [this.buffers[at.buffer]!, at.offset]; }

  #group(what: string, layout: GPUBindGroupLayout, windows: Window[]): GPUBindGroup {
    const key = windows.map(([binding, buffer, { offset, bytes }]) => `${binding} ${buffer.label} ${offset} ${bytes}`);
    return this.#once(layout.label + key, () => this.#gpu.createBindGroup({
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
  const bindings = Array.from({ length: counters }, (_, d) => 1 + d);
  return scalarBytes > 0 ? [0, ...bindings] : bindings;
}
