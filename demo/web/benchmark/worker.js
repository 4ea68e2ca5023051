// One library and its job, in a worker of its own: its memory goes with it.

let peer, job, start;

const calls = {
  async open({ name, wasm }) {
    const [{ open }, jobs] = await Promise.all([import(new URL(`../bench/${name}.js`, import.meta.url)), import(new URL('../bench/jobs.js', import.meta.url))]);
    ({ start } = jobs);
    const options = name === 'rlx'
      ? { rlx: await import(new URL('../rlx/index.js', import.meta.url)) }
      : { wasm: wasm && new URL(`../bench/${wasm}`, import.meta.url).href };
    peer = await open(options);
    return { version: peer.version };
  },
  async start({ kind, options }) {
    if (!peer[kind]) throw new Error(`${peer.name} has no such job`);
    const begun = await start(peer, { kind, options });
    job = begun.job;
    return { loss: begun.loss };
  },
  /** Milliseconds a step, of some steps and the wait for the last. */
  async time(steps) {
    const begin = performance.now();
    for (let i = 0; i < steps; i++) await job.step(i);
    await job.sync();
    return (performance.now() - begin) / steps;
  },
  end: () => job.dispose(),
};

globalThis.onmessage = async ({ data: { call, given } }) => {
  try {
    postMessage({ value: await calls[call](given) });
  } catch (error) {
    postMessage({ error: String(error?.message ?? error) });
  }
};
