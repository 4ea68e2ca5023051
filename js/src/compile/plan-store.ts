// Where compiled plans are kept between visits: a store of the caller's, or IndexedDB.

import { done } from './request.js';
import { within } from './within.js';

type Awaitable<T> = T | Promise<T>;

/**
 * Bytes by key, for the option `cache` of {@link init}: a `Map`, for example, or files in a
 * folder. A missing or damaged value is made again; an error of a method is ignored, as if the
 * store were empty.
 */
export interface PlanStore {
  get(key: string): Awaitable<Uint8Array | undefined>;
  set(key: string, value: Uint8Array): Awaitable<unknown>;
  /** Removes all values. */
  clear(): Awaitable<unknown>;
}

const databaseName = 'rlx-plans', values = 'values', uses = 'uses';

/** The bytes that IndexedDB keeps at most: above, the least recently used are removed. A page's plans take some hundred KB. */
export const maxBytes = 64 << 20;

/** For how long IndexedDB may be opened, in milliseconds. A browser whose data is damaged may never answer. */
const openTime = 2000;

/** The size of a value and the time of its last use, stored separately so that eviction reads no plan. */
interface Use { bytes: number; used: number }

/** Values in IndexedDB. Each method is one transaction: several tabs may use it at once. */
export class IndexedStore implements PlanStore {
  #database: Promise<IDBDatabase> | undefined;
  /** Whether it was not open in time: then nothing waits for it until it is. */
  #late = false;

  #open(): Promise<IDBDatabase> {
    const opened = this.#database ??= (async () => {
      const request = globalThis.indexedDB.open(databaseName, 1);
      request.onupgradeneeded = () => { for (const name of [values, uses]) request.result.createObjectStore(name); };
      const database = await done(request);
      this.#late = false;
      // Another tab deletes the database, or has a newer version: the next call opens it again.
      database.onversionchange = database.onclose = () => {
        database.close();
        this.#database = undefined;
      };
      return database;
    })();
    opened.catch(() => { this.#database = undefined; });
    const late = new Error('IndexedDB does not answer');
    return within(this.#late ? 0 : openTime, late, opened).catch((reason) => {
      this.#late = reason === late;
      throw reason;
    });
  }

  async #begin(): Promise<{ transaction: IDBTransaction; values: IDBObjectStore; uses: IDBObjectStore }> {
    const transaction = (await this.#open()).transaction([values, uses], 'readwrite');
    return { transaction, values: transaction.objectStore(values), uses: transaction.objectStore(uses) };
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const { values, uses } = await this.#begin(), found: unknown = await done(values.get(key));
    if (!(found instanceof Uint8Array)) return undefined;
    uses.put({ bytes: found.length, used: Date.now() } satisfies Use, key);
    return found;
  }

  /**
   * Writes a value after evicting old ones beyond the bound; if the browser has less room, after
   * evicting all others.
   */
  async set(key: string, value: Uint8Array): Promise<void> {
    if (value.length > maxBytes) return;
    await this.#put(key, value, maxBytes).catch((reason: Error) => {
      if (reason?.name !== 'QuotaExceededError') throw reason;
      return this.#put(key, value, 0);
    });
  }

  async #put(key: string, value: Uint8Array, bound: number): Promise<void> {
    const { transaction, values, uses } = await this.#begin(), ended = finished(transaction);
    const [keys, known] = await Promise.all([done(uses.getAllKeys()), done<Use[]>(uses.getAll())]);
    const old = keys.map((one, i) => ({ one, ...known[i]! })).filter(({ one }) => one !== key).sort((a, b) => a.used - b.used);
    let total = value.length + old.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { one, bytes } of old) {
      if (total <= bound) break;
      values.delete(one);
      uses.delete(one);
      total -= bytes;
    }
    values.put(value, key);
    uses.put({ bytes: value.length, used: Date.now() } satisfies Use, key);
    return ended;
  }

  async clear(): Promise<void> {
    const { transaction, values, uses } = await this.#begin(), ended = finished(transaction);
    values.clear();
    uses.clear();
    return ended;
  }
}

/** Resolves when a transaction is complete: a lack of room shows only then. */
const finished = (transaction: IDBTransaction): Promise<void> => new Promise((resolve, reject) => {
  transaction.oncomplete = () => resolve();
  transaction.onabort = transaction.onerror = () => reject(transaction.error);
});
