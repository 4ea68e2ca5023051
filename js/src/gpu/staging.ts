// Asynchronous reads from the device: copies go to a ring of staging buffers, which are mapped when the
// device is done.

import { statusBytes } from '../plan/validate.js';
import { statusError } from '../program/base.js';
import type { Reading } from '../program/program.js';
import { fromDevice, maxOf, roundUp } from '../values/dtype.js';
import { asError, RlxError } from '../values/errors.js';
import { byName } from '../values/named.js';
import type { Executable } from './executable.js';
import * as flags from './flags.js';

/** The location of a value on the device. */
export interface Source {
  name: string;
  dtype: string;
  shape: readonly number[];
  buffer: GPUBuffer;
  offset: number;
  bytes: number;
}

/** A pending read. */
export interface ReadRequest {
  sources: Source[];
  promise: Promise<Reading>;
  resolve(reading: Reading): void;
  reject(error: RlxError): void;
}

export function readRequest(sources: Source[]): ReadRequest {
  const request = { sources } as ReadRequest;
  request.promise = new Promise((resolve, reject) => Object.assign(request, { resolve, reject }));
  request.promise.catch(() => {}); // the caller may not handle it
  return request;
}

interface StagingBuffer { buffer: GPUBuffer; bytes: number; busy: boolean }

/** A copy in a submission: to be called when that is submitted, after a step. */
export type Capture = (step: number) => void;

/** The minimal and maximal size of buffers: larger values are read in parts. */
const minBytes = 1 << 20, maxBytes = 64 << 20;

/** The buffers for small reads where no number was given: as many as there are runs in flight. */
const maxPlaces = 32;

/** The callbacks to the program. */
export interface StagingHost {
  /** Called when a buffer is free again. */
  onFree(): void;
  /** The error that ended the program, if any: it has more detail than a failed map. */
  fatal(): Promise<RlxError | undefined>;
}

export class StagingRing {
  readonly #executable: Executable;
  readonly #host: StagingHost;
  /** The maximal size of a buffer, a multiple of 256. */
  readonly #max: number;
  readonly #buffers: StagingBuffer[];
  readonly #maxPlaces: number;
  /** The location of the status words, if any: each read begins with them. */
  readonly #status: Source[];
  /** Requests that found every buffer in use, oldest first. */
  readonly postponed: ReadRequest[] = [];
  /** Requests whose copies have not arrived. */
  readonly arriving = new Set<ReadRequest>();
  /** Errors in submissions of copies up to this one are reported and cleared. */
  #cleared = 0;
  /** The number of the last one. */
  #latest = 0;

  /**
   * Makes a number of buffers, with room for the outputs of a run; if it is not given 4, and more when small reads need them.
   * One is made larger when a read needs it.
   */
  constructor(executable: Executable, places: number | undefined, host: StagingHost) {
    this.#executable = executable;
    this.#host = host;
    this.#maxPlaces = places ?? maxPlaces;
    const { status, entries, slots } = executable.plan;
    this.#max = Math.min(maxBytes, executable.gpu.limits.maxBufferSize) & -256;
    this.#status = status ? [{ name: '', dtype: 'u32', shape: [], buffer: executable.buffers[status.buffer]!, offset: status.offset, bytes: statusBytes }] : [];
    const bytes = maxOf(entries, ({ outputs }) => outputs.reduce((sum, i) => sum + slots[i]!.bytes, 0), 1024);
    this.#buffers = Array.from({ length: Math.max(3, places ?? 4) }, () => this.#makeBuffer(statusBytes + Math.min(minBytes, bytes)));
  }

  #makeBuffer(bytes: number): StagingBuffer {
    const size = Math.min(roundUp(bytes, 256), this.#max);
    return { buffer: this.#executable.gpu.createBuffer({ label: `${this.#executable.tag} staging`, size, usage: flags.mapRead | flags.copyDst }), bytes: size, busy: false };
  }

  /**
   * Records the copies of a request, or of the oldest postponed one. If all buffers are in use the request is
   * postponed and undefined returned. A request that must go `now`, and one in several parts, which must be
   * consistent, get buffers of their own.
   */
  capture(encoder: GPUCommandEncoder, now: boolean, request?: ReadRequest): Capture | undefined {
    if (request) this.postponed.push(request);
    const next = this.postponed[0];
    if (!next) return undefined;
    const max = this.#max, sources = [...this.#status, ...next.sources];
    const total = sources.reduce((sum, { bytes }) => sum + bytes, 0);
    const places = now || total > max
      ? Array.from({ length: Math.ceil(total / max) }, () => this.#makeBuffer(total))
      : this.#free(total);
    if (!places) return undefined;
    this.postponed.shift();
    this.arriving.add(next);
    eachChunk(sources, max, ({ buffer, offset }, from, i, at, bytes) => {
      encoder.copyBufferToBuffer(buffer, offset + from, places[i]!.buffer, at, bytes);
    });
    return (step) => void this.#arrive(places, next, sources, total, step);
  }

  /** The smallest free buffer that is large enough; failing that, the largest is replaced. */
  #free(bytes: number): StagingBuffer[] | undefined {
    const idle = this.#buffers.filter(({ busy }) => !busy).sort((a, b) => a.bytes - b.bytes);
    if (!idle[0] && bytes <= minBytes && this.#buffers.length < this.#maxPlaces) this.#buffers.push(idle[0] = this.#makeBuffer(bytes));
    const fit = idle.find((place) => place.bytes >= bytes) ?? idle.at(-1);
    if (!fit) return undefined;
    if (fit.bytes < bytes) {
      fit.buffer.destroy();
      Object.assign(fit, this.#makeBuffer(bytes));
    }
    fit.busy = true;
    return [fit];
  }

  async #arrive(places: StagingBuffer[], request: ReadRequest, sources: Source[], total: number, step: number): Promise<void> {
    const max = this.#max, submission = ++this.#latest;
    try {
      const mapped = await Promise.all(places.map(async ({ buffer }, i) => {
        const bytes = Math.min(max, total - i * max);
        await buffer.mapAsync(flags.mapRead, 0, bytes);
        return buffer.getMappedRange(0, bytes);
      }));
      const values = new Map(sources.map((source) => [source, new Uint8Array(source.bytes)]));
      eachChunk(sources, max, (source, from, i, at, bytes) => {
        values.get(source)!.set(new Uint8Array(mapped[i]!, at, bytes), from);
      });
      for (const status of this.#status) this.#checkStatus(status, new Uint32Array(values.get(status)!.buffer), submission);
      request.resolve({ step, values: byName(request.sources, (source) => fromDevice(source.dtype, source.shape, values.get(source)!.buffer)) });
    } catch (reason) {
      request.reject(reason instanceof RlxError ? reason : await this.#host.fatal() ?? asError(reason));
    }
    for (const place of places) {
      if (place.buffer.mapState === 'mapped') place.buffer.unmap();
      if (!this.#buffers.includes(place)) place.buffer.destroy();
      place.busy = false;
    }
    this.arriving.delete(request);
    this.#host.onFree();
  }

  /** Throws the error encoded in the status word, and clears it for later runs. */
  #checkStatus({ buffer, offset }: Source, words: Uint32Array, submission: number): void {
    const error = statusError(this.#executable.plan.status!, words);
    if (!error) return;
    if (submission > this.#cleared) {
      this.#cleared = this.#latest;
      this.#executable.gpu.queue.writeBuffer(buffer, offset, new Uint32Array(statusBytes / 4));
    }
    throw error;
  }

  /** Rejects all pending reads. */
  close(error: RlxError): void {
    for (const request of [...this.postponed.splice(0), ...this.arriving]) request.reject(error);
    for (const { buffer } of this.#buffers) buffer.destroy();
  }
}

/**
 * Splits consecutive values into pieces for staging buffers of `max` bytes: calls `piece` with a value, the offset
 * in it, the buffer's index, the offset in that, and the length.
 */
function eachChunk(sources: Source[], max: number, piece: (source: Source, from: number, i: number, at: number, bytes: number) => void): void {
  let at = 0;
  for (const source of sources) {
    for (let from = 0, bytes = 0; from < source.bytes; from += bytes, at += bytes) {
      bytes = Math.min(source.bytes - from, max - at % max);
      piece(source, from, Math.floor(at / max), at % max, bytes);
    }
  }
}
