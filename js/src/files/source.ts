// The source of the bytes of a model's file: memory, a Blob (of a file that the user chose, or of
// the origin's private file system), or a URL whose server supports ranges.

import { RlxError, shown } from '../values/errors.js';

/** A file that is read piece by piece. */
export interface Source {
  /** What the file is called in messages. */
  readonly name: string;
  readonly size: number;
  /** The bytes from one position to another, in memory of their own. */
  bytes(begin: number, end: number): Promise<Uint8Array<ArrayBuffer>>;
  close(): void;
}

/** What a file can be given as: bytes, a Blob, or the address of the file. */
export type FileSource = Blob | string | URL | ArrayBuffer | Uint8Array;

/** Opens a file. Throws an {@link RlxError} of kind `missing` if it cannot be loaded, `unsupported` if the server sends no ranges. */
export async function openSource(given: FileSource): Promise<Source> {
  if (typeof given === 'string' || given instanceof URL) return openAddress(addressOf(given));
  if (given instanceof Blob) return ofBlob(given);
  if (given instanceof Uint8Array || given instanceof ArrayBuffer) return ofBytes(given instanceof Uint8Array ? given : new Uint8Array(given));
  throw new RlxError('attr', `a file is ${shown(given)}: it must be a Blob, bytes or an address`);
}

/** An address in full. A relative one is relative to the page. */
export function addressOf(given: string | URL): string {
  try {
    return new URL(given, globalThis.location?.href).href;
  } catch (cause) {
    throw new RlxError('attr', `${given} is no address`, { cause });
  }
}

/** Refuses a file or folder that was changed or removed, or may not be read. */
export const unread = (name: string) => (cause: unknown): never => { throw new RlxError('missing', `${name} cannot be read: ${(cause as Error).message}`, { name, cause }); };

/** Reads the bytes from one position to another. */
type Read = (begin: number, end: number, signal: AbortSignal) => Promise<Uint8Array<ArrayBuffer>>;

/** One read for several that begin in a task: from the first byte to the last one, and how many bytes were asked for. */
interface Joined { from: number; to: number; asked: number; bytes?: ReturnType<Read> }

/** The bytes that nobody asked for, and all bytes, that such a read may have at most. */
const mostBetween = 64 << 10, mostJoined = 64 << 20;

/** Joins reads of neighbouring bytes that begin in one task: a read takes long, however short it is. */
function joining(read: Read): Read {
  let last: Joined | undefined;
  return async (begin, end, signal) => {
    const own = last ??= { from: begin, to: end, asked: 0 };
    own.from = Math.min(own.from, begin);
    own.to = Math.max(own.to, end);
    own.asked += end - begin;
    await undefined; // for the others
    last = undefined;
    const { from, to, asked } = own;
    return asked === end - begin || to - from > Math.min(asked + mostBetween, mostJoined) ? read(begin, end, signal) : (await (own.bytes ??= read(from, to, signal))).slice(begin - from, end - from);
  };
}

/** Wraps a source so that reads after close are refused. */
function closable(name: string, size: number, read: Read): Source {
  const controller = new AbortController(), { signal } = controller;
  const closed = () => new RlxError('closed', `${name} is closed`, { name });
  return {
    name, size,
    async bytes(begin, end) {
      if (signal.aborted) throw closed();
      try {
        return await read(begin, end, signal);
      } catch (cause) {
        throw signal.aborted ? closed() : cause;
      }
    },
    close: () => controller.abort(),
  };
}

const ofBytes = (bytes: Uint8Array): Source => closable('the file', bytes.length, async (begin, end) => new Uint8Array(bytes.subarray(begin, end)));

function ofBlob(blob: Blob): Source {
  const { name = 'the file' } = blob as { name?: string };
  return closable(name, blob.size, joining(async (begin, end) => new Uint8Array(await blob.slice(begin, end).arrayBuffer().catch(unread(name)))));
}

async function openAddress(url: string): Promise<Source> {
  const { size, marks } = await range(url, 0, 1);
  return closable(url, size, joining(async (begin, end, signal) => {
    if (begin === end) return new Uint8Array(0);
    const got = await range(url, begin, end, signal);
    // Copies of one file may have other ETags, or times: it is another one if all marks that both answers have differ.
    const both = marks.filter((mark, i) => mark && got.marks[i]);
    if (got.size !== size || both[0] && !both.some((mark) => got.marks.includes(mark))) throw new RlxError('missing', `${url} has been changed since it was opened`, { name: url });
    return got.bytes;
  }));
}

/**
 * Fetches the bytes from one position to another, and the size of the file and the marks of its version, null where the
 * server gives none.
 */
async function range(url: string, begin: number, end: number, signal?: AbortSignal): Promise<{ bytes: Uint8Array<ArrayBuffer>; size: number; marks: (string | null)[] }> {
  const refuse = (kind: 'missing' | 'unsupported', reason: string, cause?: unknown) => new RlxError(kind, `${url} cannot be loaded: ${reason}`, { name: url, cause });
  const failed = (cause: unknown): never => { throw refuse('missing', (cause as Error).message, cause); };
  const response = await fetch(url, { headers: { range: `bytes=${begin}-${end - 1}` }, ...signal && { signal } }).catch(failed);
  const sends = response.status === 206, found = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get('content-range') ?? '');
  if (!sends || !found) {
    void response.body?.cancel().catch(() => {}); // which may be the whole file
    if (!response.ok) throw refuse('missing', `${response.status} ${response.statusText}`, { status: response.status });
    throw refuse('unsupported', `the server ${sends ? 'sends or exposes no header content-range' : 'ignores the range asked for'}. Load the file as a Blob, and open that`);
  }
  const [from, size] = found.slice(1).map(Number) as [number, number];
  if (from !== begin) throw refuse('unsupported', `the server sends bytes from ${from} on, not from ${begin}`);
  const bytes = new Uint8Array(await response.arrayBuffer().catch(failed));
  if (bytes.length !== Math.min(end, size) - begin) throw refuse('missing', `${bytes.length} bytes came, not ${end - begin}`);
  return { bytes, size, marks: ['etag', 'last-modified'].map((name) => response.headers.get(name)) };
}
