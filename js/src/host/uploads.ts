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

/** A mapped buffer, or one that the device reads. `used` are the bytes that the next submission copies. */
interface Block { buffer: GPUBuffer; used: number; view?: Uint8Array | undefined }

/** Buffers that are mapped again after each submission that copies from them. */
export class Uploads {
  readonly #make: (size: number) => GPUBuffer;
  readonly #blocks: Block[] = [];
  #total = 0;

  /** `make` returns a buffer that is mapped at creation. */
  constructor(make: (size: number) => GPUBuffer) { this.#make = make; }

  /**
   * Copies the inputs of a run that have `min` bytes or more, each a multiple of four, to one buffer, and sets from where a submission copies them.
   * False if the device reads all buffers.
   */
  put(uploads: readonly Upload[], min: number): boolean {
    let total = 0;
    for (const { bytes } of uploads) if (bytes && bytes.length >= min) total += bytes.length;
    const block = this.#with(total) ?? this.#another(total);
    if (!block) return false;
    const { buffer } = block, view = block.view ??= new Uint8Array(buffer.getMappedRange());
    for (const input of uploads) {
      const { bytes } = input;
      if (!bytes || bytes.length < min) continue;
      input.from = buffer;
      input.at = block.used;
      view.set(bytes, block.used);
      block.used += bytes.length;
    }
    return true;
  }

  /** A mapped buffer with room, if possible one that the next submission copies from. */
  #with(bytes: number): Block | undefined {
    let found: Block | undefined;
    for (const block of this.#blocks) {
      if (!found?.used && block.buffer.mapState === 'mapped' && block.buffer.size - block.used >= bytes) found = block.used ? block : found ?? block;
    }
    return found;
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

  /** Unmaps what the next submission copies from. */
  unmap(): void {
    for (const { buffer, used } of this.#blocks) if (used) buffer.unmap();
  }

  /** Maps it again, after the submission. */
  map(): void {
    for (const block of this.#blocks) {
      if (!block.used) continue;
      block.used = 0;
      block.view = undefined;
      // Mapping waits until the device has read the buffer, which may be destroyed by then, or the device lost.
      block.buffer.mapAsync(mapWrite).catch(() => {});
    }
  }
}
