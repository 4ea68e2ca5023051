// What tuning found, kept in IndexedDB: for each device and each key of a group its fastest schedule.

import { RlxError } from '../values/errors.js';
import type { Group } from './compiler.js';

/** What was found for a group. */
export interface Found {
  /** The fastest schedule, in words. */
  schedule: string;
  /** The milliseconds that its work takes untuned, and by that schedule. */
  untuned: number;
  tuned: number;
}

const databaseName = 'rlx', table = 'tuned';

/** What was found on one device. Where there is no database to keep it, it is found for this time. */
export class TuneStore {
  readonly #device: string;
  readonly #database: IDBDatabase | undefined;
  readonly #onProblem: (problem: RlxError) => void;

  private constructor(device: string, database: IDBDatabase | undefined, onProblem: (problem: RlxError) => void) {
    this.#device = device;
    this.#database = database;
    this.#onProblem = onProblem;
  }

  /** Opens the store of a device. Where there is none to be had, `onProblem` hears why, and an empty one keeps nothing. */
  static async open(device: string, onProblem: (problem: RlxError) => void): Promise<TuneStore> {
    try {
      const request = globalThis.indexedDB.open(databaseName, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(table);
      return new TuneStore(device, await done(request), onProblem);
    } catch (cause) {
      onProblem(new RlxError('store', `what tuning finds is not kept: there is no IndexedDB here: ${(cause as Error).message}`, { cause }));
      return new TuneStore(device, undefined, onProblem);
    }
  }

  /** What is kept of a group, unless it is none of the group's schedules. */
  async get(group: Group): Promise<Found | undefined> {
    const found: Partial<Found> | undefined = await this.#ask(group, 'readonly', (objects) => objects.get(this.#keyOf(group)));
    if (found === undefined || group.schedules.includes(found?.schedule!)) return found as Found | undefined;
    this.#tell(group, new Error('it is no schedule of the group'));
    return undefined;
  }

  /** Keeps what was found. */
  async put(group: Group, found: Found): Promise<void> {
    await this.#ask(group, 'readwrite', (objects) => objects.put(found, this.#keyOf(group)));
  }

  #keyOf({ key }: Group): IDBValidKey { return [this.#device, key]; }

  async #ask<T>(group: Group, mode: IDBTransactionMode, make: (objects: IDBObjectStore) => IDBRequest<T>): Promise<T | undefined> {
    try {
      return this.#database && await done(make(this.#database.transaction(table, mode).objectStore(table)));
    } catch (cause) { // a database of another form, or no room
      this.#tell(group, cause as Error);
      return undefined;
    }
  }

  #tell({ name, key }: Group, cause: Error): void {
    this.#onProblem(new RlxError('store', `what tuning found for ${name} (${key}): ${cause.message}`, { op: name, cause }));
  }

  close(): void { this.#database?.close(); }
}

/** The result of a request. */
const done = <T>(request: IDBRequest<T>): Promise<T> => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
