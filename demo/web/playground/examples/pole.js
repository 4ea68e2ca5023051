// A controller learns to balance a pole, by derivatives through two seconds of physics.
import { graph, init, train } from '@rlx-go/rlx';
import * as nn from '@rlx-go/rlx/nn';
import { plot } from './draw.js';

await init();
const rows = 64, steps = 100, dt = 0.02;
const balance = (b, start) => {
  const weights = [b.param('w1', 'f32', [4, 16]), b.param('b1', 'f32', [16]), b.param('w2', 'f32', [16, 1]), b.param('b2', 'f32', [1])];
  const { ys } = b.scan({ carries: [start], length: steps }, (b, _, [state]) => {
    const [w1, b1, w2, b2] = weights, column = (i) => state.slice({ start: [0, i], size: [rows, 1], stride: [1, 1] });
    const force = state.linear(w1, b1).tanh().linear(w2, b2).tanh().mul(10);
    const [x, speed, angle, spin] = [0, 1, 2, 3].map(column);
    // A cart of 1 kg with a pole of 0.1 kg and 1 m (Barto, Sutton and Anderson, 1983).
    const push = force.add(spin.square().mul(angle.sin()).mul(0.05)).div(1.1);
    const turn = angle.sin().mul(9.8).sub(angle.cos().mul(push)).div(angle.cos().square().mul(-0.1 / 1.1).add(4 / 3).mul(0.5));
    const move = push.sub(turn.mul(angle.cos()).mul(0.05 / 1.1));
    const next = b.concatenate([x.add(speed.mul(dt)), speed.add(move.mul(dt)), angle.add(spin.mul(dt)), spin.add(turn.mul(dt))], 1);
    return { carries: [next], ys: [next] };
  });
  return ys[0]; // [steps, rows, 4]
};
const model = graph('balance', (b) => {
  const path = balance(b, b.input('start', 'f32', [rows, 4]));
  const cost = path.square().mul(b.constant('f32', [4], Float32Array.of(0.1, 0.01, 1, 0.01)));
  b.output('angle', path.slice({ start: [0, 0, 2], size: [steps, 1, 1], stride: [1, 1, 1] }).reshape([steps]));
  b.output('loss', cost.mean());
});
const start = () => ({ start: Float32Array.from({ length: 4 * rows }, () => 0.6 * (Math.random() - 0.5)) });

const trainer = await train(model, { optimizer: { kind: 'adam', clipNorm: 1 }, rate: 0.01, seed: 1 });
const seconds = Float32Array.from({ length: steps }, (_, i) => (i + 1) * dt), angles = {};
for (let round = 0; round < 40; round++) {
  await trainer.run({ steps: 10, batches: start });
  if (![0, 3, 10, 39].includes(round)) continue;
  const { reading } = await trainer.step({ start: new Float32Array(4 * rows).fill(0.2) }, { read: ['angle'] });
  angles[`after ${trainer.steps - 1} steps`] = { x: seconds, y: (await reading).values.angle };
  plot('Angle of the pole over two seconds', angles, { y: [-1.5, 1.5] });
}
trainer.program.close();
