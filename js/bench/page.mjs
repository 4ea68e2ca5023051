// The page's side of a benchmark in a browser: run.mjs and chromium.mjs call these through the driver.

import { runJobs, sets, start, time } from './jobs.mjs';
import { peers } from './peers/index.mjs';

let peer, job;

globalThis.openPeer = async (name, options) => {
  const { open } = await peers[name]();
  peer = await open(options);
  return { peer: peer.name, version: peer.version };
};

globalThis.startJob = async (set, index) => {
  const started = await start(peer, sets[set][index]);
  job = started.job;
  return started.loss;
};

globalThis.timeJob = (timing) => time(job, timing);
globalThis.endJob = () => job.dispose();

/** Runs all jobs of a set by one peer, as node.mjs does. */
globalThis.runPeer = async (name, set, timing) => runJobs((await peers[name]()).open, sets[set], timing);
