// A network that obeys physics: it never sees the swing of a damped spring, only its equation.
import { graph, init, train } from '@rlx-go/rlx';
import { plot } from './draw.js';

await init();
const points = 200, end = 6, damping = 0.3; // u'' + damping u' + 4 u = 0, with u(0) = 1 and u'(0) = 0
const names = { w1: [1, 32], b1: [32], w2: [32, 32], b2: [32], w3: [32, 1], b3: [1] };
const paramsOf = (b) => Object.fromEntries(Object.entries(names).map(([name, shape]) => [name, b.param(name, 'f32', shape)]));
const network = ({ w1, b1, w2, b2, w3, b3 }, t) => t.linear(w1, b1).tanh().linear(w2, b2).tanh().linear(w3, b3);
// What begins right whatever the network gives: u(t) = 1 + t² n(t).
const swing = (params, t) => t.square().mul(network(params, t)).add(1);

const model = graph('spring', (b) => {
  const t = b.input('t', 'f32', [points, 1]), params = paramsOf(b);
  const u = (_, [t]) => [swing(params, t).sum()]; // a sum over points, whose gradient is that of each point
  const slope = (b, [t]) => [b.grad([t], u)[0].sum()];
  const [du] = b.grad([t], u), [ddu] = b.grad([t], slope);
  b.output('loss', ddu.add(du.mul(damping)).add(swing(params, t).mul(4)).square().mean());
});
const predict = graph('predict', (b) => b.output('u', swing(paramsOf(b), b.input('t', 'f32', [points, 1]))));

const times = Float32Array.from({ length: points }, (_, i) => end * i / (points - 1));
const frequency = Math.sqrt(4 - damping ** 2 / 4);
const exact = times.map((t) => Math.exp(-damping / 2 * t) * (Math.cos(frequency * t) + damping / 2 / frequency * Math.sin(frequency * t)));

const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 5e-3, seed: 1, entries: { predict } });
for (let round = 0; round < 60; round++) {
  const until = end * Math.min(1, (round + 10) / 45); // later times come in one after the other
  await trainer.run({ steps: 100, batches: () => ({ t: Float32Array.from({ length: points }, () => until * Math.random()) }) });
  const { reading } = await trainer.program.run('predict', { t: times }, { read: ['u'] });
  plot('The spring', { exact: { x: times, y: exact }, network: { x: times, y: (await reading).values.u } }, { y: [-1.5, 1.5] });
}
trainer.program.close();
