// A program of the playground as a module that a browser can load.

/** What a program may import, and where that is. */
export const modules = {
  '@rlx-go/rlx': 'rlx.js',
  '@rlx-go/rlx/cmplx': '../rlx/cmplx.js',
  '@rlx-go/rlx/dist': '../rlx/dist.js',
  '@rlx-go/rlx/fit': '../rlx/fit.js',
  '@rlx-go/rlx/image': '../rlx/image.js',
  '@rlx-go/rlx/losses': '../rlx/losses.js',
  '@rlx-go/rlx/nn': '../rlx/nn.js',
  '@rlx-go/rlx/pixels': '../rlx/pixels.js',
  '@rlx-go/rlx/runtime': '../rlx/runtime.js',
  '@rlx-go/rlx/safetensors': '../rlx/safetensors.js',
  '@rlx-go/rlx/signal': '../rlx/signal.js',
  '@rlx-go/rlx/sizes': '../rlx/sizes.js',
  '@rlx-go/rlx/special': '../rlx/special.js',
  '@rlx-go/rlx/stats': '../rlx/stats.js',
  './draw.js': 'draw.js',
  './begun.js': 'begun.js',
};
const specifier = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])([^'"\n]+)\2/g;

/**
 * Replaces the names of imported modules by their addresses. Lines stay where they are.
 * @param {string} source
 * @param {string | URL} base the address of this folder
 */
export const withAddresses = (source, base) => source.replace(specifier, (whole, keyword, quote, name) =>
  modules[name] ? `${keyword}${quote}${new URL(modules[name], base)}${quote}` : whole);

/** A program that nothing was done with: once all of it could be read, and all that it imports, the worker knows. */
export const asItIs = (source) => `${source}\nimport './begun.js';\n`;

/**
 * The line and column of the program at which an error was made, from its stack, or undefined.
 * @param {string | undefined} stack
 * @param {string} address of the module that runs
 * @param {number[][][]} [lines] the parts of its lines, where it was made from the program: column, 0, line and column in the program, from 0
 */
export function placeOf(stack, address, lines) {
  const at = stack?.indexOf(address) ?? -1;
  const [, line, column] = at < 0 ? [] : /^:(\d+):(\d+)/.exec(stack.slice(at + address.length)) ?? [];
  if (!line || !lines) return line && { line: Number(line), column: Number(column) };
  const parts = lines[line - 1] ?? [], part = parts.findLast(([from]) => from < column) ?? parts[0];
  return part && { line: part[2] + 1, column: part[3] + 1 };
}
