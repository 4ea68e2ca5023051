// Plans made by the compiler. One has a state as large as its buffer: `big` f32[384], to which the
// entry `add` adds 1, and whose double is the output `twice`.

import { compile, graph, init } from '../dist/index.js';

await init({ compileWorker: false });
const add = graph('add', (b) => {
  const next = b.state('big', 'f32', [384]).add(1);
  b.setState('big', next);
  b.output('twice', next.mul(2));
});
const file = await compile({ name: 'state', entries: { add } });

/** The bytes of the plan file. */
export const statePlan = () => file.slice();

/** The bytes of the state. */
export const stateBytes = 4 * 384;

const unary = (name, output, f) => graph(name, (b) => b.output(output, f(b.input('x', 'f32', [4]))));
const sharing = await compile({
  name: 'sharing',
  entries: { increment: unary('increment', 'first', (x) => x.add(1)), scale: unary('scale', 'second', (x) => x.mul(100)) },
});

/** The bytes of a plan whose entries' outputs, `first` x + 1 and `second` 100·x, lie in one place. */
export const sharingPlan = () => sharing.slice();
