// onnxruntime-web: its WebGPU provider, with operands and results that stay on the device. It does not train.

import * as ort from 'onnxruntime-web/webgpu';
import { randoms } from '../jobs.mjs';
import { Model, networkFile } from './onnx.mjs';

const device = () => ort.env.webgpu.device;

/** A session of a file whose result is y. */
async function sessionOf(file) {
  const session = await ort.InferenceSession.create(file, { executionProviders: ['webgpu'], preferredOutputLocation: { y: 'gpu-buffer' } });
  return { run: async (feeds) => (await session.run(feeds)).y, release: () => session.release() };
}

/** A job of a session, { run(feeds), release() }, whose inputs, { name: [shape, data] }, and result stay on the device. */
export async function repeated(session, inputs) {
  const gpu = await device(), buffers = [];
  const feeds = Object.fromEntries(Object.entries(inputs).map(([name, [dims, data]]) => {
    const buffer = gpu.createBuffer({ size: data.byteLength, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
    gpu.queue.writeBuffer(buffer, 0, data);
    buffers.push(buffer);
    return [name, ort.Tensor.fromGpuBuffer(buffer, { dataType: data instanceof Int32Array ? 'int32' : 'float32', dims })];
  }));
  let result;
  return {
    async step() {
      result?.dispose();
      result = await session.run(feeds);
    },
    sync: () => gpu.queue.onSubmittedWorkDone(),
    loss: async () => {
      const values = await (await session.run(feeds)).getData();
      return values.reduce((sum, x) => sum + x * x, 0) / values.length;
    },
    async dispose() {
      result?.dispose();
      await session.release();
      for (const buffer of buffers) buffer.destroy();
    },
  };
}

/** A job of one op, whose result is no loss. */
async function single(op, inputs, shape) {
  const m = new Model(), values = Object.entries(inputs).map(([name, [dims]]) => ({ name, shape: dims }));
  return { ...await repeated(await sessionOf(m.file(values, m.node(op, values, shape))), inputs), loss: undefined };
}

/** A network's forward pass. */
async function network(options) {
  const { bytes, input } = networkFile(options);
  return repeated(await sessionOf(bytes), { x: input });
}

/** Prepares the library, whose module is at the address `wasm`. */
export function prepare(wasm) {
  Object.assign(ort.env.wasm, { wasmPaths: { wasm }, numThreads: 1 });
  ort.env.logLevel = 'error';
}

/** Opens onnxruntime-web; `wasm` is the address of its module. */
export async function open({ wasm }) {
  prepare(wasm);
  return {
    name: 'onnxruntime-web',
    version: ort.env.versions.web,
    matmul: ({ n }) => single('MatMul', { a: [[n, n], randoms(n * n, 1)], b: [[n, n], randoms(n * n, 2)] }, [n, n]),
    matvec: ({ n }) => single('MatMul', { a: [[n, n], randoms(n * n, 1)], x: [[n, 1], randoms(n, 2)] }, [n, 1]),
    network,
    softmax: ({ rows, cols }) => single('Softmax', { a: [[rows, cols], randoms(rows * cols, 1)] }, [rows, cols]),
  };
}
