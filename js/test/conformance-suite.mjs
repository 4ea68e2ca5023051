// The location of the conformance suite, and the part of it that runs on lavapipe.

import { readFile } from 'node:fs/promises';

export const suiteFolder = new URL('../../build/conformance/', import.meta.url);

/** Reads a file of the suite. */
export async function load(name) {
  const { buffer, byteOffset, byteLength } = await readFile(new URL(name, suiteFolder));
  return buffer.slice(byteOffset, byteOffset + byteLength);
}

/** Modules without large kernels, or with few: lavapipe takes seconds to compile one with tiles. */
export const isLight = ({ name, bytes }) => bytes <= 32 << 10 && !name.startsWith('model ');
