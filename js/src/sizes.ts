/**
 * Programs with open sizes: a call binds them by the shapes of its inputs. Pages that do not
 * import this module do not load it.
 *
 * @module
 */

export type { Size } from './sizes/graph.js';
export { type OpenModule, type OpenOptions, type OpenProgram, openSizes } from './sizes/program.js';
