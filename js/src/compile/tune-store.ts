// Tuning results in IndexedDB: the fastest schedule of each group key, by device.

import { RlxError } from '../values/errors.js';
import type { Group } from './compiler.js';
import { done } from './request.js';

/** The result for a group. */
export interface TuneResult {
  /** The fastest schedule, as text. */
  schedule: string;
  /** The milliseconds that its work takes untuned, and by that schedule. */
  untuned: number;
  tuned: number;
}

const databaseName = 'rlx', table = 'tuned';

/** The results of one device. Without a database they last as long as the page. */
export class TuneStore {
  readonly #device: string;
  readonly #database: IDBDatabase | undefined;
  readonly #onProblem: (problem: RlxError) => void;

  private constructor(device: string, database: IDBDatabase | undefined, onProblem: (problem: RlxError) => void) {
    this.#device = device;
    this.#database = database;
    this.#onProblem = onProblem;
  }

  /** Opens the store of a device. If that fails, calls `onProblem` and returns an empty store that keeps nothing. */
  static async open(device: string, onProblem: (problem: RlxError) => void): Promise<TuneStore> {
    try {
      const request = globalThis.indexedDB.open(databaseName, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(table);
      return new TuneStore(device, await done(request), onProblem);
    } catch (cause) {
      onProblem(new RlxError('store', `results of tuning are not kept: there is no IndexedDB here: ${(cause as Error).message}`, { cause }));
      return new TuneStore(device, undefined, onProblem);
    }
  }

  /** The stored result of a group, if it is one of the group's schedules. */
  async get(group: Group): Promise<TuneResult | undefined> {
    const found: Partial<TuneResult> | undefined = await this.#ask(group, 'readonly', (objects) => objects.get(this.#keyOf(group)));
    if (found === undefined || group.schedules.includes(found?.schedule!)) return found as TuneResult | undefined;
    this.#report(group, new Error('it is no schedule of the group'));
    return undefined;
  }

  /** Stores a result. */
  async put(group: Group, found: TuneResult): Promise<void> {
    await this.#ask(group, 'readwrite', (objects) => objects.put(found, this.#keyOf(group)));
  }

  #keyOf({ key }: Group): IDBValidKey { return [this.#device, key]; }

  async #ask<T>(group: Group, mode: IDBTransactionMode, make: (objects: IDBObjectStore) => IDBRequest<T>): Promise<T | undefined> {
    try {
      return this.#database && await done(make(this.#database.transaction(table, mode).objectStore(table)));
    } catch (cause) { // a database of another form, or no room
      this.#report(group, cause as Error);
      return undefined;
    }
  }

  #report({ name, key }: Group, cause: Error): void {
    this.#onProblem(new RlxError('store', `the result of tuning for ${name} (${key}): ${cause.message}`, { op: name, cause }));
  }

  close(): void { this.#database?.close(); }
}
