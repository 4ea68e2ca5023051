import type { DispatchOp, Op } from './program.js';
import { rowBytes } from '../plan/validate.js';

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
  #uniformRow = -1;
  /** The offsets of the counters' rows, outermost first. */
  readonly #counters: number[] = [];
  readonly #offsets = new Uint32Array(8);

  /** Records a list; `row` is the byte offset of the run's scalars. */
  record(encoder: GPUCommandEncoder, ops: readonly Op[], row: number): void {
    for (const op of ops) {
      if (op.kind === 'dispatch') {
        this.#dispatch(this.#pass ?? this.#begin(encoder), op, row);
      } else if (op.kind === 'copy') {
        this.end();
        encoder.copyBufferToBuffer(op.from, op.fromOffset, op.to, op.toOffset, op.bytes);
      } else {
        for (let i = 0; i < op.count; i++) {
          this.#counters.push(i * rowBytes);
          this.record(encoder, op.ops[i % 2]!, row);
          this.#counters.pop();
        }
      }
    }
  }

  /** Ends the pass, if there is one. */
  end(): void {
    this.#pass?.end();
    this.#pass = undefined;
  }

  #begin(encoder: GPUCommandEncoder): GPUComputePassEncoder {
    this.#pipeline = this.#storage = this.#uniforms = undefined;
    return this.#pass = encoder.beginComputePass(passDescriptor);
  }

  #dispatch(pass: GPUComputePassEncoder, op: DispatchOp, row: number): void {
    if (op.pipeline !== this.#pipeline) pass.setPipeline(this.#pipeline = op.pipeline);
    if (op.storage !== this.#storage) pass.setBindGroup(0, this.#storage = op.storage);
    if (op.uniforms && (op.counters > 0 || op.uniforms !== this.#uniforms || row !== this.#uniformRow)) {
      let n = 0;
      if (op.scalars) this.#offsets[n++] = row;
      for (let d = 0; d < op.counters; d++) this.#offsets[n++] = this.#counters[d]!;
      pass.setBindGroup(1, this.#uniforms = op.uniforms, this.#offsets, 0, n);
      this.#uniformRow = row;
    }
    if (op.grid) pass.dispatchWorkgroupsIndirect(...op.grid);
    else pass.dispatchWorkgroups(op.groups[0]!, op.groups[1], op.groups[2]);
  }
}
