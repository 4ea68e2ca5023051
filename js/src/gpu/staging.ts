// Reading from the device without waiting: copies go into a ring of buffers made once, and
// arrive when the device is done.

import { fromDevice, type TensorData } from '../values/dtype.js';
import { asError, RlxError } from '../values/errors.js';
import { mapRead, usage } from './flags.js';
import type { Status } from '../plan/plan.js';
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
  /** How many buffers, and of how many bytes. One is made larger when a read needs it. */
  places: number;
  bytes: number;
  status?: { buffer: GPUBuffer; status: Status } | undefined;
  /** Called when a buffer is free again. */
  onFree(): void;
  /** The error that ended the session, if one did: it says more than a failed map. */
  fatal(): Promise<RlxError | undefined>;
}

export class StagingRing {
  readonly #options: StagingOptions;
  readonly #places: Place[];
  /** Requests that found every buffer in use, oldest first. */
  readonly postponed: ReadRequest[] = [];
  /** Copies that have not arrived. */
  arriving = 0;
  /** Errors in copies made up to this submission are reported and cleared. */
  #cleared = -1;
  /** The number of the last submission. */
  #latest = -1;

  constructor(options: StagingOptions) {
    this.#options = options;
    this.#places = Array.from({ length: options.places }, () => this.#place(options.bytes));
  }

  #place(bytes: number): Place {
    const size = Math.ceil((statusBytes + bytes) / 256) * 256;
    return { buffer: this.#options.gpu.createBuffer({ label: 'rlx staging', size, usage: usage.mapRead | usage.copyDst }), bytes: size, busy: false };
  }

  /**
   * Records the copies of a request, or of the oldest postponed one. Where all buffers are in use
   * the request is postponed and undefined returned.
   */
  capture(encoder: GPUCommandEncoder, request?: ReadRequest): Capture | undefined {
    if (request) this.postponed.push(request);
    const next = this.postponed[0], place = next && this.#free(next);
    if (!next || !place) return undefined;
    this.postponed.shift();
    place.busy = true;
    this.arriving++;
    let at = 0;
    const { status } = this.#options;
    if (status) {
      encoder.copyBufferToBuffer(status.buffer, status.status.offset, place.buffer, 0, statusBytes);
      at = statusBytes;
    }
    for (const { buffer, offset, bytes } of next.sources) {
      if (bytes > 0) encoder.copyBufferToBuffer(buffer, offset, place.buffer, at, bytes);
      at += bytes;
    }
    return { arrive: (step, submission) => void this.#arrive(place, next, at, step, submission) };
  }

  /** The smallest free buffer that is large enough; failing that, the largest is made anew. */
  #free({ sources }: ReadRequest): Place | undefined {
    const bytes = sources.reduce((sum, source) => sum + source.bytes, 0);
    const idle = this.#places.filter(({ busy }) => !busy).sort((a, b) => a.bytes - b.bytes);
    const fit = idle.find((place) => place.bytes >= bytes + statusBytes) ?? idle.at(-1);
    if (fit && fit.bytes < bytes + statusBytes) {
      fit.buffer.destroy();
      Object.assign(fit, this.#place(bytes));
    }
    return fit;
  }

  async #arrive(place: Place, request: ReadRequest, bytes: number, step: number, submission: number): Promise<void> {
    this.#latest = submission;
    try {
      await place.buffer.mapAsync(mapRead, 0, bytes);
      const mapped = place.buffer.getMappedRange(0, bytes);
      const values = this.#decode(request, mapped, submission);
      place.buffer.unmap();
      request.resolve({ step, values });
    } catch (reason) {
      if (place.buffer.mapState === 'mapped') place.buffer.unmap();
      request.reject(reason instanceof RlxError ? reason : await this.#options.fatal() ?? asError(reason));
    }
    place.busy = false;
    this.arriving--;
    this.#options.onFree();
  }

  #decode({ sources }: ReadRequest, mapped: ArrayBuffer, submission: number): Record<string, TensorData> {
    let at = 0;
    if (this.#options.status) {
      this.#checkStatus(new Uint32Array(mapped, 0, statusBytes / 4), submission);
      at = statusBytes;
    }
    const values: Record<string, TensorData> = {};
    for (const { name, dtype, shape, bytes } of sources) values[name] = fromDevice(dtype, shape, mapped.slice(at, at += bytes));
    return values;
  }

  /** Throws what the status word says, and clears it for the runs to come. */
  #checkStatus(words: Uint32Array, submission: number): void {
    const [code, ...detail] = words;
    if (!code) return;
    const { buffer, status } = this.#options.status!;
    if (submission > this.#cleared) {
      this.#cleared = this.#latest;
      this.#options.gpu.queue.writeBuffer(buffer, status.offset, new Uint32Array(statusBytes / 4));
    }
    const { node, message } = status.codes.find((c) => c.code === code) ?? { node: 'unknown', message: `code ${code}` };
    throw new RlxError('index', `${node}: ${message} (${detail}); parameters and states are as they were before it`, { node, op: node });
  }

  /** Ends all that has not arrived. */
  close(error: RlxError): void {
    for (const request of this.postponed.splice(0)) request.reject(error);
    for (const { buffer } of this.#places) buffer.destroy();
  }
}
