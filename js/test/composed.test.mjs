// Methods of values that compose others.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closeCompiler, graph, init, program } from '../dist/index.js';

before(() => init({ compileWorker: false, worker: false }));
after(closeCompiler);

test('median, moveAxis, splitEvenly and lerp', async () => {
  const model = graph('model', (b) => {
    const x = b.input('x', 'f32', [2, 3]), y = b.input('y', 'f32', [2, 3]), [left, , right] = x.splitEvenly(3, -1);
    const moved = x.reshape([1, 2, 3]).moveAxis(-1, 0);
    assert.deepEqual(moved.shape, [3, 1, 2]);
    for (const [name, value] of Object.entries({ median: x.median(), first: x.median(0), moved, left, right, half: x.lerp(y, 0.5), all: x.lerp(y, 1), none: x.lerp(y, 0) })) b.output(name, value);
    assert.throws(() => x.moveAxis(0, 2), { kind: 'attr', message: /it has no axis 2/ });
    assert.throws(() => x.moveAxis(-3, 0), { kind: 'attr' });
    assert.throws(() => x.splitEvenly(2, 1), { kind: 'shape', message: /a multiple of 2/ });
    assert.throws(() => x.splitEvenly(0), { message: /number of parts/ });
    assert.throws(() => x.splitEvenly(2, 5), { kind: 'attr' });
  });
  const made = await program({ entries: { model } }, { on: 'cpu', worker: false }), x = Float32Array.of(5, 1, 3, 2, 9, 4), y = Float32Array.of(1e8, 2, 3, 4, 5, 6);
  await made.run('model', { x, y });
  const read = async (name) => [...await made.read(name)];
  assert.deepEqual(await read('median'), [3, 4]);
  assert.deepEqual(await read('first'), [3.5, 5, 3.5]);
  assert.deepEqual(await read('moved'), [5, 2, 1, 9, 3, 4]);
  assert.deepEqual([await read('left'), await read('right')], [[5, 2], [3, 4]]);
  assert.deepEqual(await read('all'), [...y]);
  assert.deepEqual(await read('none'), [...x]);
  assert.deepEqual((await read('half')).slice(1), [1.5, 3, 3, 7, 5]);
  made.close();
});
