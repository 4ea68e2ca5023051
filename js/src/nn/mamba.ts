// The selective state space block.

import type { Value } from '../graph/builder.js';
import type { Initial } from '../graph/initial.js';
import { conv1d } from './conv.js';
import { type Layer, layer, type NameOption } from './layer.js';
import { linear } from './linear.js';
import { carried } from './position.js';

/** Options of {@link mamba}. */
export interface MambaOptions extends NameOption {
  /** The size of the state of each channel. 16 if not given. */
  state?: number;
  /** The length of the causal convolution. 4 if not given. */
  kernel?: number;
  /** The number of channels by the width. 2 if not given. */
  expand?: number;
  /** The rank of the projection of step sizes. ⌈width/16⌉ if not given. */
  rank?: number;
  /** The initial value of the projections: that of `linear` if not given. */
  init?: Initial;
}

/**
 * The selective state space block of x, [batch, time, width] (Gu and Dao, Mamba): a projection to channels and gates, a
 * causal depthwise convolution, silu, the scan, the gate and a projection back. Parameters have the names of mamba_ssm,
 * with channels = expand·width: `in_proj/weight` [width, 2·channels], `conv1d/weight` [kernel, 1, channels], `conv1d/bias`,
 * `x_proj/weight` [channels, rank + 2·state], `dt_proj/weight` [rank, channels], `dt_proj/bias`, `A_log` [channels, state],
 * `D` [channels], `out_proj/weight` [channels, width]. With a `cache` the states `conv_state` and `ssm_state` continue.
 */
export function mamba(x: Value, options?: MambaOptions): Value {
  return layer(mamba, 'mamba', x, options, 'state kernel expand rank init', (l) => {
    if (x.shape.length !== 3) l.fail('shape', 'x has three axes: batch, time and features');
    const width = l.size(-1), { state = 16, kernel = 4, expand = 2, rank = Math.ceil(width / 16), init } = options ?? {}, channels = expand * width;
    for (const [name, n] of Object.entries({ state, kernel, expand, rank })) l.requireCount(n, name);
    const project = (name: string, of: Value, out: number) => linear(of, out, { name, noBias: true, ...init !== undefined && { init } });
    const [mixed, gate] = project('in_proj', x, 2 * channels).split({ axis: -1, sizes: [channels, channels] }) as [Value, Value];
    const u = causalConv(l, mixed, kernel, channels).silu();
    const [steps, into, out] = project('x_proj', u, rank + 2 * state).split({ axis: -1, sizes: [rank, state, state] }) as [Value, Value, Value];
    const bound = 1 / Math.sqrt(rank), rule = (name: string, ...args: number[]) => ({ rule: name, args });
    const delta = linear(steps, channels, { name: 'dt_proj', init: rule('uniform', -bound, bound), biasInit: rule('softplus_inverse', 1e-3, 0.1) });
    const a = l.param('A_log', undefined, rule('log_range'), [channels, state]).exp().neg(), d = l.param('D', undefined, 1, [channels]);
    const [begin, keep] = carried(l, 'ssm_state', x.shape[1]!, [x.shape[0]!, channels, state]);
    const [y, last] = u.selectiveScan(delta.softplus(), a, into, out, begin);
    keep(last);
    return project('out_proj', y.add(u.mul(d)).mul(gate.silu()), width);
  });
}

/** A depthwise convolution of x, [batch, time, channels], over each step and the kernel − 1 before it, which begin as zeros. */
function causalConv(l: Layer, x: Value, kernel: number, channels: number): Value {
  let y = x;
  if (kernel > 1) {
    const [batch, time] = x.shape as [number, number], [before, keep] = carried(l, 'conv_state', time, [batch, kernel - 1, channels]);
    y = l.b.concatenate([before, x], 1);
    keep(y.slice({ start: [0, time, 0], size: [batch, kernel - 1, channels], stride: [1, 1, 1] }));
  }
  return conv1d(y, channels, kernel, { name: 'conv1d', groups: channels });
}
