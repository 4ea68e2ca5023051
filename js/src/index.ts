/**
 * Builds graphs, differentiates them, compiles them in the page, and runs and trains them.
 *
 * @module
 */

export * from './runtime.js';
export { type Branch, GraphBuilder, type LoopBody, type LoopOptions, type WhileBody, type WhileOptions } from './graph/builder.js';
export { closeCompiler, init, type InitOptions, type Limits, type Target } from './graph/compiler.js';
export { type Declaration, type Declarations, Graph, graph, type Optimizer, type Output, parseGraph, type Port, type Schedule, type StepOptions } from './graph/graph.js';
export { type Initial, initialParams } from './graph/initial.js';
export type { WasmSource } from './wasm/module.js';
export { compile, type Module, type ModuleSessionOptions, session, train, type TrainingOptions } from './graph/train.js';
export type { Measured, TuneOptions } from './graph/tune.js';
export { planCode } from './graph/plan-code.js';
export { type Dim, type Operand, Value, type ValueType } from './graph/value.js';
