// A network learns a picture by heart: it gets a place and gives the brightness there.
import { graph, init, train } from '@rlx-go/rlx';
import * as nn from '@rlx-go/rlx/nn';
import { picture } from './draw.js';

await init();
const side = 96, rows = 1024, waves = 64;
const brightness = (x, y) => { // the picture: rings, a bar, and a chequered corner
  const r = Math.hypot(x - 0.4, y - 0.45);
  if (x > 0.7 && y > 0.7) return (Math.floor(20 * x) + Math.floor(20 * y)) % 2;
  if (Math.abs(x + 0.6 * y - 1.05) < 0.03) return 1;
  return r < 0.35 ? 0.5 + 0.5 * Math.cos(60 * r) : 0.2 * y;
};
// Places as sines and cosines of random directions (Tancik et al., 2020): without them the picture stays a blur.
const directions = Float32Array.from({ length: 2 * waves }, () => 40 * (Math.random() + Math.random() + Math.random() - 1.5));
const network = (b, places) => {
  const angles = places.matmul(b.constant('f32', [2, waves], directions));
  let h = b.concatenate([angles.sin(), angles.cos()], 1);
  for (let layer = 0; layer < 2; layer++) h = nn.linear(h, 96).relu();
  return nn.linear(h, 1).sigmoid().reshape([-1]);
};
const model = graph('picture', (b) => {
  const guess = network(b, b.input('places', 'f32', [rows, 2]));
  b.output('loss', guess.sub(b.input('brightness', 'f32', [rows])).square().mean());
});
const whole = graph('whole', (b) => b.output('picture', network(b, b.input('places', 'f32', [side * side, 2]))));

const grid = Float32Array.from({ length: 2 * side * side }, (_, i) => (i % 2 ? Math.floor((i >> 1) / side) : (i >> 1) % side) / side);
picture('The picture', { width: side, height: side, range: [0, 1], data: Float32Array.from({ length: side * side }, (_, i) => brightness(grid[2 * i], grid[2 * i + 1])) });

const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 3e-3, seed: 1, entries: { whole } });
const batch = () => {
  const places = Float32Array.from({ length: 2 * rows }, Math.random);
  return { places, brightness: Float32Array.from({ length: rows }, (_, i) => brightness(places[2 * i], places[2 * i + 1])) };
};
for (let round = 0; round < 30; round++) {
  await trainer.run({ steps: 20, batches: batch });
  const { reading } = await trainer.program.run('whole', { places: grid }, { read: ['picture'] });
  picture('What the network remembers', { width: side, height: side, data: (await reading).values.picture, range: [0, 1] });
}
trainer.program.close();
