import type { Dispatches, DispatchObjects, Program } from './program.js';
import type { Binding, Dispatch, Step } from '../plan/plan.js';
import { rowBytes } from '../plan/validate.js';

/**
 * How many rounds of a loop of unknown length are recorded before a look at whether it goes on: more and
 * more, as one that took long may take longer. A round too many costs its dispatches, which find no
 * workgroups; a look costs a way to the device and back.
 */
const firstRounds = 8, maxRounds = 64;

/**
 * Encodes an entry's steps: one compute pass, unless copies split it. It skips redundant state changes.
 */
export class Recorder {
  #pass: GPUComputePassEncoder | undefined;
  #pipeline: GPUComputePipeline | undefined;
  #storage: GPUBindGroup | undefined;
  #uniforms: GPUBindGroup | undefined;
  #row: number | undefined;
  readonly #offsets = new Uint32Array(8);
  readonly #program: Program;
  /** The current encoder. */
  encoder!: GPUCommandEncoder;
  /** The word of the last condition. */
  going: unknown;

  constructor(program: Program) { this.#program = program; }

  /**
   * Records steps; `at` holds the byte offsets of uniforms by binding: of the run's scalars, then of the counters'
   * rows, outermost first. At the check of a loop of unknown trip count it yields the location of the condition: the
   * caller submits everything recorded, sets another encoder, and sets `going` to the word.
   */
  * record(steps: readonly Step[], dispatches: Dispatches, ...at: number[]): Generator<Binding, void, void> {
    for (const step of steps) {
      if (step.kind === 'dispatch') {
        this.#dispatch(this.#pass ?? this.#begin(), step, dispatches.get(step)!, at);
      } else if (step.kind === 'copy') {
        this.end();
        this.encoder.copyBufferToBuffer(this.#program.buffers[step.from]!, step.fromOffset, this.#program.buffers[step.to]!, step.toOffset, step.bytes);
      } else {
        const { going } = step;
        let count = going ? firstRounds : step.count;
        do {
          for (let i = 0; i < count; i++) yield* this.record(i % 2 ? step.odd : step.steps, dispatches, ...at, going ? 0 : i * rowBytes);
          count = Math.min(2 * count, maxRounds);
          if (going) yield going;
        } while (going && this.going);
      }
    }
  }

  /** Ends the pass, if there is one. */
  end(): void {
    this.#pass?.end();
    this.#pass = undefined;
  }

  #begin(): GPUComputePassEncoder {
    this.#pipeline = this.#storage = this.#uniforms = undefined;
    return this.#pass = this.encoder.beginComputePass();
  }

  #dispatch(pass: GPUComputePassEncoder, { kernel, groups, draft }: Dispatch, { storage, uniforms, dynamic, grid }: DispatchObjects, at: readonly number[]): void {
    const { pipelines, drafts } = this.#program, pipeline = pipelines[kernel]!, [x, y, z] = drafts && draft || groups;
    if (pipeline !== this.#pipeline) pass.setPipeline(this.#pipeline = pipeline);
    if (storage !== this.#storage) pass.setBindGroup(0, this.#storage = storage);
    if (uniforms && (dynamic.at(-1)! > 0 || uniforms !== this.#uniforms || at[0] !== this.#row)) {
      dynamic.forEach((binding, i) => this.#offsets[i] = at[binding]!);
      pass.setBindGroup(1, this.#uniforms = uniforms, this.#offsets, 0, dynamic.length);
      this.#row = at[0];
    }
    if (grid) pass.dispatchWorkgroupsIndirect(...grid);
    else pass.dispatchWorkgroups(x!, y, z);
  }
}
