// Two moons, and the line that a network draws between them while it learns: in TypeScript.
import { batches, graph, type HostTensor, init, train, type Value } from '@rlx-go/rlx';
import * as nn from '@rlx-go/rlx/nn';
import { picture } from './draw.js';

await init();
const side = 48, points = 400;
const network = (x: Value): Value => nn.linear(nn.linear(nn.linear(x, 32).gelu(), 32).gelu(), 1).reshape([-1]);
// With declarations TypeScript knows what the graphs take and give: try to misspell one.
const model = graph('moons', { inputs: { x: ['f32', [100, 2]], moon: ['f32', [100]] } }, (b, { x, moon }) => ({
  loss: network(x).bceWithLogits(moon).mean(),
}));
const map = graph('map', { inputs: { x: ['f32', [side * side, 2]] }, outputs: { p: ['f32', [side * side]] } }, (b, { x }) => ({
  p: network(x).sigmoid(),
}));

const x = new Float32Array(2 * points), moon = new Float32Array(points);
for (let i = 0; i < points; i++) {
  const angle = Math.PI * Math.random(), noise = () => 0.2 * (Math.random() - 0.5);
  moon[i] = i % 2;
  x[2 * i] = (moon[i] ? 1 - Math.cos(angle) : Math.cos(angle)) + noise();
  x[2 * i + 1] = (moon[i] ? 0.5 - Math.sin(angle) : Math.sin(angle)) + noise();
}
const left = -1.5, top = 1.5, wide = 4, high = 3; // what the picture shows
const grid = Float32Array.from({ length: 2 * side * side }, (_, i) => {
  const at = i >> 1;
  return i % 2 ? top - high * Math.floor(at / side) / side : left + wide * (at % side) / side;
});
interface Dots { x: number[]; y: number[]; group: Float32Array }
const dots: Dots = { x: [], y: [], group: moon };
for (let i = 0; i < points; i++) {
  dots.x.push((x[2 * i]! - left) / wide);
  dots.y.push((top - x[2 * i + 1]!) / high);
}

const data = { x: { dtype: 'f32', shape: [points, 2], data: x }, moon: { dtype: 'f32', shape: [points], data: moon } } satisfies Record<string, HostTensor>;
const trainer = await train(model, { optimizer: { kind: 'adamw' }, rate: 0.01, seed: 3, entries: { map } });
for (let round = 0; round < 40; round++) {
  await trainer.run({ steps: 10, batches: batches(data, { size: 100, shuffle: round }) });
  const { reading } = await trainer.program.run('map', { x: { dtype: 'f32', shape: [side * side, 2], data: grid } }, { read: ['p'] });
  picture('The moon it expects where', { width: side, height: side, data: (await reading).values.p, range: [0, 1], dots });
}
trainer.program.close();
