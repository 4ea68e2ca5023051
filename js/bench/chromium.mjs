// Runs jobs of one peer in Chromium on this machine's GPU and prints the results as JSON, as node.mjs
// does in Node. Run it bundled (bundle.mjs), with page.mjs bundled into the folder page next to it.
//
//   RLX_PLANS=build/plans node chromium.mjs PEER host|gpu STEPS REPEATS

import { join } from 'node:path';
import { openChromium } from '../test/rig/chromium.mjs';
import { scriptPage, serve } from '../test/rig/serve.mjs';

const [peer, set, steps, repeats] = process.argv.slice(2);
const server = await serve({
  '/': join(import.meta.dirname, 'page'), '/plans': process.env.RLX_PLANS, '/bench.html': scriptPage,
});
const browser = await openChromium({ webgpu: 'default' });
const page = await browser.open(`${server.origin}/bench.html`);
await page.waitForFunction(() => globalThis.runPeer);
const results = await page.evaluate(({ peer, set, timing }) => globalThis.runPeer(peer, set, timing), {
  peer, set, timing: { steps: Number(steps), repeats: Number(repeats) },
});
console.log(JSON.stringify(results.map((row) => ({ ...row, peer: `${row.peer}, Chromium` }))));
await browser.close();
process.exit(0);
