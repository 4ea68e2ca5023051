// Tuning: measures on the page's device which schedule of each group of a job is the fastest.

import { describe, type DeviceOptions, requestAdapter, requestDevice } from '../gpu/device.js';
import { openProgram } from '../runtime/open.js';
import { checkOptions, RlxError } from '../values/errors.js';
import { call, type Choices, type Group, type Job, requirementsOf } from './compiler.js';
import { type TuneResult, TuneStore } from './tune-store.js';

/** A progress report of tuning. */
export interface TuneOptions {
  /** Called for each group of kernels that was measured. */
  onMeasured?: (measured: Measured) => void;
  /**
   * Called with an error of kind `store` if results cannot be written or read: then all groups, or the one named,
   * are measured now and the next time. By default it logs a warning to the console.
   */
  onProblem?: (problem: RlxError) => void;
}

/** A group of kernels that was measured. */
export interface Measured extends TuneResult {
  /** The name of its kernels. */
  name: string;
}

/** The share of the untuned time that another schedule must save, above the noise of a few percent. */
const minSaving = 0.03;
/** The length of a measured run, in milliseconds: submission and completion take one or two. */
const targetMs = 10;
/** The maximum repetitions per run, and the number of runs; the fastest counts. */
const maxRepetitions = 256, repeats = 3;

/**
 * Compiles a job with the fastest schedules on a device. Stored results are not measured again. Rejects with an
 * {@link RlxError} of kind `device` without a GPU, `lost` if measuring loses the device, and otherwise as
 * compiling does.
 */
export async function compileTuned(job: Job, tune: TuneOptions, where: DeviceOptions): Promise<Uint8Array<ArrayBuffer>> {
  checkOptions('tune', tune, 'onMeasured onProblem');
  const bench = await openBench(job, where);
  const store = await TuneStore.open(bench.name, tune.onProblem ?? ((problem) => console.warn(problem)));
  let choices: Choices | undefined;
  try {
    choices = await call('choices', job);
    const { tuning, groups } = choices, chosen: number[] = [];
    for (const [i, group] of groups.entries()) chosen.push(await choose(bench, store, tuning, i, group, tune));
    return await call('tuned', tuning, chosen);
  } finally {
    if (choices) void call('forget', choices.tuning).catch(() => {}); // a compiler that failed holds nothing
    store.close();
    bench.close();
  }
}

/** The number of the schedule for a group: stored, or measured now. */
async function choose(bench: Bench, store: TuneStore, tuning: number, i: number, group: Group, { onMeasured }: TuneOptions): Promise<number> {
  const known = await store.get(group);
  if (known) return group.schedules.indexOf(known.schedule);
  const found = await measure(bench, tuning, i, group);
  if (found.tuned < Infinity) await store.put(group, found);
  onMeasured?.({ name: group.name, ...found });
  return group.schedules.indexOf(found.schedule);
}

/** Times all schedules of a group. Those that the device cannot run are skipped. */
async function measure(bench: Bench, tuning: number, i: number, { schedules }: Group): Promise<TuneResult> {
  const best: TuneResult = { schedule: schedules[0]!, untuned: Infinity, tuned: Infinity };
  let times = 0; // the same count for all, so that submission overhead affects all times alike
  for (const [k, schedule] of schedules.entries()) {
    let trial: Trial | undefined;
    try {
      trial = await bench.open(await call('trial', tuning, i, k));
      times ||= await repetitions(trial);
      const ms = await bestTime(trial, times, best.tuned);
      if (k === 0) best.untuned = ms;
      if (ms < (1 - minSaving) * best.tuned) Object.assign(best, { schedule, tuned: ms });
    } catch (reason) {
      if ((reason as RlxError).kind === 'lost') throw reason;
    } finally {
      trial?.close();
    }
  }
  return best;
}

/** A plan to measure: `run` returns the milliseconds for a number of repetitions. */
interface Trial { run(times: number): Promise<number>; close(): void }

/** The number of repetitions that makes a run long enough to be measured. */
async function repetitions(trial: Trial): Promise<number> {
  let times = 1;
  await trial.run(times); // the first run of anything takes longer
  while (times < maxRepetitions && await trial.run(times) < targetMs) times *= 4;
  return times;
}

/** The minimum milliseconds per repetition. One run is enough for a candidate far slower than the best. */
async function bestTime(trial: Trial, times: number, best: number): Promise<number> {
  await trial.run(1);
  let ms = Infinity;
  for (let i = 0; i < repeats && (i === 0 || ms < 2 * best); i++) ms = Math.min(ms, await trial.run(times) / times);
  return ms;
}

/** A device that trials run on, and its name in the store. */
interface Bench { name: string; open(plan: Uint8Array<ArrayBuffer>): Promise<Trial>; close(): void }

async function openBench({ limits }: Job, where: DeviceOptions): Promise<Bench> {
  const { gpu: device, owned, description } = where.device
    ? describe(where.device, where.device)
    : await requestDevice(await requestAdapter(where), requirementsOf(limits));
  return {
    name: description,
    async open(plan) {
      const program = await openProgram(plan, { device, maxSteps: maxRepetitions });
      return {
        async run(steps) {
          const begun = performance.now();
          await program.run('run', {}, { steps });
          await device.queue.onSubmittedWorkDone();
          return performance.now() - begun;
        },
        close: () => program.close(),
      };
    },
    close: () => { if (owned) device.destroy(); },
  };
}
