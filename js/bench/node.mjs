// Runs jobs of one peer over Dawn in this process and prints the results as JSON. Run it bundled
// (bundle.mjs): Node does not resolve TensorFlow.js's modules.
//
//   RLX_DAWN_NODE=.../dawn.node node node.mjs PEER BACKEND host|gpu STEPS REPEATS
//
// BACKEND is one of the Dawn rig's: null (runs nothing on any GPU, so that only the
// host's work is timed), lavapipe, swiftshader, or default (the machine's own GPU).

import { openGPU } from '../test/rig/dawn.mjs';
import { runJobs, sets } from './jobs.mjs';
import { peers } from './peers/index.mjs';

// becomePage makes this process look like a page to libraries written for one.
function becomePage(backend) {
  const navigator = { gpu: openGPU({ backend }), userAgent: 'node', platform: process.platform };
  Object.defineProperty(globalThis, 'navigator', { value: navigator, configurable: true });
  globalThis.self ??= globalThis;
}

const [peer, backend, set, steps, repeats] = process.argv.slice(2);
becomePage(backend);
const { open } = await peers[peer]();
const results = await runJobs(open, sets[set], {
  steps: Number(steps), repeats: Number(repeats), computes: backend !== 'null',
});
console.log(JSON.stringify(results));
process.exit(0);
