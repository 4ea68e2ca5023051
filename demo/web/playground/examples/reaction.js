// Two substances react and spread (Gray and Scott, 1984): patterns grow out of a few seeds.
import { graph, init, program } from '@rlx-go/rlx';
import { picture } from './draw.js';

await init();
const side = 128, feed = 0.037, kill = 0.06;
const react = graph('react', (b) => {
  const grid = [side, side];
  const spread = (v) => { // the Laplacian, around the edges
    const near = v.roll({ shift: 1, axis: 0 }).add(v.roll({ shift: -1, axis: 0 })).add(v.roll({ shift: 1, axis: 1 })).add(v.roll({ shift: -1, axis: 1 }));
    return near.sub(v.mul(4)).mul(0.25);
  };
  const { carries: [u, v] } = b.scan({ carries: [b.state('u', 'f32', grid), b.state('v', 'f32', grid)], length: 32 }, (_, __, [u, v]) => {
    const uvv = u.mul(v.square());
    return { carries: [
      u.add(spread(u).mul(0.8)).sub(uvv).add(u.neg().add(1).mul(feed)),
      v.add(spread(v).mul(0.4)).add(uvv).sub(v.mul(feed + kill)),
    ] };
  });
  b.setState('u', u);
  b.setState('v', v);
});
const s = await program({ entries: { react } });
const u = new Float32Array(side * side).fill(1), v = new Float32Array(side * side);
for (let seed = 0; seed < 12; seed++) {
  const x = Math.floor(Math.random() * (side - 6)), y = Math.floor(Math.random() * (side - 6));
  for (let i = 0; i < 36; i++) v[(y + Math.floor(i / 6)) * side + x + i % 6] = 0.5;
}
await s.load({ u: { dtype: 'f32', shape: [side, side], data: u }, v: { dtype: 'f32', shape: [side, side], data: v } });
for (let frame = 0; frame < 120; frame++) {
  const { reading } = await s.run('react', {}, { read: ['v'] });
  picture('The second substance', { width: side, height: side, data: (await reading).values.v, range: [0, 0.4] });
}
s.close();
