// Folders that hold checkpoints: of the host's file system, or the origin's private one in a page.

import { RlxError } from '../values/errors.js';

/** The files of a folder. A file that is being written is not seen until it is complete. */
export interface Files {
  /** The names of the files. */
  list(): Promise<string[]>;
  /** The bytes of a file, undefined if there is none. */
  read(name: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Writes a file, in place of an older one. */
  write(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Adds bytes to the end of a file. */
  append(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Removes a file, if it is there. */
  remove(name: string): Promise<void>;
}

/** The parts of Node's `fs/promises` that are used here. */
interface FileSystem {
  mkdir(path: string, options: { recursive: true }): Promise<unknown>;
  readdir(path: string): Promise<string[]>;
  readFile(path: string): Promise<Uint8Array<ArrayBuffer>>;
  writeFile(path: string, bytes: Uint8Array): Promise<void>;
  appendFile(path: string, bytes: Uint8Array): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  rm(path: string, options: { force: true }): Promise<void>;
}

interface Host { process?: { getBuiltinModule?(name: string): unknown } }

/**
 * The files of a folder, which is created if missing: in the file system of Node, Bun and Deno, or
 * in the origin's private file system of a page. Rejects with an {@link RlxError} of kind `store`
 * if there is neither, and if a call fails.
 */
export async function files(path: string): Promise<Files> {
  const fs = (globalThis as Host).process?.getBuiltinModule?.('node:fs/promises') as FileSystem | undefined;
  const storage = globalThis.navigator?.storage;
  if (!fs && !storage?.getDirectory) throw new RlxError('store', `folder ${path}: there is no file system here`, { name: path });
  return caught(path, await attempt(path, () => fs ? onHost(fs, path) : inPage(storage, path)), fs ? undefined : inTurn(path));
}

/**
 * Runs one call on a folder at a time, of all tabs: a file that another tab writes, replaces or removes can be neither removed nor
 * read, and of two appends at once one would be lost.
 */
const inTurn = (path: string): Turn => async (call) =>
  navigator.locks ? navigator.locks.request(`rlx/folder/${path.split('/').filter(Boolean).join('/')}`, call) : call();

/** Runs a call once those before it have ended. */
type Turn = <T>(call: () => Promise<T>) => Promise<T>;

/** Runs a call of a file system; its error becomes one of kind `store`. */
async function attempt<T>(path: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw new RlxError('store', `folder ${path}: ${(cause as Error).message}`, { name: path, cause });
  }
}

/** Files whose errors are of kind `store`. @internal */
export const caught = (path: string, f: Files, turn: Turn = (call) => call()): Files => ({
  list: () => attempt(path, () => turn(() => f.list())),
  read: (name) => attempt(path, () => turn(() => f.read(name))),
  write: (name, bytes) => attempt(path, () => turn(() => f.write(name, bytes))),
  append: (name, bytes) => attempt(path, () => turn(() => f.append(name, bytes))),
  remove: (name) => attempt(path, () => turn(() => f.remove(name))),
});

const notFound = (reason: unknown): undefined => {
  const { code, name } = reason as { code?: string; name?: string };
  if (code !== 'ENOENT' && name !== 'NotFoundError') throw reason;
};

async function onHost(fs: FileSystem, path: string): Promise<Files> {
  await fs.mkdir(path, { recursive: true });
  const at = (name: string) => `${path}/${name}`;
  return {
    list: () => fs.readdir(path),
    read: (name) => fs.readFile(at(name)).catch(notFound),
    async write(name, bytes) {
      await fs.writeFile(at(`${name}.part`), bytes);
      await fs.rename(at(`${name}.part`), at(name));
    },
    append: (name, bytes) => fs.appendFile(at(name), bytes),
    remove: (name) => fs.rm(at(name), { force: true }),
  };
}

/** The origin's private file system, whose streams replace a file when they are closed. */
async function inPage(storage: StorageManager, path: string): Promise<Files> {
  let folder = await storage.getDirectory();
  for (const part of path.split('/').filter(Boolean)) folder = await folder.getDirectoryHandle(part, { create: true });
  const put = async (name: string, bytes: Uint8Array<ArrayBuffer>, append: boolean) => {
    const handle = await folder.getFileHandle(name, { create: true }), stream = await handle.createWritable({ keepExistingData: append });
    if (append) await stream.seek((await handle.getFile()).size);
    await stream.write(bytes);
    await stream.close();
  };
  // A file is empty until its first stream is closed: another tab is writing it, or the page ended before.
  const isEmpty = (file: File | undefined) => !file?.size;
  const fileOf = (handle: FileSystemHandle) => (handle as FileSystemFileHandle).getFile().catch(notFound);
  return {
    async list() {
      const names: string[] = [];
      for await (const [name, handle] of folder.entries()) if (handle.kind === 'directory' || !isEmpty(await fileOf(handle))) names.push(name);
      return names;
    },
    async read(name) {
      const handle = await folder.getFileHandle(name).catch(notFound), file = handle && await fileOf(handle);
      return isEmpty(file) ? undefined : new Uint8Array(await file!.arrayBuffer());
    },
    write: (name, bytes) => put(name, bytes, false),
    append: (name, bytes) => put(name, bytes, true),
    remove: async (name) => { await folder.removeEntry(name).catch(notFound); },
  };
}
