// Diffusion: a network learns to take noise away, and then makes points of a spiral out of noise alone.
import { graph, init, train } from '@rlx-go/rlx';
import * as nn from '@rlx-go/rlx/nn';
import { plot } from './draw.js';

await init();
const rows = 512, turns = 40;
// How much of the signal is left after each turn of noise.
const left = Float32Array.from({ length: turns }, (_, t) => Math.cos(Math.PI / 2 * (t + 1) / (turns + 1)) ** 2);
const waves = (t) => { // a time as eight waves
  const angle = t.mul(t.builder.constant('f32', [1, 4], Float32Array.of(1, 2, 4, 8)));
  return [angle.sin(), angle.cos()];
};
const network = (b, points, time) => {
  let h = b.concatenate([points, ...waves(time)], 1);
  for (let layer = 0; layer < 3; layer++) h = nn.linear(h, 96).silu();
  return nn.linear(h, 2);
};
const mix = (b, signal, noise, share) => signal.mul(share.sqrt()).add(noise.mul(share.neg().add(1).sqrt()));

const learn = graph('learn', (b) => {
  const points = b.input('points', 'f32', [rows, 2]), noise = b.input('noise', 'f32', [rows, 2]), turn = b.input('turn', 'i32', [rows]);
  const share = b.constant('f32', [turns], left).take(turn).reshape([rows, 1]);
  const guess = network(b, mix(b, points, noise, share), turn.convert('f32').reshape([rows, 1]).div(turns));
  b.output('loss', guess.sub(noise).square().mean());
});
const denoise = graph('denoise', (b) => { // one turn back, without randomness (DDIM)
  const points = b.input('points', 'f32', [rows, 2]), now = b.input('now', 'f32'), before = b.input('before', 'f32');
  const time = points.slice({ start: [0, 0], size: [rows, 1], stride: [1, 1] }).mul(0).add(b.input('time', 'f32'));
  const noise = network(b, points, time);
  const clean = points.sub(noise.mul(now.neg().add(1).sqrt())).div(now.sqrt());
  b.output('next', mix(b, clean, noise, before));
});

const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
const noise = () => Float32Array.from({ length: 2 * rows }, normal);
const spiral = () => {
  const data = new Float32Array(2 * rows);
  for (let i = 0; i < rows; i++) {
    const angle = 3 * Math.PI * Math.sqrt(Math.random());
    data[2 * i] = 0.2 * angle * Math.cos(angle);
    data[2 * i + 1] = 0.2 * angle * Math.sin(angle);
  }
  return data;
};
const pairs = (data) => ({ x: data.filter((_, i) => i % 2 === 0), y: data.filter((_, i) => i % 2 === 1), dots: true });

const trainer = await train(learn, { optimizer: { kind: 'adam' }, rate: 2e-3, seed: 1, entries: { denoise } });
for (let round = 1; round <= 20; round++) {
  const batch = () => ({ points: spiral(), noise: noise(), turn: Int32Array.from({ length: rows }, () => turns * Math.random()) });
  await trainer.run({ steps: 100, batches: batch });
  let points = noise();
  for (let turn = turns - 1; turn >= 0; turn--) {
    const step = { points, now: left[turn], before: turn > 0 ? left[turn - 1] : 1, time: turn / turns };
    const { values } = await (await trainer.program.run('denoise', step, { read: ['next'] })).reading;
    points = Float32Array.from(values.next);
  }
  plot('Points', { spiral: pairs(spiral()), made: pairs(points) }, { x: [-2.5, 2.5], y: [-2.5, 2.5] });
}
trainer.program.close();
