// How long the tasks of a page's main thread are, in time that the thread itself was running:
// on a busy machine wall time depends on other processes.

/** The processes that have shown frames of the page: a trace has those of the browser's own pages, too, whose tasks are long. */
function processesOf(events) {
  const frames = events.filter(({ name }) => name === 'TracingStartedInBrowser').flatMap(({ args }) => args.data.frames).map(({ processId }) => processId);
  const loaded = events.filter(({ name, args }) => name === 'CommitLoad' && !args.data.url.startsWith('chrome')).map(({ pid }) => pid);
  return new Set([...frames, ...loaded]);
}

/** Begins to trace a page. */
export async function traceTasks(page) {
  const session = await page.context().newCDPSession(page), events = [];
  session.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'] } });
  return {
    /** Ends tracing and gives the longest task: its milliseconds, and its parts. */
    async longest() {
      const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
      await session.send('Tracing.end');
      await complete;
      const pages = processesOf(events);
      const main = new Set(events.filter(({ pid, name, args }) => pages.has(pid) && name === 'thread_name' && args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`));
      const own = events.filter(({ pid, tid, ph }) => main.has(`${pid} ${tid}`) && ph === 'X');
      const tasks = own.filter(({ name }) => name === 'RunTask' || name === 'ThreadControllerImpl::RunTask');
      if (tasks.length < 10) throw new Error('the trace has no tasks');
      const { ts, dur, tdur, pid } = tasks.reduce((most, task) => (task.tdur ?? 0) > (most.tdur ?? 0) ? task : most);
      const inside = own.filter((event) => event.pid === pid && event.ts >= ts && event.ts + event.dur <= ts + dur && event.tdur > 1000 && !event.name.includes('RunTask'));
      return { ms: tdur / 1000, what: inside.sort((a, b) => b.tdur - a.tdur).slice(0, 6).map(({ name, tdur: time }) => `${name} ${(time / 1000).toFixed(1)}`).join(', ') };
    },
  };
}

/**
 * Does something with a page and returns the longest task of its main thread meanwhile. Where that takes `limit` milliseconds
 * or more it is done again, up to three times, and the least counts: a virtual machine that gives its processor to another one counts
 * that time as the thread's. `act` gets the number of the attempt, from 0.
 */
export async function longestTask(page, act, limit = 16) {
  let least = { ms: Infinity };
  for (let attempt = 0; attempt < 3 && least.ms >= limit; attempt++) {
    const tasks = await traceTasks(page);
    await act(attempt);
    const longest = await tasks.longest();
    if (longest.ms < least.ms) least = longest;
  }
  return { ...least, text: `a task of the main thread took ${least.ms.toFixed(1)} ms of it: ${least.what}` };
}
