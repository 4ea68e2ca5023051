// What strict TypeScript refuses of a model that was built in TypeScript, and what it takes.

import { batches, graph, init, type Program, program, train, Trainer } from '@rlx-go/rlx';
import { openProgram } from '@rlx-go/rlx/runtime';
import { decodeSafetensors } from '@rlx-go/rlx/safetensors';

await init();
const line = graph('line', { inputs: { x: ['f32', [8, 3]], labels: ['i32', [8]] }, params: { w: ['f32', [3], 0.5] }, states: { seen: ['i32'] } }, (_, { x, labels, w, seen }) => {
  const error = x.matmul(w).sub(labels.convert('f32'));
  return { loss: error.mul(error).mean(), seen: seen.add(1) };
});
const x = new Float32Array(24), labels = new Int32Array(8), dynamic: string = ['los', 's'].join('');

const trainer = await train(line, { optimizer: { kind: 'sgd' }, rate: 0.1, entries: { eval: line } });
await trainer.step({ x, labels });
await trainer.step({ x, labels, lr: 0.2 }, { read: ['loss', 'w', 'optim/step'] });
// @ts-expect-error no input of this name
await trainer.step({ xx: x, labels });
// @ts-expect-error integers for floats
await trainer.step({ x: new Int32Array(24), labels });
// @ts-expect-error floats for integers
await trainer.step({ x, labels: new Float32Array(8) });
// @ts-expect-error no value of this name
await trainer.step({ x, labels }, { read: ['los'] });
await trainer.evaluate({ entry: 'eval', batches: batches({ x: { dtype: 'f32', shape: [8, 3], data: x } }, { size: 8 }) });
// @ts-expect-error no entry of this name
await trainer.evaluate({ entry: 'evall', batches: [] });
await trainer.run({ steps: 1, batches: () => ({ x, labels }) });
// @ts-expect-error no inputs of these names
await trainer.run({ steps: 1, batches: () => ({ xx: x }) });
// @ts-expect-error integers for floats
await trainer.run({ steps: 1, batches: () => ({ x: labels, labels }) });

const opened = trainer.program;
await opened.run('step', { x: { data: x, shape: [8, 3] }, labels, lr: 0.1 });
await opened.run('eval', { x: await opened.upload({ dtype: 'f32', shape: [8, 3], data: x }), labels });
await opened.bind('step', { lr: 0.1 });
// @ts-expect-error no entry of this name
await opened.run('stepp', { x, labels });
// @ts-expect-error a rate, which only the step has
await opened.run('eval', { x, labels, lr: 0.1 });
// @ts-expect-error no entry of this name
await opened.bind('stepp', {});
await opened.read('loss');
await opened.read('block/w');
await opened.read(dynamic);
await opened.readAll(['loss', 'w']);
await opened.keep('w');
await opened.write('w', new Float32Array(3));
await opened.load(decodeSafetensors(new Uint8Array(8)).tensors, { allowExtra: true });
// @ts-expect-error no value of this name
await opened.read('los');
// @ts-expect-error no value of this name
await opened.readAll(['loss', 'ww']);
// @ts-expect-error no parameter of this name
await opened.write('ww', 1);
// @ts-expect-error no value of this name
await opened.keep('los');

const slopes = await program({ entries: { slope: line.grad('loss', 'w'), both: line.valueAndGrad('loss', 'x') } });
await slopes.run('slope', { x, labels }, { read: ['grad/w'] });
await slopes.run('both', { x, labels }, { read: ['loss', 'grad/x'] });
// @ts-expect-error no entry of this name
await slopes.run('slopes', { x, labels });
// @ts-expect-error no value of this name
await slopes.read('gradw');
// @ts-expect-error no output of this name
line.grad('los', 'w');

// Of what was built without declarations, or read from a file, any name is taken.
const loose = graph('loose', (b) => b.output('loss', b.param('w', 'f32', []).mul(b.input('x', 'f32')).mean()));
const free = await program({ entries: { main: loose, text: loose.text() } });
await free.run('main', { x: 1, anything: 2 }, { read: ['any'] });
await free.read('any');
const planned: Program = await openProgram(new Uint8Array(8));
await planned.run('any', { thing: labels }, { read: ['any'] });
new Trainer(planned, { loss: 'any' });
const typed = await openProgram<{ step: { inputs: { x: 'f32' }; values: 'loss' } }>(new Uint8Array(8));
await typed.run('step', { x: 1 }, { read: ['loss'] });
// @ts-expect-error no entry of this name
await typed.run('stepp', { x: 1 });
const any: Program = opened, same: Trainer = trainer;
export { any, same };
