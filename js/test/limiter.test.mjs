// The number of runs in flight, by a clock of the test's: eight milliseconds of work, though completions come in bursts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { transform } from 'esbuild';

const { code } = await transform(readFileSync(new URL('../src/gpu/limiter.ts', import.meta.url), 'utf8'), { loader: 'ts', target: 'es2022' });
const { SubmissionLimiter } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

/** The most runs in flight in a second, after `completed` of them by a time. */
function mostInFlight(t, late, completed) {
  let now = 0, inFlight = 0, most = 0, owed = 0;
  t.mock.method(performance, 'now', () => now);
  const limiter = new SubmissionLimiter();
  const fill = () => {
    for (; !limiter.full; inFlight++) limiter.acquire();
    if (now > 100) most = Math.max(most, inFlight); // it has adapted
  };
  for (fill(); now < 1000; fill()) {
    owed += completed(now + late) - completed(now);
    now += late;
    const done = Math.min(Math.floor(owed), inFlight); // a device without work waits
    owed = Math.min(owed - done, 1);
    inFlight -= done;
    if (done) limiter.release(done);
  }
  return most;
}

for (const [each, late, want] of [[2.5, 0.1, 3], [2.5, 1.8, 4], [1, 1.8, 8], [0.5, 1.8, 16], [0.2, 1.8, 40], [0.04, 1.8, 64]]) {
  test(`runs of ${each} ms, reported every ${late} ms`, (t) => {
    const most = mostInFlight(t, late, (time) => time / each);
    assert.ok(Math.abs(most - want) <= Math.max(1, want / 8), `${most} in flight, not some ${want}`);
  });
}

test('a burst is no rate', (t) => {
  // One a millisecond for 8 ms, then none for 16: a third of that, as where a process that copies inputs takes turns with the device.
  const most = mostInFlight(t, 0.5, (time) => 8 * Math.floor(time / 24) + Math.min(time % 24, 8));
  assert.ok(most <= 5, `${most} in flight, as if the burst went on`);
});
