import { RlxError } from '../values/errors.js';
import { crc32, decodePlan } from '../plan/decode.js';

/**
 * The code of a plan for the CPU, to be compiled before a session is opened, for its option `code`:
 * where code cannot be compiled at run time, as in workerd.
 */
export function planCode(file: Uint8Array | ArrayBuffer): Uint8Array<ArrayBuffer> {
  const plan = decodePlan(file), code = [plan, ...plan.variants].find((one) => one.code)?.code;
  if (!code) throw new RlxError('device', `plan ${plan.name} has no code for the CPU`, { op: plan.name });
  // The session looks for a section of WebAssembly that is only a name: 0, the bytes that follow, the bytes of the name.
  const name = new TextEncoder().encode(`rlx ${crc32(code)}`), made = new Uint8Array(code.length + name.length + 3);
  made.set(code);
  made.set([0, name.length + 1, name.length, ...name], code.length);
  return made;
}
