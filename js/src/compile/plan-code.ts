import { crc32, decodePlan } from '../plan/decode.js';
import { RlxError } from '../values/errors.js';

/**
 * The code of a plan for the CPU, to be compiled before a program is opened, for its option `code`:
 * on hosts that cannot compile, such as workerd.
 */
export function planCode(file: Uint8Array | ArrayBuffer): Uint8Array<ArrayBuffer> {
  const plan = decodePlan(file), code = [plan, ...plan.variants].find((one) => one.code)?.code;
  if (!code) throw new RlxError('device', `plan ${plan.name} has no code for the CPU`, { op: plan.name });
  // The program checks for a custom section that has only a name: 0, the length of the section, the length of the name, the name.
  const name = new TextEncoder().encode(`rlx ${crc32(code)}`), made = new Uint8Array(code.length + name.length + 3);
  made.set(code);
  made.set([0, name.length + 1, name.length, ...name], code.length);
  return made;
}
