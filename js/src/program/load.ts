// Checks of the tensors that a program loads.

import type { Slot } from '../plan/plan.js';
import { checkOptions, unknownName } from '../values/errors.js';
import type { HostTensor, StoredTensor } from '../values/tensor.js';
import { checkDType, checkHost, missing } from './inputs.js';
import type { LoadOptions } from './program.js';

/**
 * The tensors to load, with their slots, converted to the slots' element types. Throws an {@link
 * RlxError}: `name` for a tensor without a slot, `missing` for a parameter without a tensor,
 * `dtype`.
 */
export function checkLoad(slots: Iterable<Slot>, tensors: Readonly<Record<string, StoredTensor>>, options?: LoadOptions): [Slot, HostTensor][] {
  checkOptions('load', options, 'allowExtra allowMissing');
  const given = new Map(Object.entries(tensors ?? {})), known = [...slots], found: [Slot, HostTensor][] = [];
  for (const slot of known) {
    const { name, role, dtype } = slot, tensor = given.get(name);
    if (given.delete(name)) {
      checkHost('load', name, tensor as HostTensor);
      const fit = tensor!.as?.(dtype, { bytes: true }) ?? tensor!;
      checkDType('load', slot, fit.dtype);
      found.push([slot, fit as HostTensor]);
    } else if (role === 'param' && !options?.allowMissing) {
      throw missing('load', slot);
    }
  }
  for (const [name] of options?.allowExtra ? [] : given) {
    throw unknownName('without allowExtra: the plan has no parameter or state', name, known.map((slot) => slot.name), 'load');
  }
  return found;
}
