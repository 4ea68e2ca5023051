/**
 * Programs whose sizes are open: a call binds them by the shapes of its inputs. A page that does not import it does not load it.
 *
 * @module
 */

export type { Size } from './sizes/entry.js';
export { type OpenModule, type OpenOptions, type OpenProgram, openSizes } from './sizes/program.js';
