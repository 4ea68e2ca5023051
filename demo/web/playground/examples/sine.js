// A small network learns a wave from noisy points.
import { batches, graph, init, train } from '@rlx-go/rlx';
import { plot } from './draw.js';

await init();
const network = (b, x) => {
  const first = x.linear(b.param('w1', 'f32', [1, 16]), b.param('b1', 'f32', [16])).tanh();
  const second = first.linear(b.param('w2', 'f32', [16, 16]), b.param('b2', 'f32', [16])).tanh();
  return second.linear(b.param('w3', 'f32', [16, 1]), b.param('b3', 'f32', [1]));
};
const model = graph('wave', (b) => {
  const x = b.input('x', 'f32', [64, 1]), y = b.input('y', 'f32', [64, 1]);
  b.output('loss', network(b, x).sub(y).square().mean());
});
const predict = graph('predict', (b) => b.output('y', network(b, b.input('x', 'f32', [100, 1]))));

const n = 256, xs = Float32Array.from({ length: n }, (_, i) => 6 * i / n - 3);
const ys = xs.map((x) => Math.sin(2 * x) + 0.15 * Math.sin(1000 * x)); // as good as noise
const column = (data) => ({ dtype: 'f32', shape: [data.length, 1], data });
const line = Float32Array.from({ length: 100 }, (_, i) => 6 * i / 99 - 3);

const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 0.01, seed: 1, entries: { predict } });
for (let round = 0; round < 30; round++) {
  await trainer.run({ steps: 50, batches: batches({ x: column(xs), y: column(ys) }, { size: 64, shuffle: round }) });
  const { reading } = await trainer.program.run('predict', { x: column(line) }, { read: ['y'] });
  plot('What it has learned', { data: { x: xs, y: ys, dots: true }, network: { x: line, y: (await reading).values.y } }, { y: [-1.5, 1.5] });
}
console.log(`${trainer.steps} steps on ${trainer.program.device.description}`);
trainer.program.close();
