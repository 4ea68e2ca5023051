// Inputs of a GPU program that a submission copies from mapped buffers, whose code is loaded with the first. In Chromium,
// `queue.writeBuffer` makes new shared memory for each call: a step with 12.8 MB of inputs took 17.7 ms with it and 5.3 with
// buffers that are mapped again (SwiftShader, two cores). It also acts before the whole submission, so that runs which share
// one cannot use it.

import type { Upload } from '../program/base.js';

/** GPUMapMode.WRITE, which is no global in Node. */
const mapWrite = 2;

/** The bytes of all buffers together: what does not fit is written by the queue. */
const maxBytes = 128 << 20;

/** A buffer for the inputs of several runs has room for up to `runsPerBlock`, in `blockBytes`: all of it is copied when it is unmapped. */
const blockBytes = 4 << 20, runsPerBlock = 8;

interface Block { buffer: GPUBuffer; used: number; view?: Uint8Array | undefined }

/** Buffers that are mapped again after each submission that copies from them. */
export class Uploads {
  readonly #make: (size: number) => GPUBuffer;
  readonly #blocks: Block[] = [];
  /** The blocks that the next submission copies from. */
  readonly #filled = new Set<Block>();
  #total = 0;

  /** `make` returns a buffer that is mapped at creation. */
  constructor(make: (size: number) => GPUBuffer) { this.#make = make; }

  /**
   * Copies the inputs of a run that have `min` bytes or more, each a multiple of four, to one buffer, and sets their places.
   * False if the device reads all buffers.
   */
  put(uploads: readonly Upload[], min: number): boolean {
    const inputs = uploads.filter(({ bytes }) => bytes && bytes.length >= min), total = inputs.reduce((sum, { bytes }) => sum + bytes!.length, 0);
    const block = [...this.#filled, ...this.#blocks].find(({ buffer, used }) => buffer.mapState === 'mapped' && buffer.size - used >= total) ?? this.#another(total);
    if (!block) return false;
    this.#filled.add(block);
    const { buffer } = block, view = block.view ??= new Uint8Array(buffer.getMappedRange());
    for (const input of inputs) {
      input.place = { buffer, offset: block.used };
      view.set(input.bytes!, block.used);
      block.used += input.bytes!.length;
    }
    return true;
  }

  /** A new buffer, if there is room for it and memory to map. */
  #another(bytes: number): Block | undefined {
    const size = bytes * Math.max(1, Math.min(runsPerBlock, Math.floor(blockBytes / bytes)));
    if (this.#total + size > maxBytes) return undefined;
    try {
      const block = { buffer: this.#make(size), used: 0 };
      this.#blocks.push(block);
      this.#total += size;
      return block;
    } catch {
      return undefined;
    }
  }

  /** Calls a function that submits all copies from the buffers. */
  submit(call: () => void): void {
    const filled = [...this.#filled];
    this.#filled.clear();
    for (const { buffer } of filled) buffer.unmap();
    call();
    for (const block of filled) {
      block.used = 0;
      block.view = undefined;
      // Mapping waits until the device has read the buffer, which may be destroyed by then, or the device lost.
      block.buffer.mapAsync(mapWrite).catch(() => {});
    }
  }
}
