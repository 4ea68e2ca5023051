// Loops without a trip count on a GPU: the host reads their conditions. Pages whose plans have none do not load this file.

import type { Binding, Step } from '../plan/plan.js';
import { rowBytes } from '../plan/validate.js';
import type { Executable, ExecutableEntry } from './executable.js';
import type { Recorder } from './recorder.js';
import { type ReadRequest, readRequest } from './staging.js';

/**
 * The iterations of a loop that are recorded between two reads of its condition: the number
 * doubles from the minimum to the maximum. An iteration too many costs empty dispatches, a read a round trip.
 */
const minIterations = 8, maxIterations = 64;

/**
 * Records some steps of a program whose rows of scalars begin at `row`. At each check of a loop without a trip count it
 * calls `submit`, to submit the commands recorded so far and a read of the condition.
 */
export async function record({ gpu, buffers }: Executable, recorder: Recorder, { entry, dispatches, stride }: ExecutableEntry, row: number, steps: number, submit: (read: ReadRequest) => void): Promise<void> {
  async function going({ buffer, offset }: Binding): Promise<boolean> {
    const read = readRequest([{ name: '', dtype: 'u32', shape: [], buffer: buffers[buffer]!, offset, bytes: 4 }]);
    submit(read);
    const { values } = await read.promise;
    recorder.encoder = gpu.createCommandEncoder();
    return values['']![0] !== 0;
  }

  async function recordList(list: readonly Step[], depth: number): Promise<void> {
    for (const step of list) {
      if (step.kind !== 'repeat') {
        recorder.record([step], dispatches);
        continue;
      }
      const { condition } = step;
      let count = condition ? minIterations : step.count;
      do {
        for (let i = 0; i < count; i++) {
          recorder.at[depth] = condition ? 0 : i * rowBytes;
          await recordList(i % 2 ? step.odd : step.steps, depth + 1);
        }
        count = Math.min(2 * count, maxIterations);
      } while (condition && await going(condition));
    }
  }

  for (let k = 0; k < steps; k++) {
    recorder.at[0] = (row + k) * stride;
    await recordList(entry.steps, 1);
  }
}
