// How long the tasks of a page's main thread are, in time that the thread itself was running:
// on a busy machine wall time depends on other processes.

/** The processes that have shown frames of the page: a trace has those of the browser's own pages, too, whose tasks are long. */
function processesOf(events) {
  const frames = events.filter(({ name }) => name === 'TracingStartedInBrowser').flatMap(({ args }) => args.data.frames).map(({ processId }) => processId);
  const loaded = events.filter(({ name, args }) => name === 'CommitLoad' && !args.data.url.startsWith('chrome')).map(({ pid }) => pid);
  return new Set([...frames, ...loaded]);
}

/** The milliseconds of {@link yardstick} on a thread of nominal speed, for which limits are given whatever machine runs a test. */
const nominal = 18;

let yardsticks = 0;

/** A script of new functions that run once, as do most functions of a page in the tasks that are measured. */
function yardstick() {
  const n = yardsticks++, calls = Array.from({ length: 1500 }, (_, i) => `(function f${n}_${i}(a) { const o = { x: a, y: [a + ${i}] }; for (const v of o.y) o.x += v; return o.x; })(${n});`);
  return `console.timeStamp('yardstick');\n${calls.join('\n')}`;
}

/** Begins to trace a page. */
export async function traceTasks(page) {
  const session = await page.context().newCDPSession(page), events = [];
  const measure = async () => {
    for (let i = 0; i < 2; i++) await session.send('Runtime.evaluate', { expression: yardstick() });
  };
  session.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  await session.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline'] } });
  await measure();
  return {
    /**
     * Ends tracing and gives the longest task: its parts, and its milliseconds on a thread of nominal speed. A slow machine, or
     * one whose cores are shared, lengthens the yardsticks before and after as it does the tasks between them.
     */
    async longest() {
      await measure();
      const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
      await session.send('Tracing.end');
      await complete;
      const pages = processesOf(events);
      const main = new Set(events.filter(({ pid, name, args }) => pages.has(pid) && name === 'thread_name' && args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`));
      const own = events.filter(({ pid, tid }) => main.has(`${pid} ${tid}`));
      const marks = own.filter(({ name, args }) => name === 'TimeStamp' && args.data.message === 'yardstick');
      const tasks = own.filter(({ ph, name }) => ph === 'X' && (name === 'RunTask' || name === 'ThreadControllerImpl::RunTask'));
      const holds = (task, { ts }) => ts >= task.ts && ts <= task.ts + task.dur;
      const yards = marks.map((mark) => tasks.find((task) => holds(task, mark))).filter(Boolean); // a trace may lose events
      if (yards.length < 2) throw new Error(`the trace has ${yards.length} yardsticks of 4`);
      const yard = yards.reduce((sum, { tdur }) => sum + tdur / 1000, 0) / yards.length, slowness = Math.max(1, yard / nominal);
      const others = tasks.filter((task) => !marks.some((mark) => holds(task, mark)));
      const longest = others.reduce((most, task) => (task.tdur ?? 0) > (most.tdur ?? 0) ? task : most);
      const parts = own.filter((event) => event.pid === longest.pid && holds(longest, event) && event.tdur > 1000 && !event.name.includes('RunTask'));
      const what = parts.sort((a, b) => b.tdur - a.tdur).slice(0, 6).map(({ name, tdur }) => `${name} ${(tdur / 1000).toFixed(1)}`).join(', ');
      return { ms: longest.tdur / 1000 / slowness, what: `${what}; before division by ${slowness.toFixed(2)}, as yardsticks take ${yard.toFixed(1)} ms` };
    },
  };
}

/**
 * Does something with a page and returns the longest task of its main thread meanwhile. Where that takes `limit` milliseconds
 * or more it is done again, up to five times, and the least counts: a virtual machine that gives its processor to another one counts
 * that time as the thread's. `act` gets the number of the attempt, from 0.
 */
export async function longestTask(page, act, limit = 16) {
  let least = { ms: Infinity };
  for (let attempt = 0; attempt < 5 && least.ms >= limit; attempt++) {
    const tasks = await traceTasks(page);
    await act(attempt);
    const longest = await tasks.longest();
    if (longest.ms < least.ms) least = longest;
  }
  return { ...least, text: `a task of the main thread took ${least.ms.toFixed(1)} ms of it: ${least.what}` };
}
