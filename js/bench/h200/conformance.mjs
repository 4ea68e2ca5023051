// The conformance suite on this machine's GPU, over Dawn: a program for pack.mjs. It ends
// with 0 if everything passed.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runConformance } from '../../test/conformance.mjs';
import { openDawn } from '../../test/rig/dawn.mjs';

const load = async (name) => {
  const { buffer, byteOffset, byteLength } = await readFile(join(process.env.RLX_DATA, 'conformance', name));
  return buffer.slice(byteOffset, byteOffset + byteLength);
};
const { device } = await openDawn({ optional: ['shader-f16', 'subgroups', 'subgroup-size-control'] });
const { failed } = await runConformance({ device, load, print: (line) => console.log(line) });
process.exit(failed > 0 ? 1 : 0);
