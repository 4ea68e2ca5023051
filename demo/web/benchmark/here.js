// One job of the benchmark on the home page, by the libraries that train.

import { siteJobs } from '../bench/jobs.js';
import { fetchOK } from '../page.js';
import { runContest } from './contest.js';
import { openPeer } from './peer.js';

/** Training steps with a fresh batch each. */
const job = siteJobs.small.find(({ kind }) => kind === 'mlp');

/**
 * Times the job: calls `begin` with its title and the libraries, in order, then `report` with a library's name and its
 * outcome, as contest.js has it.
 */
export async function measureHere(begin, report, signal) {
  const listed = await (await fetchOK(new URL('../bench/peers.json', import.meta.url))).json();
  const peers = listed.filter(({ trains, gzip }) => gzip !== undefined && trains);
  begin(`Training a network, ${job.options.layers.join('-')}, batch ${job.options.batch}`, peers);
  await runContest({
    peers, jobs: [job], rounds: 3, signal, open: (peer) => openPeer(peer, signal),
    report({ peer, state }) { report(peer, state); },
  });
}
