/**
 * Opens plans that a bundler's plug-in compiled from calls of `ahead`. The code that the plug-in writes imports it.
 *
 * @module
 */

export { fetched, type Made, type MadeOptions } from './compile/made.js';
