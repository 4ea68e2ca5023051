// A variational autoencoder: pictures of shapes pass through two numbers, and those become a map of all shapes.
import { graph, init, train } from '@rlx-go/rlx';
import * as nn from '@rlx-go/rlx/nn';
import { picture, plot } from './draw.js';

await init();
const rows = 128, side = 20, pixels = side * side, kinds = ['ring', 'square', 'cross'], across = 12;
const encode = (b, x) => b.scope('encoder', () => {
  const h = nn.linear(nn.linear(x, 128).silu(), 64).silu();
  return [nn.linear(h, 2), nn.linear(h, 2)]; // mean and logarithm of the variance
});
const decode = (b, z) => b.scope('decoder', () => nn.linear(nn.linear(nn.linear(z, 64).silu(), 128).silu(), pixels));

const model = graph('vae', (b) => {
  const x = b.input('x', 'f32', [rows, pixels]);
  const [mean, spread] = encode(b, x);
  const z = mean.add(spread.mul(0.5).exp().mul(b.input('key', 'u32', [2]).randomNormal({ shape: [rows, 2] })));
  const guess = decode(b, z);
  const miss = guess.softplus().sub(guess.mul(x)).sum([1]).mean(); // cross-entropy with the true brightness
  const surplus = mean.square().add(spread.exp()).sub(spread).sub(1).sum([1]).mean().mul(0.5); // Kingma and Welling, 2013
  b.output('places', mean);
  b.output('loss', miss.add(surplus));
});
const map = graph('map', (b) => b.output('made', decode(b, b.input('z', 'f32', [across * across, 2])).sigmoid()));

const shape = (kind, size, x, y) => { // brightness at a place, with a soft edge
  const u = Math.abs(x - side / 2 + 0.5), v = Math.abs(y - side / 2 + 0.5), r = Math.hypot(u, v);
  const distance = kind === 0 ? Math.abs(r - size) - 1.2 : kind === 1 ? Math.max(u, v) - size : Math.max(Math.min(u, v) - 1.2, Math.max(u, v) - size);
  return Math.min(1, Math.max(0, 0.5 - distance));
};
const batch = () => { // the kinds by turns, in every size
  const x = new Float32Array(rows * pixels);
  for (let row = 0; row < rows; row++) {
    const size = 2.5 + 6.5 * Math.random();
    for (let i = 0; i < pixels; i++) x[row * pixels + i] = shape(row % 3, size, i % side, Math.floor(i / side));
  }
  return { x, key: Uint32Array.from({ length: 2 }, () => 2 ** 32 * Math.random()) };
};
const far = 2.5, z = Float32Array.from({ length: 2 * across * across }, (_, i) => { // the places of the map, from the top left on
  const x = (i >> 1) % across, y = Math.floor((i >> 1) / across);
  return 2 * far * (i % 2 ? 0.5 - y / (across - 1) : x / (across - 1) - 0.5);
});
const sheet = (made) => Float32Array.from({ length: made.length }, (_, i) => { // the pictures side by side
  const x = i % (across * side), y = Math.floor(i / (across * side));
  return made[(Math.floor(y / side) * across + Math.floor(x / side)) * pixels + (y % side) * side + x % side];
});

const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 4e-3, seed: 1, entries: { map } });
for (let round = 1; round <= 24; round++) {
  await trainer.run({ steps: 25, batches: batch });
  const { reading } = await trainer.program.run('map', { z }, { read: ['made'] });
  const { values: { made } } = await reading, { values: { places } } = await (await trainer.step(batch(), { read: ['places'] })).reading;
  picture('The map of shapes', { width: across * side, height: across * side, data: sheet(made), range: [0, 1] });
  const of = (kind, at) => places.filter((_, i) => (i >> 1) % 3 === kind && i % 2 === at);
  plot('Where shapes lie on it', Object.fromEntries(kinds.map((name, kind) => [name, { x: of(kind, 0), y: of(kind, 1), dots: true }])), { x: [-far, far], y: [-far, far] });
}
trainer.program.close();
