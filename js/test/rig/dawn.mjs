// Dawn (the WebGPU implementation of Chromium) inside Node, on a GPU made of software.
//
//   const { device, close } = await openDawn({ backend: 'swiftshader' });
//
// Run test files with `node --test --test-force-exit`: a map that never completes, on a
// lost device say, would keep the process alive.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

// Possible locations of a backend's Vulkan driver file, best first. The null backend compiles
// shaders and checks every call, but runs nothing.
const drivers = {
  lavapipe: ['lvp_icd.json', 'lvp_icd.x86_64.json', 'lvp_icd.aarch64.json'].flatMap((file) => [
    `/usr/share/vulkan/icd.d/${file}`,
    `/usr/local/share/vulkan/icd.d/${file}`,
  ]),
  swiftshader: ['/usr/lib/chromium/vk_swiftshader_icd.json', '/opt/google/chrome/vk_swiftshader_icd.json'],
  null: [],
  default: [], // any Vulkan driver of the machine and its environment
};

/** What has lavapipe compile in half of the time: without LLVM's optimisation, and for vectors of four numbers. */
export const quickLavapipe = { GALLIVM_PERF: 'nopt', LP_NATIVE_VECTOR_WIDTH: '128' };

/** The backends openDawn knows, by name. */
export const backends = Object.keys(drivers);

/** The backend that is used where none is named: $RLX_DAWN_BACKEND, or lavapipe. */
export const defaultBackend = process.env.RLX_DAWN_BACKEND || 'lavapipe';

function selectDriver(backend) {
  if (!(backend in drivers)) throw new Error(`rig: unknown backend ${backend}: one of ${backends.join(', ')}`);
  if (drivers[backend].length === 0) return;
  const file = drivers[backend].find(existsSync);
  if (!file) throw new Error(`rig: no ${backend} driver here (looked for ${drivers[backend].join(', ')}): run 'make deps'`);
  // The Vulkan loader reads these when an instance is made, and process.env writes
  // through to the C environment: no new process is needed.
  process.env.VK_ICD_FILENAMES = file;
  process.env.VK_DRIVER_FILES = file;
  process.env.LP_NUM_THREADS = '1'; // Dawn polls busily: more of lavapipe's threads fight it for the cores
  // lavapipe takes longer to compile kernels well than to run those of tests; benchmarks have it do so.
  if (process.env.NODE_TEST_CONTEXT) for (const [name, value] of Object.entries(quickLavapipe)) process.env[name] ??= value;
}

// Dawn in Node crashes when a GPU object is collected before its devices are.
const alive = [];

function loadDawn() {
  // A dawn.node of one's own: for a machine without node_modules.
  const addon = process.env.RLX_DAWN_NODE;
  return createRequire(import.meta.url)(addon || 'webgpu');
}

/**
 * Makes a GPU object, as navigator.gpu is one, and puts WebGPU's constants and
 * classes (GPUBufferUsage and its kin) into the global scope.
 * @param {{backend?: string, toggles?: string[]}} options toggles are Dawn's own,
 *   such as 'enable-dawn-features=allow_unsafe_apis'.
 */
export function openGPU({ backend = defaultBackend, toggles = [] } = {}) {
  selectDriver(backend);
  const dawn = loadDawn();
  Object.assign(globalThis, dawn.globals);
  const gpu = dawn.create(backend === 'null' ? ['backend=null', ...toggles] : toggles);
  alive.push(gpu);
  return gpu;
}

/**
 * Opens an adapter and a device with the limits that every WebGPU device has: what
 * needs more than the defaults fails here, however generous the software GPU is.
 * An error that no scope caught ends the process, so that no test ignores it.
 * @param {{backend?: string, features?: string[], optional?: string[], limits?: Record<string, number>, toggles?: string[], onError?: (e: Error) => void}} options
 *   features must be there; optional ones are asked for where they are; limits are those that a plan requires
 * @returns {Promise<{gpu: GPU, adapter: GPUAdapter, device: GPUDevice, close: () => void}>}
 */
export async function openDawn({ backend = defaultBackend, features = [], optional = [], limits, toggles = [], onError } = {}) {
  const gpu = openGPU({ backend, toggles });
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error(`rig: Dawn finds no adapter on ${backend}`);
  const missing = features.filter((name) => !adapter.features.has(name));
  if (missing.length > 0) throw new Error(`rig: the ${backend} adapter lacks ${missing.join(', ')}`);
  const device = await adapter.requestDevice({ requiredFeatures: [...features, ...optional.filter((name) => adapter.features.has(name))], requiredLimits: limits });
  const report = onError ?? ((error) => { throw error; });
  device.addEventListener('uncapturederror', (event) => report(new Error(`WebGPU: ${event.error.message}`)));
  return { gpu, adapter, device, close: () => device.destroy() };
}
