// The code that the page shows, run on the CPU: it is the network that the page trains.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openSession, session } from '../../js/dist/index.js';
import { Digits, testCount, trainCount } from '../web/digits.js';

const read = (path) => readFileSync(new URL(path, import.meta.url));
const digits = new Digits(new Uint8Array(read('../web/assets/digits.bin')));
const folder = mkdtempSync(join(tmpdir(), 'rlx-code-'));

after(() => rmSync(folder, { recursive: true }));

/** Imports the code as it stands, with the package that was built. */
function load(model) {
  const file = join(folder, `${model}.mjs`), code = read(`../web/code/${model}.js`).toString();
  writeFileSync(file, code.replace("'@rlx-go/rlx'", `'${new URL('../../js/dist/index.js', import.meta.url)}'`));
  return import(file);
}

for (const [model, steps] of [['mlp', 30], ['cnn', 10]]) {
  test(`the code of the ${model} is the page's network, and it learns`, async () => {
    const code = await load(model), page = await openSession(read(`../web/assets/digits-${model}.rlxp`), { on: 'cpu' });
    await page.run('init', { seed: 1 });
    const params = Object.fromEntries(Object.entries(await page.save()).filter(([name]) => page.plan.slots.some((slot) => slot.name === name && slot.role === 'param')));
    const want = (await (await page.run('eval', digits.test, { read: ['loss'] })).reading).values.loss[0];
    const own = await session({ entries: { eval: code[model] }, symbols: { n: testCount } }, { on: 'cpu' });
    await own.load(params);
    const got = (await (await own.run('eval', digits.test, { read: ['loss'] })).reading).values.loss[0];
    assert.ok(Math.abs(got - want) < 1e-5 * want, `${got}, not ${want}`);
    assert.deepEqual(Object.keys(await own.save()).sort(), Object.keys(params).sort());
    page.close();
    own.close();

    const images = { dtype: 'f32', shape: [trainCount, 64], data: digits.images.slice(0, trainCount * 64) };
    const trainer = await code.learn({ images, labels: { dtype: 'i32', shape: [trainCount], data: digits.labels.slice(0, trainCount) } }, steps);
    const losses = await trainer.session.read('history/loss');
    assert.ok(losses[steps - 1] < 0.8 * losses[0], `the loss goes from ${losses[0]} to ${losses[steps - 1]}`);
    trainer.session.close();
  });
}
