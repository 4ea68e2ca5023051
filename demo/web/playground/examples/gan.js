// A generative adversarial network: one network makes points, another judges them, and both learn.
import { graph, init, program, initialParams } from '@rlx-go/rlx';
import * as nn from '@rlx-go/rlx/nn';
import { plot } from './draw.js';

await init();
const rows = 256;
const mlp = (b, name, x, outputs) => b.scope(name, () => nn.linear(nn.linear(nn.linear(x, 48).leakyRelu(), 48).leakyRelu(), outputs));
const generator = (b) => mlp(b, 'generator', b.input('noise', 'f32', [rows, 4]), 2);
const judge = (b, x) => nn.shared(b, () => mlp(b, 'judge', x, 1)); // one network for both kinds of points

const judging = graph('judging', (b) => {
  const real = judge(b, b.input('real', 'f32', [rows, 2])), made = judge(b, generator(b).stopGradient());
  b.output('loss', real.neg().softplus().mean().add(made.softplus().mean()));
});
const making = graph('making', (b) => {
  const points = generator(b);
  b.output('points', points);
  b.output('loss', judge(b, points).neg().softplus().mean());
});
const game = await program({ entries: {
  judge: judging.step({ name: 'judge', optimizer: { kind: 'adam', beta1: 0.5 }, frozen: ['generator'] }),
  make: making.step({ name: 'make', optimizer: { kind: 'adam', beta1: 0.5 }, frozen: ['judge'] }),
} });
await game.load({ ...initialParams(judging, {}, 1), ...initialParams(making, {}, 1) }, { allowMissing: true });

const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
const ring = () => { // eight heaps on a circle
  const data = new Float32Array(2 * rows);
  for (let i = 0; i < rows; i++) {
    const angle = Math.PI / 4 * Math.floor(8 * Math.random());
    data[2 * i] = 2 * Math.cos(angle) + 0.08 * normal();
    data[2 * i + 1] = 2 * Math.sin(angle) + 0.08 * normal();
  }
  return data;
};
const noise = () => Float32Array.from({ length: 4 * rows }, normal);
const pairs = (data) => ({ x: data.filter((_, i) => i % 2 === 0), y: data.filter((_, i) => i % 2 === 1) });

for (let step = 1; step <= 2000; step++) {
  const real = ring();
  await game.run('judge', { real, noise: noise(), lr: 1e-3 });
  const { reading } = await game.run('make', { noise: noise(), lr: 1e-3 }, { read: ['points'] });
  if (step % 50 > 0) continue;
  const { values } = await reading;
  plot('Points', { real: { ...pairs(real), dots: true }, made: { ...pairs(values.points), dots: true } }, { x: [-3, 3], y: [-3, 3] });
}
game.close();
