// The location of the conformance suite.

import { readFile } from 'node:fs/promises';

export const suiteFolder = new URL('../../build/conformance/', import.meta.url);

/** Reads a file of the suite. */
export async function load(name) {
  const { buffer, byteOffset, byteLength } = await readFile(new URL(name, suiteFolder));
  return buffer.slice(byteOffset, byteOffset + byteLength);
}
