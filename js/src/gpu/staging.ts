// Reading from the device without waiting: copies go into a ring of buffers made once, and
// arrive when the device is done.

import { fromDevice, roundUp } from '../values/dtype.js';
import { asError, RlxError } from '../values/errors.js';
import { byName } from '../values/named.js';
import { mapRead, usage } from './flags.js';
import type { Status } from '../plan/plan.js';
import { statusError } from '../session/plan-session.js';
import type { Reading } from '../session/session.js';
import { statusBytes } from '../plan/validate.js';

/** Where a value lies on the device. */
export interface Source {
  name: string;
  dtype: string;
  shape: readonly number[];
  buffer: GPUBuffer;
  offset: number;
  bytes: number;
}

/** A read that was asked for. */
export interface ReadRequest {
  sources: Source[];
  promise: Promise<Reading>;
  resolve(reading: Reading): void;
  reject(error: RlxError): void;
}

export function readRequest(sources: Source[]): ReadRequest {
  const request = { sources } as ReadRequest;
  request.promise = new Promise((resolve, reject) => Object.assign(request, { resolve, reject }));
  request.promise.catch(() => {}); // who asked may not listen
  return request;
}

interface Place { buffer: GPUBuffer; bytes: number; busy: boolean }

/** A copy in a submission: `arrive` is to be called when that is submitted. */
export interface Capture { arrive(step: number, submission: number): void }

export interface StagingOptions {
  gpu: GPUDevice;
  label: string;
  /** How many buffers, and of how many bytes. One is made larger when a read needs it. */
  places: number;
  bytes: number;
  /** No buffer is made larger than this, a multiple of 256: what is larger is read in parts. */
  most: number;
  status?: { buffer: GPUBuffer; status: Status } | undefined;
  /** Called when a buffer is free again. */
  onFree(): void;
  /** The error that ended the session, if one did: it says more than a failed map. */
  fatal(): Promise<RlxError | undefined>;
}

export class StagingRing {
  readonly #options: StagingOptions;
  readonly #places: Place[];
  /** Where the status words lie, if there are any: each read begins with them. */
  readonly #status: Source[];
  /** Requests that found every buffer in use, oldest first. */
  readonly postponed: ReadRequest[] = [];
  /** Requests whose copies have not arrived. */
  readonly arriving = new Set<ReadRequest>();
  /** Errors in copies made up to this submission are reported and cleared. */
  #cleared = -1;
  /** The number of the last submission. */
  #latest = -1;

  constructor(options: StagingOptions) {
    this.#options = options;
    const { status } = options;
    this.#status = status ? [{ name: '', dtype: 'u32', shape: [], buffer: status.buffer, offset: status.status.offset, bytes: statusBytes }] : [];
    this.#places = Array.from({ length: options.places }, () => this.#place(statusBytes + options.bytes));
  }

  #place(bytes: number): Place {
    const { gpu, label, most } = this.#options, size = Math.min(roundUp(bytes, 256), most);
    return { buffer: gpu.createBuffer({ label, size, usage: usage.mapRead | usage.copyDst }), bytes: size, busy: false };
  }

  /**
   * Records the copies of a request, or of the oldest postponed one. Where all buffers are in use
   * the request is postponed and undefined returned. One that must go `now`, and one in several
   * parts, which are of one moment, have buffers of their own instead.
   */
  capture(encoder: GPUCommandEncoder, now: boolean, request?: ReadRequest): Capture | undefined {
    if (request) this.postponed.push(request);
    const next = this.postponed[0];
    if (!next) return undefined;
    const { most } = this.#options, sources = [...this.#status, ...next.sources];
    const total = sources.reduce((sum, { bytes }) => sum + bytes, 0);
    const places = now || total > most
      ? Array.from({ length: Math.ceil(total / most) }, () => this.#place(total))
      : this.#free(total);
    if (!places) return undefined;
    this.postponed.shift();
    this.arriving.add(next);
    eachPiece(sources, most, ({ buffer, offset }, from, i, at, bytes) => {
      encoder.copyBufferToBuffer(buffer, offset + from, places[i]!.buffer, at, bytes);
    });
    return { arrive: (step, submission) => void this.#arrive(places, next, total, step, submission) };
  }

  /** The smallest free buffer that is large enough; failing that, the largest is made anew. */
  #free(bytes: number): Place[] | undefined {
    const idle = this.#places.filter(({ busy }) => !busy).sort((a, b) => a.bytes - b.bytes);
    const fit = idle.find((place) => place.bytes >= bytes) ?? idle.at(-1);
    if (!fit) return undefined;
    if (fit.bytes < bytes) {
      fit.buffer.destroy();
      Object.assign(fit, this.#place(bytes));
    }
    fit.busy = true;
    return [fit];
  }

  async #arrive(places: Place[], request: ReadRequest, total: number, step: number, submission: number): Promise<void> {
    this.#latest = submission;
    const { most, fatal, onFree } = this.#options, sources = [...this.#status, ...request.sources];
    try {
      const mapped = await Promise.all(places.map(async ({ buffer }, i) => {
        const bytes = Math.min(most, total - i * most);
        await buffer.mapAsync(mapRead, 0, bytes);
        return buffer.getMappedRange(0, bytes);
      }));
      const values = new Map(sources.map((source) => [source, new Uint8Array(source.bytes)]));
      eachPiece(sources, most, (source, from, i, at, bytes) => {
        values.get(source)!.set(new Uint8Array(mapped[i]!, at, bytes), from);
      });
      for (const status of this.#status) this.#checkStatus(new Uint32Array(values.get(status)!.buffer), submission);
      request.resolve({ step, values: byName(request.sources, (source) => fromDevice(source.dtype, source.shape, values.get(source)!.buffer)) });
    } catch (reason) {
      request.reject(reason instanceof RlxError ? reason : await fatal() ?? asError(reason));
    }
    for (const place of places) {
      if (place.buffer.mapState === 'mapped') place.buffer.unmap();
      if (!this.#places.includes(place)) place.buffer.destroy();
      place.busy = false;
    }
    this.arriving.delete(request);
    onFree();
  }

  /** Throws what the status word says, and clears it for the runs to come. */
  #checkStatus(words: Uint32Array, submission: number): void {
    const { buffer, status } = this.#options.status!, error = statusError(status, words);
    if (!error) return;
    if (submission > this.#cleared) {
      this.#cleared = this.#latest;
      this.#options.gpu.queue.writeBuffer(buffer, status.offset, new Uint32Array(statusBytes / 4));
    }
    throw error;
  }

  /** Ends all that has not arrived. */
  close(error: RlxError): void {
    for (const request of [...this.postponed.splice(0), ...this.arriving]) request.reject(error);
    for (const { buffer } of this.#places) buffer.destroy();
  }
}

/**
 * Cuts values, which lie one after the other, into what goes through staging
 * buffers of `most` bytes: calls `piece` with a value, where in it, which buffer, where in that, and how much.
 */
function eachPiece(sources: Source[], most: number, piece: (source: Source, from: number, i: number, at: number, bytes: number) => void): void {
  let at = 0;
  for (const source of sources) {
    for (let from = 0, bytes = 0; from < source.bytes; from += bytes, at += bytes) {
      bytes = Math.min(source.bytes - from, most - at % most);
      piece(source, from, Math.floor(at / most), at % most, bytes);
    }
  }
}
