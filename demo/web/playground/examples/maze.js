// Reinforcement learning: agents in a maze try steps by chance, and learn those that lead to the goal (actor and critic).
import { graph, init, train } from '@rlx-go/rlx';
import { picture, plot } from './draw.js';

await init();
const maze = [
  '........#.......',
  '.######.#.#####.',
  '.#....#.#.#...#.',
  '.#.##.#.#.#.#.#.',
  '.#.##.#...#.#.#.',
  '.#..#.#####.#.#.',
  '.##.#.......#...',
  '....#######.####',
  '.####..G..#.....',
  '.#....###.#####.',
  '.#.####.#.......',
  '.#......#.#####.',
  '.######.#.#...#.',
  '......#.#.#.#.#.',
  '.####.#...#.#.#.',
  '......#####.#...',
];
const side = 16, cells = side * side, rows = 384, steps = 64, kept = 0.97;
const at = (cell) => maze[Math.floor(cell / side)][cell % side], goal = maze.join('').indexOf('G');
const open = Array.from({ length: cells }, (_, i) => i).filter((cell) => at(cell) === '.');
const ways = [[0, -1], [1, 0], [0, 1], [-1, 0]];
const next = Int32Array.from({ length: 4 * cells }, (_, i) => { // the cell after a step: the same before a wall, and at the goal
  const cell = i >> 2, x = cell % side + ways[i % 4][0], y = Math.floor(cell / side) + ways[i % 4][1];
  return x < 0 || y < 0 || x >= side || y >= side || cell === goal || maze[y][x] === '#' ? cell : y * side + x;
});

const model = graph('maze', (b) => {
  const policy = b.param('policy', 'f32', [cells, 4], 0), worth = b.param('worth', 'f32', [cells], 0);
  const moves = b.constant('i32', [4 * cells], next);
  const dice = b.input('key', 'u32', [2]).randomGumbel({ shape: [steps, rows, 4] });
  // Each agent walks: the policy plus Gumbel noise is largest at a way drawn from the policy.
  const { carries: [last], ys: [path, taken] } = b.scan({ carries: [b.input('start', 'i32', [rows])], xs: [dice] }, (_, __, [cell], [luck]) => {
    const way = policy.stopGradient().take(cell).add(luck).argmax({ axis: 1, dtype: 'i32' });
    return { carries: [moves.take(cell.mul(4).add(way))], ys: [cell, way] };
  });
  const isGoal = (cell) => cell.eq(goal).convert('f32'), walking = isGoal(path).neg().add(1);
  // Backwards, what a step is worth: 1 at the goal, a little less for each step before, and the critic's guess at the end.
  const guess = worth.take(path), end = isGoal(last);
  const { ys: [gain] } = b.scan({ carries: [end.add(end.neg().add(1).mul(worth.take(last))).stopGradient()], xs: [path], reverse: true }, (_, __, [later], [cell]) => {
    const now = isGoal(cell).add(isGoal(cell).neg().add(1).mul(later).mul(kept));
    return { carries: [now], ys: [now] };
  });
  const better = gain.sub(guess), chance = policy.take(path).logSoftmax(2);
  const actor = chance.takeAlongAxis(taken.reshape([steps, rows, 1]), 2).reshape([steps, rows]).mul(better.stopGradient()).neg();
  const doubt = chance.exp().mul(chance).sum([2]); // less entropy costs a little, so that agents go on trying
  b.output('loss', actor.add(better.square()).add(doubt.mul(0.003)).mul(walking).mean());
  b.output('reached', end.mean());
  b.output('worths', worth);
  b.output('scores', policy);
});
const batch = () => ({
  start: Int32Array.from({ length: rows }, () => open[Math.floor(open.length * Math.random())]),
  key: Uint32Array.from({ length: 2 }, () => 2 ** 32 * Math.random()),
});
const walk = (scores, cell) => { // the likeliest way, from a cell on
  const path = [cell];
  for (let step = 0; step < 96 && cell !== goal; step++) {
    const four = [...scores.subarray(4 * cell, 4 * cell + 4)];
    path.push(cell = next[4 * cell + four.indexOf(Math.max(...four))]);
  }
  return path;
};

const trainer = await train(model, { optimizer: { kind: 'adam' }, rate: 0.05, seed: 1 }), rounds = [], shares = [];
for (let round = 1; round <= 40; round++) {
  await trainer.run({ steps: 9, batches: batch });
  const { values: { reached, worths, scores } } = await (await trainer.step(batch(), { read: ['reached', 'worths', 'scores'] })).reading;
  rounds.push(10 * round);
  shares.push(reached[0]);
  const paths = [0, cells - side, cells - 1].flatMap((corner) => walk(scores, corner));
  picture('What a cell is worth, and the ways from three corners', {
    width: side, height: side, range: [0, 1], data: Float32Array.from(worths, (v, cell) => cell === goal ? 1 : at(cell) === '#' ? 0 : 0.15 + 0.85 * v),
    dots: { x: paths.map((cell) => (cell % side + 0.5) / side), y: paths.map((cell) => (Math.floor(cell / side) + 0.5) / side), group: paths.map(() => 1) },
  });
  plot('Agents that reach the goal', { share: { x: rounds, y: shares } }, { y: [0, 1] });
}
trainer.program.close();
