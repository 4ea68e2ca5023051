// The averages of parameters that a training keeps.

import { averageOf } from '../graph/averages.js';
import { forInference, type Trainer } from '../runtime/trainer.js';
import { convertible } from '../safetensors/file.js';
import { need, RlxError } from '../values/errors.js';
import type { HostTensor } from '../values/tensor.js';

/**
 * The values of {@link Trainer.saveParams}, with the averages of the trained parameters in their place and under their names: those for
 * inference. They are of a step whose optimizer has `average`; `optimizer` is its `name`, if it has one. Before the first step averages
 * are zeros. Rejects with an {@link RlxError} of kind `unsupported` for a step that keeps none.
 *
 * ```ts
 * const trainer = await train(model, { optimizer: { kind: 'adamw', average: 0.999 }, rate: 1e-3 });
 * await fit(trainer, { data, epochs: 10 });
 * const file = encodeSafetensors(await averages(trainer));
 * ```
 */
export async function averages(trainer: Trainer<any>, optimizer?: string): Promise<Record<string, HostTensor>> {
  need(trainer?.program, 'missing', 'averages: the first argument', 'a Trainer', trainer);
  const all = await trainer.save(), params = forInference(all);
  let found = false;
  for (const [name, { dtype, shape }] of Object.entries(params)) {
    const average = all[averageOf(name, optimizer)];
    if (!average) continue;
    found = true;
    params[name] = { dtype, shape, data: convertible(name, average).as(dtype, { narrow: true }).data as HostTensor['data'] };
  }
  if (!found) throw new RlxError('unsupported', 'averages: the step keeps no averages of parameters: its optimizer must have `average`');
  return params;
}
