// No learning at all: a loop in a graph draws the Mandelbrot set, as one submission to the GPU.
import { graph, init, program } from '@rlx-go/rlx';
import { picture } from './draw.js';

await init();
const width = 320, height = 240, turns = 60;
const set = graph('mandelbrot', (b) => {
  const zoom = b.input('zoom', 'f32');
  const axis = (i, n, size, at) => b.iota({ shape: [height, width], axis: i, dtype: 'f32' }).sub(n / 2).mul(size / n).mul(zoom).add(at);
  const cx = axis(1, width, 4, -0.743643), cy = axis(0, height, 3, 0.131825);
  const zero = cx.mul(0);
  const { carries: [, , count] } = b.scan({ carries: [zero, zero, zero], length: turns }, (_, __, [x, y, n]) => {
    const xx = x.square(), yy = y.square(), inside = xx.add(yy).lt(4);
    const next = (value, old) => inside.select(value, old);
    return { carries: [next(xx.sub(yy).add(cx), x), next(x.mul(y).mul(2).add(cy), y), n.add(inside.convert('f32'))] };
  });
  b.output('turns', count);
});
const s = await program({ entries: { set } });
for (let frame = 0; frame < 60; frame++) {
  const { reading } = await s.run('set', { zoom: 0.9 ** frame }, { read: ['turns'] });
  picture('How many turns until a point is gone', { width, height, data: (await reading).values.turns, range: [0, turns] });
}
s.close();
