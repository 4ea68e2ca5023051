// onnxruntime-web: its WebGPU provider, with operands and results that stay on the device. It does not train.

import * as ort from 'onnxruntime-web/webgpu';
import { randoms } from '../jobs.mjs';

// A model file is a message of protocol buffers: a field is its number and wire type, then a varint, or a
// length and bytes.
const varint = (n) => n < 128 ? [n] : [n & 127 | 128, ...varint(n >>> 7)];
const field = (number, value) => {
  if (typeof value === 'number') return [number << 3, ...varint(value)];
  const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value;
  return [number << 3 | 2, ...varint(bytes.length), ...bytes];
};

/** The description of a float tensor: ValueInfoProto. */
const tensorInfo = (name, shape) => {
  const dims = shape.flatMap((n) => field(1, field(1, n)));
  return [...field(1, name), ...field(2, field(1, [...field(1, 1), ...field(2, dims)]))];
};

/** A model of one node: inputs by name and shape, and the result y. */
function modelOf(op, inputs, shape) {
  const names = Object.keys(inputs), node = [...names.flatMap((name) => field(1, name)), ...field(2, 'y'), ...field(4, op)];
  const graph = [...field(1, node), ...field(2, 'g'), ...Object.entries(inputs).flatMap(([name, of]) => field(11, tensorInfo(name, of))), ...field(12, tensorInfo('y', shape))];
  return Uint8Array.from([...field(1, 8), ...field(7, graph), ...field(8, field(2, 17))]);
}

/** A job of one op. */
async function repeated(op, inputs, shape) {
  const shapes = Object.fromEntries(Object.entries(inputs).map(([name, [dims]]) => [name, dims]));
  const session = await ort.InferenceSession.create(modelOf(op, shapes, shape), { executionProviders: ['webgpu'], preferredOutputLocation: { y: 'gpu-buffer' } });
  const device = await ort.env.webgpu.device, buffers = [];
  const feeds = Object.fromEntries(Object.entries(inputs).map(([name, [dims, data]]) => {
    const buffer = device.createBuffer({ size: data.byteLength, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
    device.queue.writeBuffer(buffer, 0, data);
    buffers.push(buffer);
    return [name, ort.Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims })];
  }));
  let result;
  return {
    async step() {
      result?.dispose();
      result = (await session.run(feeds)).y;
    },
    sync: () => device.queue.onSubmittedWorkDone(),
    async dispose() {
      result?.dispose();
      await session.release();
      for (const buffer of buffers) buffer.destroy();
    },
  };
}

/** Opens onnxruntime-web; `wasm` is the address of its module. */
export async function open({ wasm }) {
  Object.assign(ort.env.wasm, { wasmPaths: { wasm }, numThreads: 1 });
  ort.env.logLevel = 'error';
  return {
    name: 'onnxruntime-web',
    version: ort.env.versions.web,
    matmul: ({ n }) => repeated('MatMul', { a: [[n, n], randoms(n * n, 1)], b: [[n, n], randoms(n * n, 2)] }, [n, n]),
    matvec: ({ n }) => repeated('MatMul', { a: [[n, n], randoms(n * n, 1)], x: [[n, 1], randoms(n, 2)] }, [n, 1]),
    softmax: ({ rows, cols }) => repeated('Softmax', { a: [[rows, cols], randoms(rows * cols, 1)] }, [rows, cols]),
  };
}
