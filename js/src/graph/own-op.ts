// Ops of a program's own.

import { checkOptions, classOf, need, RlxError } from '../values/errors.js';
import { type Alike, checkFunction, type GraphBuilder, Value, type Values } from './builder.js';

/** What an op of a program's own computes. */
export interface OwnOp<O extends Values = Values> {
  /** Builds the result from the operands, by other ops. It declares no parameters. */
  body: (b: GraphBuilder, ...operands: Alike<O>) => Value;
  /**
   * The tangent of the result, from the operands and a tangent for each of them that is a float; linear in the tangents. That
   * of the body if not given. The body then uses nothing but its operands.
   */
  jvp?: (b: GraphBuilder, operands: Alike<O>, tangents: Value[]) => Value;
}

/**
 * An op with a body of other ops, as a function of values. Its name labels the nodes it adds, in
 * errors and kernels. With `jvp` it has its own derivative, to any order and in both modes.
 *
 * ```ts
 * const softSign = defineOp<[Value]>('soft_sign', {
 *   body: (_, x) => x.mul(x.square().add(1).rsqrt()),
 *   jvp: (_, [x], [t]) => t!.mul(x.square().add(1).pow(-1.5)),
 * });
 * const y = softSign(x);
 * ```
 */
export function defineOp<O extends Values>(name: string, op: OwnOp<O>): (...operands: O) => Value {
  if (typeof name !== 'string' || !/^[a-z]\w*$/i.test(name)) throw new RlxError('name', `defineOp: the name is ${typeof name === 'string' ? `'${name}'` : classOf(name)}: it must be a word`, { op: 'defineOp' });
  checkOptions(`op ${name}`, op, 'body jvp');
  const { body, jvp } = op ?? {} as OwnOp<O>;
  checkFunction(`op ${name}: the body is built by`, body);
  if (jvp !== undefined) checkFunction(`op ${name}: the tangent is built by`, jvp);
  return (...operands) => {
    const b = operands.find((one) => one instanceof Value)?.builder;
    need(b, 'graph', `${name}: the first operand`, 'a value of a graph', operands[0]);
    return b.scope(name, () => jvp
      ? b.customJVP(operands, (inner, values) => [body(inner, ...values as Alike<O>)], (inner, values, tangents) => [jvp(inner, values as Alike<O>, tangents)])[0]
      : body(b, ...operands as unknown as Alike<O>)) as Value;
  };
}
