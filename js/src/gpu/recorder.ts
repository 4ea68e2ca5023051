import type { Binding, Dispatch, Step } from '../plan/plan.js';
import { rowBytes } from '../plan/validate.js';
import type { Dispatches, DispatchObjects, Executable } from './executable.js';

/**
 * The iterations of a loop without a trip count that are recorded between two reads of its condition: the number
 * doubles from the minimum to the maximum. An iteration too many costs empty dispatches, a read a round trip.
 */
const minIterations = 8, maxIterations = 64;

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
  readonly #executable: Executable;
  /** The current encoder. */
  encoder!: GPUCommandEncoder;
  /** The value of the last condition. */
  condition: unknown;

  constructor(executable: Executable) { this.#executable = executable; }

  /**
   * Records steps; `at` holds the byte offsets of uniforms by binding: of the run's scalars, then of the counters'
   * rows, outermost first. At each check of a loop without a trip count it yields the location of the condition: the
   * caller submits the commands recorded so far, sets another encoder, and sets `condition` to the value.
   */
  * record(steps: readonly Step[], dispatches: Dispatches, ...at: number[]): Generator<Binding, void, void> {
    for (const step of steps) {
      if (step.kind === 'dispatch') {
        this.#dispatch(this.#pass ?? this.#begin(), step, dispatches.get(step)!, at);
      } else if (step.kind === 'copy') {
        this.end();
        this.encoder.copyBufferToBuffer(this.#executable.buffers[step.from]!, step.fromOffset, this.#executable.buffers[step.to]!, step.toOffset, step.bytes);
      } else {
        const { condition } = step;
        let count = condition ? minIterations : step.count;
        do {
          for (let i = 0; i < count; i++) yield* this.record(i % 2 ? step.odd : step.steps, dispatches, ...at, condition ? 0 : i * rowBytes);
          count = Math.min(2 * count, maxIterations);
          if (condition) yield condition;
        } while (condition && this.condition);
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
    const { pipelines, drafts } = this.#executable, pipeline = pipelines[kernel]!;
    if (pipeline !== this.#pipeline) pass.setPipeline(this.#pipeline = pipeline);
    if (storage !== this.#storage) pass.setBindGroup(0, this.#storage = storage);
    if (uniforms && (dynamic.at(-1)! > 0 || uniforms !== this.#uniforms || at[0] !== this.#row)) {
      dynamic.forEach((binding, i) => this.#offsets[i] = at[binding]!);
      pass.setBindGroup(1, this.#uniforms = uniforms, this.#offsets, 0, dynamic.length);
      this.#row = at[0];
    }
    if (grid) pass.dispatchWorkgroupsIndirect(...grid);
    else pass.dispatchWorkgroups(...(drafts && draft || groups) as [number, number, number]);
  }
}
