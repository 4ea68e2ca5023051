// What strict TypeScript refuses of a model that was built in TypeScript, and what it takes.

import { batches, compile, graph, init, type Program, program, type TensorData, train, Trainer } from '@rlx-go/rlx';
import { openFor, reportOn, reportTarget } from '@rlx-go/rlx/devices';
import { kl, laplace, mixture, normal, poisson } from '@rlx-go/rlx/dist';
import { averages, fit, inOrder, type Loop, prefetch, shuffled } from '@rlx-go/rlx/fit';
import { openProgram } from '@rlx-go/rlx/runtime';
import { decodeSafetensors, matchTensors } from '@rlx-go/rlx/safetensors';
import { openSizes } from '@rlx-go/rlx/sizes';

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
const rows = { x: { dtype: 'f32', shape: [8, 3], data: x }, labels: { dtype: 'i32', shape: [8], data: labels } };
const measured = await trainer.evaluate({ entry: 'eval', batches: batches(rows, { size: 8 }) });
measured.loss satisfies number | TensorData;
// @ts-expect-error no output of this name
measured.los;
// @ts-expect-error a parameter, which is no output
measured.w;
// @ts-expect-error no input of this name
await trainer.evaluate({ entry: 'eval', batches: batches({ x: rows.x, label: rows.labels }, { size: 8 }) });
// @ts-expect-error no entry of this name
await trainer.evaluate({ entry: 'evall', batches: [] });
const averaging = await train(line, { optimizer: { kind: 'sgd', average: 0.9 }, rate: 0.1, entries: { eval: line }, evalAverages: { averaged: line } });
await averaging.evaluate({ entry: 'averaged', batches: batches(rows, { size: 8 }) });
await averaging.evaluate({ entry: 'eval', batches: batches(rows, { size: 8 }) });
// @ts-expect-error no entry of this name
await averaging.evaluate({ entry: 'average', batches: [] });
(await averages(averaging)).w;
matchTensors(decodeSafetensors(new Uint8Array(8)).tensors, averaging.program, { rename: { a: 'w' }, cast: true });
matchTensors(decodeSafetensors(new Uint8Array(8)).tensors, line, { rename: (name) => name, missing: ['w'] });
// @ts-expect-error no option of this name
matchTensors({}, line, { only: ['w'] });
await trainer.run({ steps: 1, batches: () => ({ x, labels }) });
await trainer.run({ steps: 1, batches: (step) => ({ x, labels, lr: step }) });
await trainer.run({ steps: 1, batches: batches(rows, { size: 8 }), inputs: { lr: 0.1 } });
// @ts-expect-error one input of this name too many
await trainer.run({ steps: 1, batches: () => ({ x, labels, label: labels }) });
// @ts-expect-error one input of this name too many
await trainer.run({ steps: 1, batches: batches({ ...rows, label: rows.labels }, { size: 8 }) });
// @ts-expect-error floats for integers
await trainer.run({ steps: 1, batches: batches({ x: rows.x, labels: rows.x }, { size: 8 }) });
// @ts-expect-error no input to mark real rows with
await trainer.run({ steps: 1, batches: batches(rows, { size: 3, last: { mask: 'mask' } }) });
// @ts-expect-error no inputs of these names
await trainer.run({ steps: 1, batches: () => ({ xx: x }) });
// @ts-expect-error integers for floats
await trainer.run({ steps: 1, batches: () => ({ x: labels, labels }) });

await fit(trainer, { data: shuffled(rows, 8, 1), epochs: 1, eval: { entry: 'eval', data: inOrder(rows, 8) } });
await fit(trainer, { data: prefetch((epoch: number) => [{ x, labels, lr: epoch }], 2), steps: 3 });
// @ts-expect-error no entry of this name
await fit(trainer, { data: shuffled(rows, 8, 1), epochs: 1, eval: { entry: 'evall', data: inOrder(rows, 8) } });
// @ts-expect-error floats for integers
await fit(trainer, { data: shuffled({ x: rows.x, labels: rows.x }, 8, 1), epochs: 1 });
// @ts-expect-error one input of this name too many
await fit(trainer, { data: shuffled({ ...rows, label: rows.labels }, 8, 1), epochs: 1 });
// @ts-expect-error one input of this name too many
await fit(trainer, { data: () => [{ x, labels, label: labels }], epochs: 1 });
await fit(trainer, { data: shuffled(rows, 8, 1), epochs: 1, eval: { entry: 'eval', data: () => [{ x, labels }], weight: 'loss' } });
// @ts-expect-error one input of this name too many, in the evaluation
await fit(trainer, { data: shuffled(rows, 8, 1), epochs: 1, eval: { entry: 'eval', data: () => [{ x, labels, label: labels }] } });
// @ts-expect-error the same by rows
await fit(trainer, { data: shuffled(rows, 8, 1), epochs: 1, eval: { entry: 'eval', data: inOrder({ ...rows, label: rows.labels }, 8) } });
// @ts-expect-error no input of this name, in place of one
await fit(trainer, { data: shuffled(rows, 8, 1), epochs: 1, eval: { entry: 'eval', data: () => [{ x, label: labels }] } });
// @ts-expect-error a rate, which only the step has
await fit(trainer, { data: shuffled(rows, 8, 1), epochs: 1, eval: { entry: 'eval', data: () => [{ x, labels, lr: 0.1 }] } });
// @ts-expect-error floats for integers, in the evaluation
await fit(trainer, { data: shuffled(rows, 8, 1), epochs: 1, eval: { entry: 'eval', data: () => [{ x, labels: x }] } });
const evaluation = { entry: 'eval' as const, data: async function* () { yield { x, labels }; } };
await fit(trainer, { data: shuffled(rows, 8, 1), epochs: 1, eval: evaluation });
const loop: Loop = { data: () => [{ x, labels }], epochs: 1, eval: { entry: 'eval', data: () => [{ any: x }] } };
await fit(trainer as Trainer, loop);

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
(await opened.read('w')) satisfies Float32Array;
(await opened.read('seen')) satisfies Int32Array;
// @ts-expect-error integers, not floats
(await opened.read('seen')) satisfies Float32Array;
const { reading } = await opened.run('eval', { x, labels }, { read: ['loss', 'w'] });
(await reading).values.w satisfies Float32Array;
// @ts-expect-error a value that was not read
(await reading).values.seen;
(await opened.run('eval', { x, labels })).reading satisfies undefined;
(await opened.readAll(['seen'])).values.seen satisfies Int32Array;
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

// Declared outputs have element types, and are required.
const exact = graph('exact', { inputs: { x: ['f32', [4]] }, outputs: { sum: ['f32'], best: ['i32'] } }, (_, { x }) => ({ sum: x.mean(), best: x.argmax() }));
const both = await program({ entries: { exact } });
(await both.read('best')) satisfies Int32Array;
// @ts-expect-error integers, not floats
(await both.read('best')) satisfies Float32Array;
// @ts-expect-error an output is not returned
graph('exact', { inputs: { x: ['f32', [4]] }, outputs: { sum: ['f32'], best: ['i32'] } }, (_, { x }) => ({ sum: x.mean() }));

// A plan that was just compiled has the types of its graphs.
const again = await openProgram(await compile({ entries: { exact } }));
await again.run('exact', { x });
// @ts-expect-error no entry of this name
await again.run('exct', { x });
// @ts-expect-error no input of this name
await again.run('exact', { y: x });

// Loops and branches return as many values as they are given.
graph('loops', { inputs: { x: ['f32', [4]] } }, (b, { x }) => {
  const { carries: [sum], ys: [all, more] } = b.scan({ carries: [b.full('f32', [], 0)], xs: [x] }, (_, __, [last], [one]) => {
    const next = last.add(one);
    return { carries: [next], ys: [next, one] };
  });
  const [count] = b.whileLoop({ carries: [sum] }, (_, __, [n]) => n.lt(10), (_, __, [n]) => [n.add(1)]);
  const [either] = b.cond(sum.gt(0), [sum], (_, [x]) => [x], (_, [x]) => [x.neg()]);
  const [again] = b.checkpoint([either], (_, [x]) => [x.exp()]);
  // @ts-expect-error one carry, not two
  b.scan({ carries: [sum], xs: [x] }, (_, __, [last]) => ({ carries: [last, last] }));
  return { all, more, count, again };
});

// Derivatives add names.
const directional = await program({ entries: { jvp: line.jvp('w'), vjp: line.vjp('w') } });
await directional.run('jvp', { x, labels, 'tangent/w': new Float32Array(3) }, { read: ['tangent/loss'] });
// @ts-expect-error no tangent of this name
await directional.run('jvp', { 'tangent/x': x });
// @ts-expect-error no output of this name
await directional.run('vjp', { 'cotangent/los': 1 });

const loose = graph('loose', (b) => b.output('loss', b.param('w', 'f32', []).mul(b.input('x', 'f32')).mean()));

// Gradients have the element types of what they are by.
const declared = graph('declared', { inputs: { x: ['f32', ['rows', 3]], ids: ['i32', ['rows']] }, params: { w: ['f32', [3]] }, outputs: { loss: ['f32'] } }, (_, { x, w, ids }) => ({ loss: x.matmul(w).add(ids.convert('f32')).mean() }));
const all = await program({
  entries: { by: declared.grad('loss', 'w', 'x'), zero: declared.gradWith({ output: 'loss', by: ['x'], missing: 'zero' }), jacobian: declared.jacobian('reverse', 'loss', 'x'), jet: declared.jet(2, 'x') },
  symbols: { rows: 4 },
});
(await all.read('grad/w')) satisfies Float32Array;
(await all.read('jacobian/loss/x')) satisfies Float32Array;
(await all.run('jet', { x, ids: labels, 'series/1/x': x, 'series/2/x': x }, { read: ['series/2/loss', 'd2/loss', 'grad/x'] })).reading satisfies Promise<{ values: { 'grad/x': Float32Array } }>;
// @ts-expect-error integers for floats
await all.run('jet', { 'series/1/x': labels });
// @ts-expect-error no port of this name
declared.grad('loss', 'v');
// @ts-expect-error the same of several
declared.hessian('loss', 'w', 'v');
// @ts-expect-error no port of this name
declared.gradWith({ output: 'loss', by: ['v'] });
// @ts-expect-error no output of this name
declared.nth('los', 'w', 2);
// @ts-expect-error no port of this name
declared.jet(2, 'v');
// @ts-expect-error no port of this name
declared.vmap(2, { v: 0 });

// Names of symbols, of the loss and of parameters are checked, too.
declared.bind({ rows: 2 });
// @ts-expect-error no symbol of this name
declared.bind({ row: 2 });
await train(declared, { optimizer: { kind: 'sgd' }, rate: 1, loss: 'loss', symbols: { rows: 2 }, params: { w: 1 } });
declared.step({ optimizer: { kind: 'sgd' }, loss: dynamic });
// @ts-expect-error no output of this name
await train(declared, { optimizer: { kind: 'sgd' }, rate: 1, loss: 'los', symbols: { rows: 2 } });
// @ts-expect-error no symbol of this name
await train(declared, { optimizer: { kind: 'sgd' }, rate: 1, symbols: { row: 2 } });
// @ts-expect-error no parameter of this name
await train(declared, { optimizer: { kind: 'sgd' }, rate: 1, symbols: { rows: 2 }, params: { v: 1 } });
// @ts-expect-error no output of this name
declared.step({ optimizer: { kind: 'sgd' }, loss: 'los' });
// @ts-expect-error no symbol of this name
await program({ entries: { declared }, symbols: { row: 2 } });
// @ts-expect-error no symbol of this name
await openSizes({ entries: { declared }, sizes: { row: { max: 4 } } });
graph('polynomial', { inputs: { x: ['f32', ['2*n']] } }, (_, { x }) => ({ y: x.neg() })).bind({ n: 2 });

// Optimizers, schedules and policies.
declared.step({ optimizer: { kind: 'sgd' }, schedule: { kind: 'polynomial', rate: 1, steps: 9, exponent: 2, warmUp: 3 }, groups: [{ params: ['w'], optimizer: { kind: 'adam' } }], policy: { ops: ['dot_general'] } });
// @ts-expect-error a schedule without its steps
declared.step({ optimizer: { kind: 'sgd' }, schedule: { kind: 'cosine', rate: 1 } });
// @ts-expect-error the number of another schedule
declared.step({ optimizer: { kind: 'sgd' }, schedule: { kind: 'cosine', rate: 1, steps: 9, factor: 2 } });
// @ts-expect-error no optimizer of this name
declared.step({ optimizer: { kind: 'adamm' } });
declared.step({ optimizer: { kind: 'rmsprop', momentum: 0.9, centered: true, epsilon: 1e-6, weightDecay: 0.1, clipNorm: 1 } });
declared.step({ optimizer: { kind: Math.random() < 0.5 ? 'adam' : 'nadam', beta1: 0.5, average: 0.99 } });
// @ts-expect-error adam has no momentum
declared.step({ optimizer: { kind: 'adam', momentum: 0.9 } });
// @ts-expect-error sgd has no beta1
declared.step({ optimizer: { kind: 'sgd', beta1: 0.9, clipNorm: 1 } });
// @ts-expect-error adam has no momentum in a group, either
declared.step({ optimizer: { kind: 'sgd' }, groups: [{ params: ['w'], optimizer: { kind: 'adam', momentum: 0.9 } }] });
// @ts-expect-error clipping is of the whole step
declared.step({ optimizer: { kind: 'sgd' }, groups: [{ params: ['w'], optimizer: { kind: 'adam', clipNorm: 1 } }] });
// @ts-expect-error one kind of policy
declared.step({ optimizer: { kind: 'sgd' }, policy: { ops: ['exp'], within: 3 } });

// A graph in a graph.
graph('outer', { inputs: { x: ['f32', [4, 3]], ids: ['i32', [4]] } }, (b, { x, ids }) => {
  const { loss } = b.call(declared, { x, ids });
  // @ts-expect-error no output of this name
  b.call(declared, { x, ids }).los;
  // @ts-expect-error an input is missing
  b.call(declared, { x });
  return { loss, again: b.call(loose, { x: loss })['loss']! };
});

// Of what was built without declarations, or read from a file, any name is taken.
const free = await program({ entries: { main: loose, text: loose.text() } });
await free.run('main', { x: 1, anything: 2 }, { read: ['any'] });
await free.read('any');
const planned: Program = await openProgram(new Uint8Array(8));
await planned.run('any', { thing: labels }, { read: ['any'] });
new Trainer(planned, { loss: 'any' });
const typed = await openProgram<{ step: { inputs: { x: 'f32' }; values: { loss: 'f32' } } }>(new Uint8Array(8));
await typed.run('step', { x: 1 }, { read: ['loss'] });
// @ts-expect-error no entry of this name
await typed.run('stepp', { x: 1 });
// Devices by name, and programs with the types of their entries.
(await reportOn(line, 'cpu')).rows[0]!.level satisfies string;
// @ts-expect-error no device of this name
await reportOn(line, 'cuda');
// @ts-expect-error no target of this name
await reportTarget(line, 'tpu');
const chosen = await openFor({ entries: { step: line } }, { devices: { only: ['webgpu', 'cpu'] } });
// @ts-expect-error no entry of this name
await chosen.run('stepp', { x });
// @ts-expect-error where it runs is said by devices
await openFor({ entries: { step: line } }, { on: 'cpu' });

const any: Program = opened, same: Trainer = trainer;
export { any, same };

const open = await openSizes({ entries: { run: graph('open', { inputs: { x: ['f32', ['batch', 'seq', 3]] }, params: { w: ['f32', [3]] } }, (_, { x, w }) => ({ y: x.matmul(w) })) } });
await open.prepare('run', { batch: 1, seq: 2 });
// @ts-expect-error a size is missing
await open.prepare('run', { batch: 1 });
// @ts-expect-error no symbol of this name
await open.prepare('run', { batch: 1, seq: 2, sec: 3 });
// @ts-expect-error no entry of this name
await open.prepare('rum', { batch: 1, seq: 2 });
(await open.run('run', { x: { shape: [1, 2, 3], data: new Float32Array(6) } }, { read: ['y'] })).reading satisfies Promise<unknown>;
const added = await open.add({ norm: graph('norm', { params: { w: ['f32', [3]] } }, (_, { w }) => ({ norm: w.square().sum() })) });
await added.run('norm');
// @ts-expect-error no entry of this name
await added.run('norn');

graph('distributions', { inputs: { x: ['f32', [3]] } }, (_, { x }) => {
  kl(normal(x, 1), normal(0, x));
  // @ts-expect-error distributions of two kinds
  kl(normal(x, 1), laplace(x, 1));
  // @ts-expect-error a parameter is missing
  normal(x);
  // @ts-expect-error a mixture has components
  mixture(x, x);
  return { y: mixture(x, normal(x, 1)).logProb(x), rate: poisson(x).rate };
});
