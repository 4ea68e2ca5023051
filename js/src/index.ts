/**
 * Builds graphs, differentiates them, compiles them in the page, and runs and trains them.
 *
 * @module
 */

export * from './runtime.js';
export { type Alike, type Branch, type Callee, GraphBuilder, type LoopBody, type LoopOptions, type Operand, Value, type Values, type WhileBody, type WhileOptions } from './graph/builder.js';
export { clearCache, closeCompiler, init, type InitOptions, type Limits, type Target } from './compile/compiler.js';
export { type Declaration, type Declarations, Graph, graph, type GradOptions, moduleText, type Moments, type Optimizer, type Output, parseGraph, parseModule, type ParamGroup, type Policy, type Port, type Schedule, type StepOptions, type UpdateOptions, type UpdateRule } from './graph/graph.js';
export type { WasmSource } from './wasm/module.js';
export { ahead, type AheadOptions } from './compile/ahead.js';
export type { Made, MadeOptions } from './compile/made.js';
export { compile, type Module, type ModuleProgramOptions, type ModuleSource, program, train, type TrainingOptions } from './compile/train.js';
export type { PlanStore } from './compile/plan-store.js';
export type { Measured, TuneOptions } from './compile/tune.js';
export { watch, type Watched } from './compile/watch.js';
export { planCode } from './compile/plan-code.js';
export type { Initial } from './graph/initial.js';
export { defineOp, type OwnOp } from './graph/own-op.js';
export type { InitialRule } from './graph/rule.js';
export { initialParams } from './graph/params.js';
export type { Axes, Dim, ValueType } from './graph/types.js';
