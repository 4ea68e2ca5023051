// The order in which libraries are timed, and what becomes of the times. It needs no page.

import { milliseconds } from '../page.js';

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** How many steps a turn has at most. */
const mostSteps = 512;

/** Takes more and more steps until a turn is long enough, which warms up, too; returns how many. */
async function stepsFor(time, turn) {
  for (let steps = 1; ; steps *= 2) {
    const ms = await time(steps) * steps;
    if (ms >= turn || steps >= mostSteps) return Math.min(mostSteps, Math.max(1, Math.ceil(steps * turn / Math.max(ms, 1e-3))));
  }
}

/**
 * Times jobs by several libraries in turns.
 * @param {object} contest
 * @param {{name: string}[]} contest.peers
 * @param {{name: string, kind: string, options: object, rate: (ms: number) => string}[]} contest.jobs
 * @param {(peer: object) => Promise<{start: Function, time: Function, end: Function, close: Function}>} contest.open
 * @param {number} [contest.rounds] turns of each library at each job
 * @param {number} [contest.turn] how long a turn is to take at least, in milliseconds
 * @param {() => Promise<boolean>} [contest.shown] waits until the page can be seen, and says whether it had to
 * @param {(event: object) => void} contest.report gets { job, peer, state } as it goes on: a text, or the outcome { ms, rate, loss } or { error }
 * @param {AbortSignal} contest.signal
 */
export async function runContest({ peers, jobs, open, rounds = 7, turn = 150, shown = async () => false, report, signal }) {
  const opened = new Map(), failed = new Map();
  const attempt = async (act) => {
    try {
      return { value: await act() };
    } catch (error) {
      signal.throwIfAborted();
      return { error: String(error?.message ?? error) };
    }
  };
  for (const peer of peers) {
    report({ peer: peer.name, state: 'loading' });
    const { value, error } = await attempt(() => open(peer));
    if (error === undefined) opened.set(peer.name, value);
    else failed.set(peer.name, error);
  }
  try {
    for (const job of jobs) await runJob(job);
  } finally {
    for (const one of opened.values()) one.close();
  }

  async function runJob(job) {
    const running = [];
    const fail = (peer, error) => report({ job: job.name, peer: peer.name, state: { error } });
    for (const peer of peers) {
      if (failed.has(peer.name)) {
        fail(peer, failed.get(peer.name));
        continue;
      }
      signal.throwIfAborted();
      await shown();
      report({ job: job.name, peer: peer.name, state: 'warming up' });
      const one = opened.get(peer.name);
      const { value, error } = await attempt(async () => {
        const { loss } = await one.start(job);
        return { loss, steps: await stepsFor((steps) => one.time(steps), turn) };
      });
      if (error === undefined) running.push({ peer, one, times: [], ...value });
      else fail(peer, error);
    }
    for (let round = 0; round < rounds; round++) {
      for (const entry of round % 2 ? running.toReversed() : [...running]) {
        signal.throwIfAborted();
        const { error } = await attempt(() => takeTurn(job, entry));
        if (error === undefined) continue;
        running.splice(running.indexOf(entry), 1);
        fail(entry.peer, error);
      }
    }
    const usual = median(running.flatMap(({ loss }) => loss ?? [])); // of those that have one
    for (const { peer, one, times, loss } of running) {
      await attempt(() => one.end());
      const ms = median(times), differs = loss !== undefined && !(Math.abs(loss - usual) <= 0.01 * Math.abs(usual));
      report({ job: job.name, peer: peer.name, state: differs ? { error: `its loss after three steps is ${loss}, that of others ${usual}: it is not the same job` } : { ms, rate: job.rate(ms), loss } });
    }
  }

  /** A turn during which the page was hidden does not count: browsers slow down what nobody sees. */
  async function takeTurn(job, { peer, one, steps, times }) {
    report({ job: job.name, peer: peer.name, state: `turn ${times.length + 1} of ${rounds}` });
    let ms;
    do {
      await shown();
      ms = await one.time(steps);
    } while (await shown());
    times.push(ms);
  }
}

/** The results as Markdown: a table of jobs and libraries. */
export function markdownOf({ jobs, peers, results, machine, browser }) {
  const cell = (state) => !state ? '' : state.error ? `– (${state.error.replaceAll('|', '\\|').replaceAll('\n', ' ').slice(0, 80)})` : `${state.rate} (${milliseconds(state.ms)})`;
  const row = (cells) => `| ${cells.join(' | ')} |`;
  const titles = peers.map(({ title, version }) => `${title}${version ? ` ${version}` : ''}`);
  return [
    `${machine}; ${browser}; ${new Date().toISOString().slice(0, 10)}.`, '',
    row(['job', ...titles]), row(['---', ...peers.map(() => '---')]),
    ...jobs.map((job) => row([job.name, ...peers.map(({ name }) => cell(results.get(`${job.name} ${name}`)))])), '',
  ].join('\n');
}
