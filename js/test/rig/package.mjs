// A project that uses the packed npm package, as one outside this repository would.
//
//   const project = await installPacked({ 'main.mjs': "import ... from '@rlx-go/rlx'" });
//   await project.node('main.mjs');

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const packageFolder = join(import.meta.dirname, '../..');
const tools = join(packageFolder, 'node_modules');
const execute = promisify(execFile);

// run starts a program and returns its output; an error carries that too.
async function run(command, args, options) {
  try {
    const { stdout } = await execute(command, args, { maxBuffer: 16 << 20, ...options });
    return stdout;
  } catch (error) {
    throw new Error(`${command} ${args.join(' ')}\n${error.stdout}${error.stderr}`);
  }
}

/** Packs js/ as npm would publish it. @returns {Promise<{tarball: string, files: string[]}>} */
export async function pack(folder) {
  const [{ filename, files }] = JSON.parse(await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { cwd: packageFolder }));
  return { tarball: join(folder, filename), files: files.map(({ path }) => path) };
}

/**
 * Makes a project with these files and the packed package installed, and nothing else: no
 * package of this repository is in reach of an import. The tools are this repository's own.
 */
export async function installPacked(files) {
  const folder = await mkdtemp(join(tmpdir(), 'rlx-project-'));
  const { tarball } = await pack(folder);
  const all = { 'package.json': JSON.stringify({ name: 'project', private: true, type: 'module' }), ...files };
  for (const [name, text] of Object.entries(all)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--no-save', tarball], { cwd: folder });
  const tool = (path, ...args) => run(process.execPath, [join(tools, path), ...args], { cwd: folder });
  return {
    folder,
    installed: join(folder, 'node_modules/@rlx-go/rlx'),
    /** Runs a file of the project in Node. */
    node: (file, env = {}) => run(process.execPath, [join(folder, file)], { cwd: folder, env: { ...process.env, ...env } }),
    /** Checks the project's types; throws with tsc's messages. */
    tsc: (...args) => tool('typescript/lib/tsc.js', ...args),
    /** Has the project find a package of this repository's, or of a folder of tools. */
    async link(name, from = tools) {
      const at = join(folder, 'node_modules', name);
      await mkdir(dirname(at), { recursive: true });
      await symlink(join(from, name), at);
    },
    /** Bundles with esbuild. */
    esbuild: (...args) => run(join(tools, 'esbuild/bin/esbuild'), args, { cwd: folder }),
    /** Runs Vite: 'build', say. */
    vite: (...args) => tool('vite/bin/vite.js', ...args),
    /** The names of all files under a folder of the project. */
    list: (under) => readdir(join(folder, under), { recursive: true }),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Vite's development server on a project, with plug-ins. @returns {Promise<{origin: string, close: () => Promise<void>}>} */
export async function viteServer(folder, plugins = []) {
  const { createServer } = await import('vite');
  const server = await createServer({ root: folder, configFile: false, plugins, logLevel: 'error', server: { host: '127.0.0.1', port: 0 } });
  await server.listen();
  return { origin: `http://127.0.0.1:${server.httpServer.address().port}`, close: () => server.close() };
}
