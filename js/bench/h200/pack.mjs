// Packs all that a GPU machine without a network needs into one folder: Node and Dawn
// (compressed), the Vulkan loader, the benchmarks with their peers, and further programs.
//
//   node js/bench/h200/pack.mjs FOLDER --plans FOLDER [--chromium] [--program NAME=ENTRY.mjs]... [--data NAME=PATH]...
//
// The plans are those that js/bench/plans writes.
//
// There, `bash FOLDER/run.sh RESULTS` runs it all. A program is bundled to
// programs/NAME/NAME.mjs and finds the data, files and folders, in $RLX_DATA; it ends with 0 if all went well.
// With --chromium Debian's browser is packed too, with the libraries it needs but for the C library's own.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { bundle } from '../bundle.mjs';

const here = import.meta.dirname;
const addon = join(dirname(createRequire(import.meta.url).resolve('webgpu')), `dist/${process.platform}-${process.arch}/dawn.node`);

const newer = (made, from) => existsSync(made) && statSync(made).mtimeMs > statSync(from).mtimeMs;

// compress writes FILE.xz into the folder. Python's lzma unpacks it there.
function compress(file, name, folder) {
  const target = join(folder, `${name}.xz`);
  if (newer(target, file)) return;
  const script = 'import lzma, shutil, sys; shutil.copyfileobj(open(sys.argv[1], "rb"), lzma.open(sys.argv[2], "wb", preset=6))';
  execFileSync('python3', ['-c', script, file, target], { stdio: 'inherit' });
}

// vulkanLoader copies the loader's library from this machine, or from Debian's package.
function vulkanLoader(folder) {
  const target = join(folder, 'libvulkan.so.1');
  const local = ['/usr/lib/x86_64-linux-gnu/libvulkan.so.1', '/usr/lib64/libvulkan.so.1'].find(existsSync);
  if (local) return cpSync(realpathSync(local), target);
  const scratch = mkdtempSync(join(tmpdir(), 'rlx-vulkan-'));
  execFileSync('apt-get', ['download', 'libvulkan1'], { cwd: scratch, stdio: 'inherit' });
  execFileSync('dpkg', ['-x', readdirSync(scratch).find((name) => name.endsWith('.deb')), 'root'], { cwd: scratch });
  cpSync(realpathSync(join(scratch, 'root/usr/lib/x86_64-linux-gnu/libvulkan.so.1')), target);
  rmSync(scratch, { recursive: true });
}

// browserFiles are those of Debian's Chromium that a page needs, libraries and a font: [path, name there].
function browserFiles() {
  const home = '/usr/lib/chromium', libc = /^(ld-linux|lib(c|m|dl|rt|pthread|resolv|mvec|gcc_s|stdc\+\+))[.-]/;
  const own = readdirSync(home, { withFileTypes: true }).filter((file) => file.isFile() && !/Layer|mock|TOC/.test(file.name)).map(({ name }) => name);
  const linked = execFileSync('ldd', [join(home, 'chromium')], { encoding: 'utf8' }).match(/(?<==> )\/\S+/g);
  const opened = execFileSync('find', ['/usr/lib', '-name', 'libsoftokn3.so', '-o', '-name', 'libfreebl*3.so'], { encoding: 'utf8' }).trim().split('\n');
  const [font] = execFileSync('find', ['/usr/share/fonts', '-name', '*Sans-Regular.ttf'], { encoding: 'utf8' }).trim().split('\n');
  return [
    ...[...own, 'locales/en-US.pak'].map((name) => [join(home, name), name]),
    ...[...linked, ...opened].filter((path) => !libc.test(basename(path))).map((path) => [path, join('lib', basename(path))]),
    ...font ? [[font, 'fonts/sans.ttf']] : [],
  ];
}

// packChromium writes chromium.tar.xz into the folder: two minutes' work for a processor.
function packChromium(folder) {
  const target = join(folder, 'chromium.tar.xz');
  if (newer(target, '/usr/lib/chromium/chromium')) return;
  const script = `import json, sys, tarfile
with tarfile.open(sys.argv[1], "w:xz", preset=6, dereference=True) as tar:
    for path, name in json.load(sys.stdin): tar.add(path, name)`;
  execFileSync('python3', ['-c', script, target], { input: JSON.stringify(browserFiles()), stdio: ['pipe', 'inherit', 'inherit'] });
}

/** Copies what a page loads of the package. */
function copyPackage(folder) {
  const dist = join(here, '../../dist');
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(dist)) if (/\.(js|wasm)$/.test(name)) cpSync(join(dist, name), join(folder, name));
}

// named splits NAME=PATH arguments that follow a flag.
const named = (args, flag) => args.flatMap((arg, i) => (args[i - 1] === flag ? [arg.split('=')] : []));

function sizeOf(path) {
  const info = statSync(path);
  return info.isDirectory() ? readdirSync(path).reduce((total, name) => total + sizeOf(join(path, name)), 0) : info.size;
}

const [folder, ...args] = process.argv.slice(2);
const plans = args[args.indexOf('--plans') + 1];
if (!folder || !args.includes('--plans')) throw new Error('usage: pack.mjs FOLDER --plans FOLDER [--chromium] [--program NAME=ENTRY.mjs]... [--data NAME=PATH]...');
const out = resolve(folder);
for (const name of ['bench', 'plans', 'programs', 'data', 'node_modules']) rmSync(join(out, name), { recursive: true, force: true });
mkdirSync(join(out, 'programs'), { recursive: true });
compress(process.execPath, 'node', out);
compress(addon, 'dawn.node', out);
vulkanLoader(out);
cpSync(plans, join(out, 'plans'), { recursive: true });
await bundle(join(here, '../node.mjs'), join(out, 'bench'), 'node');
if (args.includes('--chromium')) {
  packChromium(out);
  await bundle(join(here, '../chromium.mjs'), join(out, 'bench'), 'node');
  await bundle(join(here, '../page.mjs'), join(out, 'bench/page'), 'browser');
  copyPackage(join(out, 'bench/page/rlx'));
  cpSync(dirname(createRequire(import.meta.url).resolve('playwright-core/package.json')), join(out, 'node_modules/playwright-core'), { recursive: true, dereference: true });
}
for (const [name, entry] of named(args, '--program')) await bundle(entry, join(out, 'programs', name), 'node', name);
for (const [name, from] of named(args, '--data')) cpSync(from, join(out, 'data', name), { recursive: true });
for (const name of ['run.sh', 'table.mjs']) cpSync(join(here, name), join(out, name));
console.log(`${basename(out)}: ${(sizeOf(out) / 2 ** 20).toFixed(1)} MiB in ${out}`);
