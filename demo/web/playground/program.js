// A program of the playground as a module that a browser can load.

/** What a program may import, and where that is. */
const modules = {
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
};
const specifier = /(\bfrom\s*|\bimport\s*\(?\s*)(['"])([^'"\n]+)\2/g;

/**
 * Replaces the names of imported modules by their addresses. Lines stay where they are.
 * @param {string} source
 * @param {string | URL} base the address of this folder
 */
export const withAddresses = (source, base) => source.replace(specifier, (whole, keyword, quote, name) =>
  modules[name] ? `${keyword}${quote}${new URL(modules[name], base)}${quote}` : whole);

/** The line and column of the program at which an error was made, from its stack, or undefined. */
export function placeOf(stack, address) {
  const at = stack?.indexOf(address) ?? -1;
  const [, line, column] = at < 0 ? [] : /^:(\d+):(\d+)/.exec(stack.slice(at + address.length)) ?? [];
  return line && { line: Number(line), column: Number(column) };
}
