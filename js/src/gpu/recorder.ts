import type { DispatchOp, Op, Place } from './program.js';
import { rowBytes } from '../plan/validate.js';

/**
 * How many rounds of a loop of unknown length are recorded before a look at whether it goes on: more and
 * more, as one that took long may take longer. A round too many costs its dispatches, which find no
 * workgroups; a look costs a way to the device and back.
 */
const firstRounds = 8, mostRounds = 64;

const passDescriptor = { label: 'rlx' };

/**
 * Writes an entry's list of operations into a command encoder: one compute pass, unless a copy
 * breaks it in two. What is set already is not set again.
 */
export class Recorder {
  #pass: GPUComputePassEncoder | undefined;
  #pipeline: GPUComputePipeline | undefined;
  #storage: GPUBindGroup | undefined;
  #uniforms: GPUBindGroup | undefined;
  #row: number | undefined;
  readonly #offsets = new Uint32Array(8);
  /** What is recorded into. */
  encoder!: GPUCommandEncoder;
  /** The word that was asked for last. */
  going: unknown;

  /**
   * Records a list; `at` are the byte offsets of the uniforms by their bindings: of the run's scalars, then of
   * the counters' rows, outermost first. Where a loop of unknown length may be done it gives the place of the word that
   * says so: then all before is to be submitted, there is to be another encoder, and `going` is to be the word.
   */
  * record(ops: readonly Op[], ...at: number[]): Generator<Place, void, void> {
    for (const op of ops) {
      if (op.kind === 'dispatch') {
        this.#dispatch(this.#pass ?? this.#begin(), op, at);
      } else if (op.kind === 'copy') {
        this.end();
        this.encoder.copyBufferToBuffer(op.from, op.fromOffset, op.to, op.toOffset, op.bytes);
      } else {
        const { going, ops: rounds } = op;
        let count = going ? firstRounds : op.count;
        do {
          for (let i = 0; i < count; i++) yield* this.record(rounds[i % 2]!, ...at, going ? 0 : i * rowBytes);
          count = Math.min(2 * count, mostRounds);
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
    return this.#pass = this.encoder.beginComputePass(passDescriptor);
  }

  #dispatch(pass: GPUComputePassEncoder, op: DispatchOp, at: readonly number[]): void {
    if (op.pipeline !== this.#pipeline) pass.setPipeline(this.#pipeline = op.pipeline);
    if (op.storage !== this.#storage) pass.setBindGroup(0, this.#storage = op.storage);
    const { uniforms, dynamic } = op;
    if (uniforms && (dynamic.at(-1)! > 0 || uniforms !== this.#uniforms || at[0] !== this.#row)) {
      dynamic.forEach((binding, i) => this.#offsets[i] = at[binding]!);
      pass.setBindGroup(1, this.#uniforms = uniforms, this.#offsets, 0, dynamic.length);
      this.#row = at[0];
    }
    if (op.grid) pass.dispatchWorkgroupsIndirect(...op.grid);
    else pass.dispatchWorkgroups(op.groups[0]!, op.groups[1], op.groups[2]);
  }
}
