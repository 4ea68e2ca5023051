/**
 * A plug-in for Vite, Rollup and Rolldown (`rlx`) and one for esbuild (`esbuild`). They run
 * modules `NAME.rlx.ts` at build time, and replace each export made by `ahead` by its plan, a file
 * next to the bundle.
 *
 * ```js
 * import { rlx } from '@rlx-go/rlx/vite';
 * export default { plugins: [rlx()] };
 * ```
 *
 * @module
 */

import { createHash } from 'node:crypto';
import { unlink, writeFile } from 'node:fs/promises';
import { createRequire, SourceMap, type SourceMapPayload } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A plug-in of Vite, Rollup or Rolldown. */
export interface RlxPlugin {
  name: string;
  enforce: 'pre';
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the types of four bundlers
  [hook: string]: any;
}

/** A plug-in of esbuild. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- esbuild's type
export interface RlxEsbuildPlugin { name: string; setup(build: any): void }

/** A module that was run: its code with plans for names. */
interface Built { plans: Map<string, Uint8Array>; code(urlOf: (name: string) => string): string }

const modules = /\.rlx\.[cm]?[jt]s$/, content = Symbol.for('rlx ahead');

/** The plug-in for Vite, Rollup and Rolldown. */
export function rlx(): RlxPlugin {
  const served = new Map<string, Uint8Array>();
  let base: string | undefined;
  return {
    name: 'rlx',
    enforce: 'pre',
    // Vite's scan sees no import of the code that load makes. A package found that late is bundled while a page runs, which reloads
    // it. This one is ready modules, so it is served as it is.
    config: () => ({ optimizeDeps: { exclude: ['@rlx-go/rlx'] } }),
    configResolved(config: { command: string; base: string }) { base = config.command === 'serve' ? config.base : undefined; },
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- Vite's server
    configureServer(server: any) {
      server.middlewares.use((request: { url?: string }, response: { setHeader(name: string, value: string): void; end(bytes: Uint8Array): void }, next: () => void) => {
        const plan = served.get(new URL(request.url ?? '', 'http://localhost').pathname);
        if (!plan) return next();
        response.setHeader('content-type', 'application/octet-stream');
        response.end(plan);
      });
    },
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- a context of four bundlers
    async load(this: any, id: string, options?: { ssr?: boolean }) {
      const [path = ''] = id.split('?', 1);
      if (!modules.test(path)) return null;
      const { plans, code } = await run(path, (file) => { this.addWatchFile(file); }), urls = new Map<string, string>();
      for (const [name, source] of plans) {
        if (options?.ssr) { // Node has no page whose address a relative one could refer to
          urls.set(name, JSON.stringify(`data:application/octet-stream;base64,${Buffer.from(source).toString('base64')}`));
        } else if (base === undefined) {
          urls.set(name, `import.meta.ROLLUP_FILE_URL_${this.emitFile({ type: 'asset', name: `${name}.rlxp`, source })}`);
        } else {
          const at = `${base}@rlx/${name}-${hashOf(source)}.rlxp`;
          served.set(at, source);
          urls.set(name, JSON.stringify(at));
        }
      }
      return { code: code((name) => urls.get(name)!), map: null, moduleType: 'js' };
    },
  };
}

/** The plug-in for esbuild. Its bundles are modules (`format: 'esm'`), with the plans next to them. */
export function esbuild(): RlxEsbuildPlugin {
  return {
    name: 'rlx',
    setup(build) {
      const made = new Map<string, Uint8Array>();
      build.onLoad({ filter: modules }, async ({ path }: { path: string }) => {
        const files: string[] = [], { plans, code } = await run(path, (file) => { files.push(file); }), urls: string[] = [];
        const contents = code((name) => {
          const plan = plans.get(name)!, key = `${name}-${hashOf(plan)}.rlxp`;
          made.set(key, plan);
          return `new URL(url${urls.push(key) - 1}, import.meta.url)`;
        });
        const imports = urls.map((key, i) => `import url${i} from ${JSON.stringify(`rlx-plan:${key}`)};\n`).join('');
        return { contents: imports + contents, loader: 'js', resolveDir: dirname(path), watchFiles: files };
      });
      build.onResolve({ filter: /^rlx-plan:/ }, ({ path }: { path: string }) => ({ path: path.slice('rlx-plan:'.length), namespace: 'rlx-plan' }));
      build.onLoad({ filter: /./, namespace: 'rlx-plan' }, ({ path }: { path: string }) => ({ contents: made.get(path), loader: 'file' }));
    },
  };
}

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex').slice(0, 16);

/** Runs a module and compiles its exports. `watch` is called with its source files. An error in it has the places of its source. */
async function run(path: string, watch: (file: string) => void): Promise<Built> {
  const { text, map } = await bundled(path, watch), own = join(dirname(path), `.${basename(path)}-${process.pid}-${Math.random().toString(36).slice(2)}.mjs`);
  try {
    if (text === undefined) return await built(path, await import(`${pathToFileURL(path)}?${Date.now()}`));
    await writeFile(own, text);
    return await built(path, await import(pathToFileURL(own).href));
  } catch (reason) {
    if (map !== undefined && reason instanceof Error) locate(reason, own, new SourceMap(map));
    throw reason;
  } finally {
    if (text !== undefined) await unlink(own).catch(() => {});
  }
}

/**
 * Replaces the places of a bundled text in the stack of an error by those of the source files. The first becomes `loc`, by which Vite
 * shows where it is, and begins the message, of which Rolldown shows no more.
 */
function locate(error: Error & { loc?: object }, own: string, map: SourceMap): void {
  const [start = '', ...others] = (error.stack ?? '').split(pathToFileURL(own).href);
  error.stack = start + others.map((rest) => {
    const [place = '', line, column] = /^:(\d+):(\d+)/.exec(rest) ?? [], from = map.findOrigin(Number(line), Number(column));
    if (!('fileName' in from)) return own + rest;
    const file = resolve(dirname(own), from.fileName);
    const at = `${file}:${from.lineNumber}:${from.columnNumber}`;
    if (!error.loc) {
      error.loc = { file, line: from.lineNumber, column: from.columnNumber - 1 };
      error.message = `${at}: ${error.message}`;
    }
    return at + rest.slice(place.length);
  }).join('');
}

/** The exports of a module that was run, compiled. */
async function built(path: string, exported: Record<string, unknown>): Promise<Built> {
  const plans = new Map<string, Uint8Array>(), parts: ((urlOf: (name: string) => string) => string)[] = [];
  for (const [name, value] of Object.entries(exported)) {
    const make = (Object(value) as Record<symbol, unknown>)[content], left = name === 'default' ? 'export default' : `export const ${name} =`;
    if (typeof make === 'function') {
      const { file, starts } = await make() as { file: Uint8Array; starts: unknown[] }, plan = name === 'default' ? basename(path).replace(modules, '') : name;
      plans.set(plan, file);
      parts.push((urlOf) => `${left} fetched(${urlOf(plan)}, ${codeOf(starts)});\n`);
    } else if (isPlain(value)) {
      parts.push(() => `${left} ${codeOf(value)};\n`);
    } else {
      throw new Error(`${path}: the export ${name} is neither made by ahead nor a value that JSON can hold: move it to another module`);
    }
  }
  return { plans, code: (urlOf) => `import { fetched } from '@rlx-go/rlx/ahead';\n${parts.map((part) => part(urlOf)).join('')}` };
}

function isPlain(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isPlain);
  if (Object(value) === value) return Object.getPrototypeOf(value) === Object.prototype && Object.values(value as object).every(isPlain);
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

/** The code of a value: plain ones, and typed arrays. */
function codeOf(value: unknown): string {
  if (ArrayBuffer.isView(value)) return `new ${value.constructor.name}(${codeOf(Array.from(value as Float32Array))})`;
  if (Array.isArray(value)) return `[${value.map(codeOf).join(',')}]`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (Object(value) !== value) return JSON.stringify(value);
  return `{${Object.entries(value as object).map(([name, part]) => `${JSON.stringify(name)}:${codeOf(part)}`).join(',')}}`;
}

/** A text, none without a bundler, and the files that it is of. */
interface Bundle { text?: string; map?: SourceMapPayload; files: string[] }

/**
 * A module and its imports, except packages, as one JavaScript text and its source map, made by a bundler
 * of the project; without one Node runs the file itself. `watch` is called with the files, and with those that do not parse.
 */
async function bundled(path: string, watch: (file: string) => void): Promise<Bundle> {
  try {
    const made = await bundle(path);
    made.files.forEach(watch);
    return made;
  } catch (reason) {
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- of two bundlers: files that do not parse
    for (const { location, loc, id } of (reason as { errors?: any[] }).errors ?? []) {
      const file = location?.file ?? loc?.file ?? id;
      if (file) watch(resolve(dirname(path), file));
    }
    throw reason;
  }
}

async function bundle(path: string): Promise<Bundle> {
  const esbuild = await tool('esbuild', path);
  if (esbuild) {
    const { outputFiles: [map, code], metafile } = await esbuild.build({
      entryPoints: [path], absWorkingDir: dirname(path), outfile: `${path}.mjs`, bundle: true, packages: 'external', format: 'esm', platform: 'node', target: 'node20',
      write: false, metafile: true, sourcemap: 'external', sourcesContent: false, logLevel: 'silent',
    });
    return { text: code.text, map: JSON.parse(map.text), files: Object.keys(metafile.inputs).map((file) => resolve(dirname(path), file)) };
  }
  const rolldown = await tool('rolldown', path);
  if (!rolldown) return { files: [path] };
  const build = await rolldown.rolldown({ input: path, platform: 'node', external: (id: string) => !/^[./]/.test(id) && !/^[a-z]:\\/i.test(id) });
  try {
    const { output: [{ code, map, moduleIds }] } = await build.generate({ format: 'esm', codeSplitting: false, sourcemap: 'hidden', dir: dirname(path) });
    return { text: code, map, files: moduleIds };
  } finally {
    await build.close();
  }
}

/** A bundler that the project of a file depends on, or that its Vite does. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- two bundlers
async function tool(name: string, path: string): Promise<any> {
  const project = createRequire(path), from = [project];
  try {
    from.push(createRequire(project.resolve('vite')));
  } catch {} // a project without Vite
  for (const { resolve: find } of from) {
    try {
      return await import(pathToFileURL(find(name)).href);
    } catch {} // not there
  }
  return undefined;
}
