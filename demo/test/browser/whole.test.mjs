// From the import of the package to a trained model: no task of the page's main thread is long.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openChromium } from '../../../js/test/rig/chromium.mjs';
import { isolation, scriptPage, serve, strictCSP } from '../../../js/test/rig/serve.mjs';
import { demoMounts } from '../../../js/serve.mjs';
import { traceTasks } from './tasks.mjs';

const script = `
import { batches, graph, init, train } from '/rlx/index.js';

const xs = Float32Array.from({ length: 256 }, (_, i) => i / 128 - 1), column = (data) => ({ dtype: 'f32', shape: [256, 1], data });
let trainer;
globalThis.phases = {
  init: () => init(),
  async compile() {
    trainer = await train(model(), { optimizer: { kind: 'adam' }, rate: 0.003, seed: 1 });
  },
  async train() {
    const { loss } = await trainer.run({ steps: 400, batches: batches({ x: column(xs), y: column(xs.map((x) => Math.sin(4 * x))) }, { size: 64, shuffle: 1 }) });
    trainer.program.close();
    if (!(loss < 0.05)) throw new Error('it has not learned: the loss is ' + loss);
  },
};

function model() {
  return graph('wave', (b) => {
    const x = b.input('x', 'f32', [64, 1]), y = b.input('y', 'f32', [64, 1]);
    let h = x;
    for (let i = 0; i < 3; i++) h = h.linear(b.param('w' + i, 'f32', [i ? 64 : 1, 64]), b.param('b' + i, 'f32', [64])).tanh();
    b.output('loss', h.linear(b.param('w3', 'f32', [64, 1]), b.param('b3', 'f32', [1])).sub(y).square().mean());
  });
}
`;

let server;
before(async () => { server = await serve({ '/rlx': demoMounts['/rlx'], '/page.mjs': { body: script, type: 'text/javascript' }, '/page.html': scriptPage }, { csp: strictCSP, headers: isolation }); });
after(() => server.close());

/**
 * The phases, and the longest task that each may have, in milliseconds of a thread of nominal speed. The worker loads and starts the compiler first, so
 * that this thread finds its functions compiled; a graph is derived in one task, and written in another. What is compiled and trained is in workers.
 */
const phases = ['import', 'init', 'compile', 'train'], most = 16, tries = 3;

/** The longest task of each phase. */
async function longest(browser) {
  const page = await browser.open(`${server.origin}/page.html?first`), found = {}; // a page of the origin, so that its process is there
  for (const phase of phases) {
    const tasks = await traceTasks(page);
    if (phase === 'import') {
      await page.goto(`${server.origin}/page.html`);
      await page.waitForFunction(() => globalThis.phases);
    } else {
      await page.evaluate((name) => globalThis.phases[name](), phase);
    }
    found[phase] = (await tasks.longest()).ms;
  }
  assert.deepEqual(page.problems, []);
  await page.close();
  return found;
}

test('from import to a trained model no task of the main thread is long', async (t) => {
  const browser = await openChromium(), least = {};
  t.after(() => browser.close());
  const held = () => phases.every((phase) => least[phase] <= most);
  for (let attempt = 0; attempt < tries && !held(); attempt++) {
    for (const [phase, ms] of Object.entries(await longest(browser))) least[phase] = Math.min(ms, least[phase] ?? Infinity);
  }
  const text = Object.entries(least).map(([phase, ms]) => `${phase} ${ms.toFixed(1)} ms`).join(', ');
  t.diagnostic(`the longest task of each: ${text}`);
  assert.ok(held(), text);
});
