// Checks WGSL with Tint, the compiler of Chromium: syntax, types, uniformity, and each
// entry point's pipeline under an explicit layout at the default limits.
//
//   node internal/codegen/wgsl/check/tint.mjs [--backend=null|lavapipe|swiftshader] FILE|FOLDER...
//
// Prints file:line:column: error: message, and ends with 1 if there was an error or no
// shader at all. The null backend needs no GPU; the others compile to machine code too.

import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openDawn } from '../../../../js/test/rig/dawn.mjs';

// Language extensions and the device features that allow them. A shader is given just
// those it enables, so one that forgets to say so is refused.
const featureOf = {
  f16: 'shader-f16', subgroups: 'subgroups', subgroup_size_control: 'subgroup-size-control',
  chromium_experimental_subgroup_matrix: 'chromium-experimental-subgroup-matrix',
};
const toggles = ['enable-dawn-features=allow_unsafe_apis']; // by which Dawn has its experiments

function shaderFiles(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true }).filter((name) => name.endsWith('.wgsl')).sort().map((name) => join(path, name));
}

const stripComments = (code) => code.replace(/\/\/[^\n]*/g, '').replace(/\/\*[\s\S]*?\*\//g, '');

function enabledFeatures(code) {
  const names = [...code.matchAll(/\benable\s+([^;]+);/g)].flatMap((match) => match[1].split(',').map((name) => name.trim()));
  return names.map((name) => featureOf[name]).filter(Boolean).sort();
}

// explicitLayout builds the layout a host would: storage buffers as declared, uniforms
// with a dynamic offset.
function explicitLayout(device, code) {
  const groups = [];
  const declaration = /@group\((\d+)\)\s*@binding\((\d+)\)\s*var<\s*(storage|uniform)\s*(?:,\s*(read_write|read)\s*)?>/g;
  for (const [, group, binding, space, access] of code.matchAll(declaration)) {
    const buffer = space === 'uniform' ? { type: 'uniform', hasDynamicOffset: true }
      : { type: access === 'read_write' ? 'storage' : 'read-only-storage' };
    (groups[group] ??= []).push({ binding: Number(binding), visibility: GPUShaderStage.COMPUTE, buffer });
  }
  const bindGroupLayouts = Array.from(groups, (entries) => device.createBindGroupLayout({ entries: entries ?? [] }));
  return device.createPipelineLayout({ bindGroupLayouts });
}

async function checkShader(device, file) {
  const source = readFileSync(file, 'utf8');
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ code: source, label: file });
  const { messages } = await module.getCompilationInfo();
  const problems = messages.map(({ type, lineNum, linePos, message }) => ({ type, text: `${file}:${lineNum}:${linePos}: ${type}: ${message}` }));
  const broken = problems.some(({ type }) => type === 'error');
  if (!broken) {
    const code = stripComments(source);
    const entryPoints = [...code.matchAll(/@compute[\s\S]*?\bfn\s+(\w+)/g)].map((match) => match[1]);
    if (entryPoints.length === 0) problems.push({ type: 'error', text: `${file}:1:1: error: no compute entry point` });
    const layout = explicitLayout(device, code);
    for (const entryPoint of entryPoints) device.createComputePipeline({ layout, compute: { module, entryPoint }, label: file });
  }
  const error = await device.popErrorScope();
  if (error && !broken) problems.push({ type: 'error', text: `${file}:1:1: error: ${error.message.replaceAll('\n', ' ').trim()}` });
  return problems;
}

async function main(args) {
  const backend = args.find((arg) => arg.startsWith('--backend='))?.slice('--backend='.length) ?? 'null';
  const files = args.filter((arg) => !arg.startsWith('--')).flatMap(shaderFiles);
  const devices = new Map();
  let errors = 0;
  for (const file of files) {
    const features = enabledFeatures(stripComments(readFileSync(file, 'utf8')));
    const key = features.join();
    if (!devices.has(key)) devices.set(key, (await openDawn({ backend, features, toggles: features.some((name) => name.includes('experimental')) ? toggles : [] })).device);
    for (const { type, text } of await checkShader(devices.get(key), file)) {
      if (type === 'error') errors++;
      console.log(text);
    }
  }
  console.log(`tint: ${files.length} shaders, ${errors} errors`);
  return errors > 0 || files.length === 0 ? 1 : 0;
}

process.exit(await main(process.argv.slice(2)));
