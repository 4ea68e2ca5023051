/**
 * Plan files with open sizes, for pages without the compiler: a call binds the sizes by the shapes of its inputs. Pages
 * that do not import this module do not load it.
 *
 * @module
 */

export { openSized, type SizedOptions } from './sizes/open-file.js';
export type { SizedProgram } from './sizes/family.js';
