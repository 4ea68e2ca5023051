// Models as the visitor has them: files, folders, addresses, and what the browser keeps.

import { openGGUF, openHF, tokenizerOf } from '../rlx/lm.js';

const megabyte = 2 ** 20;

/** Bytes in words. */
export const size = (bytes) => bytes < megabyte ? `${Math.ceil(bytes / 1024)} kB` : bytes < 1024 * megabyte ? `${Math.round(bytes / megabyte)} MB` : `${(bytes / 1024 / megabyte).toFixed(1)} GB`;

/**
 * Opens a model of files: one or more GGUF files, or those of a folder.
 * @param {readonly File[]} files
 * @returns {Promise<{name: string, file: import('@rlx-go/rlx/lm').ModelFile, tokenizer: import('@rlx-go/rlx/lm').Tokenizer, files: readonly File[]}>}
 */
export async function openFiles(files, name = nameOf(files)) {
  const packed = files.filter((one) => one.name.endsWith('.gguf')).sort((a, b) => a.name < b.name ? -1 : 1);
  if (packed.length > 0) return { ...await ofGGUF(packed.length > 1 ? packed : packed[0]), name, files: packed };
  const wanted = files.filter((one) => /\.(json|safetensors|jinja|model|txt)$/.test(one.name));
  if (!wanted.some((one) => one.name === 'config.json')) throw new Error('There is no model in it: a model is a file that ends with .gguf, or a folder with config.json, tokenizer.json and safetensors.');
  const file = await openHF(Object.fromEntries(wanted.map((one) => [one.name, one])));
  if (!file.tokenizer) throw new Error('The folder has no tokenizer.json, by which the model reads text.');
  return { file, tokenizer: file.tokenizer, name, files: wanted };
}

/** Opens a GGUF file at an address: parts of it are fetched when they are needed. */
export async function openAddress(address) {
  if (new URL(address, location.href).protocol === 'http:' && location.protocol === 'https:') throw new Error('The address must begin with https://.');
  const opened = await ofGGUF(address).catch((error) => { throw new Error(whyNot(error, address), { cause: error }); });
  return { ...opened, name: decodeURIComponent(new URL(address, location.href).pathname.split('/').at(-1)), address };
}

/** Why an address was not opened, in words for a visitor, and what may be done. */
function whyNot({ kind, message, cause }, address) {
  const { host } = new URL(address, location.href), status = cause?.status, instead = 'Download the file, and open it here.';
  if (kind === 'unsupported' && message.includes(' cannot be loaded: ')) return `${host} does not send parts of a file, which are needed to open one at its address. ${instead}`;
  if (kind === 'syntax') return `There is no GGUF file at this address: ${message.replace(/^GGUF: /, '')}. On Hugging Face the address of a file is that of its download button.`;
  if (kind !== 'missing') return message;
  if (status === 401 || status === 403) return `${host} does not give this file without a login. ${instead}`;
  if (status) return `There is no file at this address: ${host} answers ${status}. Check the address.`;
  if (!navigator.onLine) return 'This device is offline. Open a file of it instead.';
  return `${host} cannot be reached, or does not let other pages read its files. Check the address. ${instead}`;
}

async function ofGGUF(source) {
  const file = await openGGUF(source);
  return { file, tokenizer: tokenizerOf(file) };
}

const nameOf = ([first]) => first?.webkitRelativePath?.split('/')[0] || first?.name || 'model';

/** The files of what was dropped: files, and those directly in folders. */
export async function dropped({ items, files }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return [...files];
  return (await Promise.all(entries.map(filesOf))).flat();
}

async function filesOf(entry) {
  if (entry.isFile) return [await new Promise((resolve, reject) => entry.file(resolve, reject))];
  const reader = entry.createReader(), found = [];
  for (;;) { // a call gives some of them
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return Promise.all(found.filter((one) => one.isFile).map((one) => new Promise((resolve, reject) => one.file(resolve, reject))));
    found.push(...some);
  }
}

/** The models that the browser keeps: folders of the origin's private file system. */
export class Kept {
  /** The folder of all of them; undefined where the browser has no such file system. */
  static async #root(create = false) {
    const storage = await navigator.storage?.getDirectory?.().catch(() => undefined);
    return storage?.getDirectoryHandle('models', { create }).catch(() => undefined);
  }

  /** Whether the browser can keep files. */
  static get possible() { return typeof navigator.storage?.getDirectory === 'function' && typeof globalThis.FileSystemFileHandle?.prototype.createWritable === 'function'; }

  /** The names of the models, and their bytes. */
  static async list() {
    const root = await Kept.#root(), found = [];
    if (!root) return found;
    for await (const [name, folder] of root.entries()) {
      const files = await filesIn(folder);
      found.push({ name, bytes: files.reduce((sum, file) => sum + file.size, 0) });
    }
    return found.sort((a, b) => a.name < b.name ? -1 : 1);
  }

  static async open(name) {
    const root = await Kept.#root();
    return openFiles(await filesIn(await root.getDirectoryHandle(name)), name);
  }

  /** Keeps a model. It is there only when all of it is. */
  static async add(name, files) {
    const bytes = files.reduce((sum, file) => sum + file.size, 0), { quota = Infinity, usage = 0 } = await navigator.storage.estimate?.() ?? {};
    if (bytes > quota - usage) throw new Error(`The browser has room for ${size(quota - usage)} more, and the model takes ${size(bytes)}.`);
    await navigator.storage.persist?.();
    const root = await Kept.#root(true), folder = await root.getDirectoryHandle(name, { create: true });
    try {
      for (const file of files) await file.stream().pipeTo(await (await folder.getFileHandle(file.name, { create: true })).createWritable());
    } catch (error) {
      await Kept.remove(name);
      throw error;
    }
  }

  static async remove(name) { await (await Kept.#root())?.removeEntry(name, { recursive: true }); }
}

async function filesIn(folder) {
  const files = [];
  for await (const handle of folder.values()) if (handle.kind === 'file') files.push(await handle.getFile());
  return files;
}
