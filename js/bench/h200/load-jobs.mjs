// What load.mjs does in Node and in a page: makes a model's file, and loads it to the first token. A page keeps the file in the
// origin's private file system.

import { modelFile, shape, tokenizer } from './lm-jobs.mjs';

const name = 'model.gguf', types = { f32: 0, q4_1: 3, q8_0: 8 }, alignment = 32;

/** The bytes of a GGUF file's header: numbers are u32 or f32, texts have their length before them. */
class Header {
  #bytes = [];

  add(bytes) { for (const byte of bytes) this.#bytes.push(byte); }

  u32(n) { this.add(new Uint8Array(Uint32Array.of(n).buffer)); }

  u64(n) { this.add(new Uint8Array(BigUint64Array.of(BigInt(n)).buffer)); }

  text(text) {
    const bytes = new TextEncoder().encode(text);
    this.u64(bytes.length);
    this.add(bytes);
  }

  value(value) {
    const kind = typeof value === 'string' ? 8 : Number.isInteger(value) ? 4 : 6;
    this.u32(kind);
    if (kind === 8) this.text(value);
    else if (kind === 4) this.u32(value);
    else this.add(new Uint8Array(Float32Array.of(value).buffer));
  }

  get length() { return this.#bytes.length; }

  get bytes() { return Uint8Array.from(this.#bytes); }
}

const aligned = (n) => Math.ceil(n / alignment) * alignment;

/** A model as a GGUF file of version 3. */
export async function file() {
  const { metadata, tensors, read } = modelFile(shape), header = new Header(), all = await Promise.all([...tensors.keys()].map(read));
  header.add(new TextEncoder().encode('GGUF'));
  header.u32(3);
  header.u64(tensors.size);
  header.u64(metadata.size);
  for (const [key, value] of metadata) {
    header.text(key);
    header.value(value);
  }
  let offset = 0;
  for (const [i, { name: tensor, shape: sizes, type }] of [...tensors.values()].entries()) {
    header.text(tensor);
    header.u32(sizes.length);
    for (const n of sizes.toReversed()) header.u64(n);
    header.u32(types[type]);
    header.u64(offset);
    offset = aligned(offset + all[i].length);
  }
  return new Blob([header.bytes, ...all].flatMap((bytes) => [bytes, new Uint8Array(aligned(bytes.length) - bytes.length)]));
}

const handle = async (create) => (await navigator.storage.getDirectory()).getFileHandle(name, { create });

/** Keeps the model in the page's files. */
export const keep = async () => (await file()).stream().pipeTo(await (await handle(true)).createWritable());

/** Loads the model that the page keeps. The paths are those of its server. */
export const loadKept = (on) => load({ modules: ['/rlx/index.js', '/rlx/lm.js'], open: async () => (await handle(false)).getFile(), on });

/**
 * Loads the model of a file, and generates a token after a prompt of 16. Returns the milliseconds of each phase.
 * @param {{modules: string[], open: () => Promise<Blob>, init?: object, on: string, worker?: boolean}} options
 */
export async function load({ modules, open, init, on, worker }) {
  const ms = {}, begun = performance.now();
  let last = begun, reading = 0, reads = 0, from;
  const phase = (of) => {
    const now = performance.now();
    ms[of] = now - last;
    last = now;
  };
  const [rlx, lm] = await Promise.all(modules.map((path) => import(path)));
  await rlx.init({ lazy: true, ...init }); // as a page that keeps plans does
  phase('modules');
  const opened = await lm.openGGUF(await open());
  phase('header');
  const timed = {
    metadata: opened.metadata, tensors: opened.tensors, close: () => opened.close(),
    async read(...given) {
      if (reads++ === 0) from = performance.now();
      try {
        return await opened.read(...given);
      } finally {
        if (--reads === 0) reading += performance.now() - from; // the time in which something is read
      }
    },
  };
  const begins = (loaded) => { if (loaded === 0) phase('program'); };
  const model = await lm.openModel(timed, { context: 1024, on, onProgress: begins, ...worker !== undefined && { worker } });
  phase('weights');
  const prompt = Int32Array.from({ length: 16 }, (_, i) => 100 + i);
  for await (const _ of lm.generate(model, tokenizer, prompt, { maxTokens: 1, temperature: 0 })) phase('first token');
  const { device } = model.program;
  model.close();
  return { device: device.name === 'webgpu' ? device.description : device.name, ms: { ...ms, 'of the weights: reading': reading, 'to the first token': last - begun } };
}
