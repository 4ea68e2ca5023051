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
  if (packed.length > 0) {
    const opened = await ofGGUF(packed.length > 1 ? packed : packed[0]).catch((error) => {
      throw error.kind === 'syntax' ? new Error(`${name} cannot be read: it is not a GGUF file, or only part of one. Download it again. (${error.message})`, { cause: error }) : error;
    });
    return { ...opened, name, files: packed };
  }
  const wanted = files.filter((one) => /\.(json|safetensors|jinja|model|txt)$/.test(one.name));
  if (!wanted.some((one) => one.name === 'config.json')) throw new Error('There is no model in it: a model is a file that ends with .gguf, or a folder with config.json, tokenizer.json and safetensors.');
  const file = await openHF(Object.fromEntries(wanted.map((one) => [one.name, one])));
  if (!file.tokenizer) throw new Error('The folder has no tokenizer.json, by which the model reads text.');
  return { file, tokenizer: file.tokenizer, name, files: wanted };
}

/** Whether this page may read from addresses of a protocol. */
const reachable = (protocol) => protocol === 'https:' || protocol === 'http:' && location.protocol === 'http:';

/** Opens a GGUF file at an address: parts of it are fetched when they are needed. */
export async function openAddress(address) {
  if (!reachable(new URL(address, location.href).protocol)) throw new Error('The address must begin with https://.');
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

/** Runs something while no other tab changes the kept model of a name; undefined if another does, and `wait` is false. */
const alone = (name, run, wait = true) => navigator.locks.request(`rlx model ${name}`, { ifAvailable: !wait }, (lock) => lock ? run() : undefined);

/** Runs something once no tab changes the kept model of a name. */
const settled = (name, run) => navigator.locks.request(`rlx model ${name}`, { mode: 'shared' }, run);

/** Runs something that reads the names of the kept models ('shared'), or replaces the folder of one ('exclusive'). */
const ofNames = (mode, run) => navigator.locks.request('rlx models', { mode }, run);

/**
 * The models that the browser keeps: folders of the origin's private file system. All files of a model are created before the first
 * is written, and a file has its bytes once it is closed: if one is empty, the model is not complete.
 */
export class Kept {
  /** The folder of all of them; undefined where the browser has no such file system, or nothing was kept. */
  static async #root() {
    const storage = await navigator.storage?.getDirectory?.().catch(() => undefined);
    return storage?.getDirectoryHandle('models').catch(() => undefined);
  }

  /** Whether the browser can keep files. */
  static get possible() { return typeof navigator.storage?.getDirectory === 'function' && typeof globalThis.FileSystemFileHandle?.prototype.createWritable === 'function'; }

  /** The names of the models, and their bytes. What is left of one that a closed tab did not complete is removed. */
  static async list() {
    const root = await Kept.#root(), found = [], left = [];
    if (!root) return found;
    for (const [name, folder] of await ofNames('shared', () => all(root.entries()))) {
      const files = await settled(name, () => filesIn(folder).catch(() => [])); // another tab may have removed it
      if (files.length > 0 && files.every((file) => file.size > 0)) found.push({ name, bytes: files.reduce((sum, file) => sum + file.size, 0) });
      else left.push(name);
    }
    for (const name of left) await alone(name, () => root.removeEntry(name, { recursive: true }), false).catch(() => {}); // the next visit tries again
    return found.sort((a, b) => a.name < b.name ? -1 : 1);
  }

  static async open(name) {
    const root = await Kept.#root();
    return openFiles(await filesIn(await root.getDirectoryHandle(name)), name);
  }

  /** Keeps a model. It is there only when all of it is. */
  static async add(name, files) {
    const bytes = files.reduce((sum, file) => sum + file.size, 0), { quota = Infinity, usage = 0 } = await navigator.storage.estimate?.() ?? {};
    if (bytes > quota - usage) throw new Error(`The browser has room for ${size(Math.max(0, quota - usage))} more, and the model takes ${size(bytes)}: it is open, but not kept.`);
    await navigator.storage.persist?.();
    await alone(name, async () => {
      try {
        await write(name, files.filter((file) => file.size > 0));
      } catch (error) {
        await Kept.remove(name).catch(() => {}); // there may be nothing
        throw error.name === 'QuotaExceededError' ? new Error(`The browser has no room for the model, which takes ${size(bytes)}: it is open, but not kept.`, { cause: error }) : error;
      }
    });
  }

  static async remove(name) { await (await Kept.#root())?.removeEntry(name, { recursive: true }); }
}

/** Writes the files of a model into a folder of its own. */
async function write(name, files) {
  const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('models', { create: true }), made = [];
  await ofNames('exclusive', async () => {
    await root.removeEntry(name, { recursive: true }).catch(() => {}); // one of this name
    const folder = await root.getDirectoryHandle(name, { create: true });
    for (const file of files) made.push(await folder.getFileHandle(file.name, { create: true }));
  });
  for (const [i, file] of files.entries()) await file.stream().pipeTo(await made[i].createWritable());
}

/** What an iterator gives, before anything else is awaited. */
async function all(iterator) {
  const found = [];
  for await (const one of iterator) found.push(one);
  return found;
}

const filesIn = async (folder) => Promise.all((await all(folder.values())).filter(({ kind }) => kind === 'file').map((handle) => handle.getFile()));
