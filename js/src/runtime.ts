/**
 * Runs plans that were compiled ahead of time: no compiler, no WebAssembly.
 *
 * @module
 */

export { type Batch, type BatchOptions, batches, type LastBatch } from './batches.js';
export { type Device, type DeviceOptions } from './device.js';
export { type DType, type TensorData } from './dtype.js';
export { type ErrorKind, type ErrorPlace, RlxError } from './errors.js';
export { openSession, type SessionOptions } from './open.js';
export { decodePlan, type Entry, type Kernel, type Plan, type Slot } from './plan.js';
export { startWorker } from './remote.js';
export { type HostTensor, type Input, type Inputs, type Reading, type Run, type RunOptions, type Session } from './session.js';
export { liveTensors, scope, Tensor, type TensorScope } from './tensor.js';
export { type BatchSource, type EvaluateOptions, type Progress, type Summary, Trainer, type TrainerOptions, type TrainOptions } from './trainer.js';
