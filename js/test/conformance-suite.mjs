// Where the conformance suite lies, and which part of it a GPU made of software is put to:
// it takes seconds to compile a kernel with tiles of matrices.

import { readFile } from 'node:fs/promises';

export const suiteFolder = new URL('../../build/conformance/', import.meta.url);

/** Reads a file of the suite. */
export async function load(name) {
  const { buffer, byteOffset, byteLength } = await readFile(new URL(name, suiteFolder));
  return buffer.slice(byteOffset, byteOffset + byteLength);
}

/** Modules without large kernels, or with few. */
export const isLight = ({ name, bytes }) => bytes <= 32 << 10 && !name.startsWith('model ');

/** The models, and other modules that are not light, but for the largest. */
export const isHeavy = (module) => !isLight(module) && module.bytes <= 72 << 10;
