/**
 * Which devices a module can run on, node by node, which is the fastest, and which a policy chooses. Pages that do not import this
 * module do not load it.
 *
 * @module
 */

export { calibrate, type Rates, ratesOf } from './compile/calibrate.js';
export type { NodeReport, Work } from './compile/compiler.js';
export { type DeviceInfo, type DeviceName, devices } from './compile/device.js';
export { chooseFor, type ChooseOptions, type DevicePolicy, devicesFor, fastest, openFor, parsePolicy } from './compile/policy.js';
export { type DeviceReport, reportOn, reportTarget, type Reported } from './compile/report.js';
