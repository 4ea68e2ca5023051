import type { Dispatch, Step } from '../plan/plan.js';
import { rowBytes } from '../plan/validate.js';
import type { Dispatches, DispatchObjects, Executable } from './executable.js';

/**
 * Encodes an entry's steps: one compute pass, unless copies split it. It skips redundant state changes.
 */
export class Recorder {
  #pass: GPUComputePassEncoder | undefined;
  #pipeline: GPUComputePipeline | undefined;
  #storage: GPUBindGroup | undefined;
  #uniforms: GPUBindGroup | undefined;
  #row: number | undefined;
  readonly #executable: Executable;
  /** The byte offsets of uniforms by binding: of the run's scalars, then of the counters' rows, outermost first. */
  readonly at: number[] = [];
  /** The current encoder. */
  encoder!: GPUCommandEncoder;

  constructor(executable: Executable) { this.#executable = executable; }

  /** Records steps, inside `depth` - 1 loops, all of which have trip counts. */
  record(steps: readonly Step[], dispatches: Dispatches, depth = 1): void {
    for (const step of steps) {
      if (step.kind === 'dispatch') {
        this.#dispatch(this.#pass ??= this.encoder.beginComputePass(), step, dispatches.get(step)!);
      } else if (step.kind === 'copy') {
        this.end();
        this.encoder.copyBufferToBuffer(this.#executable.buffers[step.from]!, step.fromOffset, this.#executable.buffers[step.to]!, step.toOffset, step.bytes);
      } else {
        for (let i = 0; i < step.count; i++) {
          this.at[depth] = i * rowBytes;
          this.record(i % 2 ? step.odd : step.steps, dispatches, depth + 1);
        }
      }
    }
  }

  /** Ends the pass, if there is one. */
  end(): void {
    this.#pass?.end();
    this.#pass = this.#pipeline = this.#storage = this.#uniforms = undefined;
  }

  #dispatch(pass: GPUComputePassEncoder, { kernel, groups, draft }: Dispatch, { storage, uniforms, dynamic, grid }: DispatchObjects): void {
    const { pipelines, drafts } = this.#executable, pipeline = pipelines[kernel]!, [row] = this.at, [x, y, z] = drafts && draft || groups;
    if (pipeline !== this.#pipeline) pass.setPipeline(this.#pipeline = pipeline);
    if (storage !== this.#storage) pass.setBindGroup(0, this.#storage = storage);
    if (uniforms && (dynamic.at(-1)! > 0 || uniforms !== this.#uniforms || row !== this.#row)) {
      pass.setBindGroup(1, this.#uniforms = uniforms, dynamic.map((i) => this.at[i]!)); // a Uint32Array takes Node 0.3 µs more
      this.#row = row;
    }
    if (grid) pass.dispatchWorkgroupsIndirect(...grid);
    else pass.dispatchWorkgroups(x!, y === 1 ? undefined : y, z === 1 ? undefined : z); // Node takes 60 ns for each number
  }
}
