// The benchmark's turns, with libraries that are made up.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { markdownOf, runContest } from '../web/benchmark/contest.js';

const job = (name, kind = 'matmul') => ({ name, kind, options: {}, rate: (ms) => `${(1000 / ms).toFixed(0)} a second` });

/** Opens libraries of which each takes a time a step, and logs the turns with at least `enough` steps. */
function pretend(times, log, behave = {}) {
  return async ({ name }) => {
    if (behave[name]?.open) throw new Error(behave[name].open);
    return {
      async start({ name: of }) {
        if (behave[name]?.[of]) throw new Error(behave[name][of]);
        return { loss: behave[name]?.loss };
      },
      async time(steps) {
        log.push([name, steps]);
        return times[name]();
      },
      end() {},
      close() { log.push([name, 'closed']); },
    };
  };
}

/** Runs a contest and gives the outcome of each job and library. */
async function outcomes(options) {
  const results = new Map();
  await runContest({ rounds: 3, signal: new AbortController().signal, ...options, report: ({ job: of, peer, state }) => { if (of) results.set(`${of} ${peer}`, state); } });
  return results;
}

const peers = [{ name: 'a', title: 'A', version: '1' }, { name: 'b', title: 'B' }];

test('libraries take turns, forward and backward, of as many steps as fill one, and the median counts', async () => {
  const log = [], times = [10, 10, 10, 10, 10, 40, 5, 10], open = pretend({ a: () => times.shift(), b: () => 1 }, log);
  const results = await outcomes({ peers, jobs: [job('x')], open });
  assert.deepEqual(log.slice(-8), [['a', 15], ['b', 150], ['b', 150], ['a', 15], ['a', 15], ['b', 150], ['a', 'closed'], ['b', 'closed']]);
  assert.deepEqual(results.get('x a'), { ms: 10, rate: '100 a second', loss: undefined });
  assert.equal(results.get('x b').ms, 1);
});

test('what fails says why, and the others go on', async () => {
  const three = [...peers, { name: 'c', title: 'C' }], log = [];
  const open = pretend({ a: () => 20, b: () => 20, c: () => 20 }, log, { a: { open: 'no such file' }, b: { y: 'does not train', loss: 2.3 }, c: { loss: 2.3 } });
  const results = await outcomes({ peers: three, jobs: [job('x'), job('y')], open });
  assert.deepEqual(results.get('x a'), { error: 'no such file' });
  assert.equal(results.get('x b').ms, 20);
  assert.deepEqual(results.get('y b'), { error: 'does not train' });
  assert.equal(results.get('y c').loss, 2.3);
});

test('libraries without a loss do not make that of another one wrong', async () => {
  const three = [...peers, { name: 'c', title: 'C' }];
  const results = await outcomes({ peers: three, jobs: [job('x')], open: pretend({ a: () => 20, b: () => 20, c: () => 20 }, [], { c: { loss: 2.1 } }) });
  assert.deepEqual(three.map(({ name }) => results.get(`x ${name}`).ms), [20, 20, 20]);
});

test('a library whose loss is another than that of most did another job', async () => {
  const three = [...peers, { name: 'c', title: 'C' }];
  const open = pretend({ a: () => 20, b: () => 20, c: () => 20 }, [], { a: { loss: 2.3 }, b: { loss: 2.301 }, c: { loss: 2.1 } });
  const results = await outcomes({ peers: three, jobs: [job('x')], open });
  assert.equal(results.get('x a').ms, 20);
  assert.match(results.get('x c').error, /its loss after three steps is 2\.1, that of others 2\.3/);
});

test('a turn in which the page was hidden is taken again', async () => {
  const log = [], was = [false, false, true];
  await outcomes({ peers: [peers[0]], jobs: [job('x')], open: pretend({ a: () => 200 }, log), shown: async () => was.shift() ?? false });
  assert.equal(log.filter(([, steps]) => steps === 1).length, 1 + 3 + 1);
});

test('it can be stopped, and then closes what it opened', async () => {
  const stop = new AbortController(), log = [];
  const open = pretend({ a: () => { stop.abort(); return 1; }, b: () => 1 }, log);
  await assert.rejects(runContest({ peers, jobs: [job('x')], open, report() {}, signal: stop.signal }), { name: 'AbortError' });
  assert.deepEqual(log.slice(-2), [['a', 'closed'], ['b', 'closed']]);
});

test('results become Markdown', () => {
  const results = new Map([['x a', { ms: 1180.4, rate: '0.8 a second' }], ['x b', { error: 'a|b' }]]);
  const text = markdownOf({ jobs: [job('x')], peers, results, machine: 'A GPU', browser: 'Browser 1' });
  assert.match(text, /^A GPU; Browser 1; \d{4}-\d\d-\d\d\.\n\n\| job \| A 1 \| B \|\n\| --- \| --- \| --- \|\n\| x \| 0\.8 a second \(1,180 ms\) \| – \(a\\\|b\) \|\n$/);
});
