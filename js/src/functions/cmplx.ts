// Complex numbers.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { calling, full } from './check.js';

/** A function of the parts of complex operands of one type. */
function ofParts(called: Called, name: string, operands: readonly Value[], build: (re: Value, im: Value) => Value): Value {
  return calling(called, `cmplx.${name}`, operands, undefined, '', (c) => {
    const [z] = operands as [Value];
    for (const { dtype } of operands) if (!/^c\d/.test(dtype) || dtype !== z.dtype) c.fail('dtype', `an operand is ${dtype}: all must be of one complex type`);
    return build(z.real(), z.imag());
  });
}

/** r·(cos θ + i·sin θ), of values of one type. */
const turned = (r: Value, theta: Value): Value => r.mulZero(theta.cos()).complex(r.mulZero(theta.sin()));
const logarithm = (re: Value, im: Value): Value => re.hypot(im).log().complex(im.atan2(re));

/** |z|. The derivative at 0 is 0. */
export function abs(z: Value): Value { return ofParts(abs, 'abs', [z], (re, im) => re.hypot(im)); }

/** The argument of z, in [−π, π]. The derivative at 0 is 0. */
export function angle(z: Value): Value { return ofParts(angle, 'angle', [z], (re, im) => im.atan2(re)); }

/** r·(cos θ + i·sin θ), for r and θ of one float type. */
export function polar(r: Value, theta: Value): Value {
  return calling(polar, 'cmplx.polar', [r, theta], undefined, '', (c) => {
    c.floats();
    return turned(r, theta);
  });
}

/** e^z. It is 0 where the real part is −∞. */
export function exp(z: Value): Value { return ofParts(exp, 'exp', [z], (re, im) => turned(re.exp(), im)); }

/** The principal logarithm, log|z| + i·angle(z). */
export function log(z: Value): Value { return ofParts(log, 'log', [z], logarithm); }

/** The principal square root, whose real part is not negative. At 0 the derivative is 0. It is ∞ ± i·∞ where the imaginary part is infinite, as in C. */
export function sqrt(z: Value): Value {
  return ofParts(sqrt, 'sqrt', [z], (re, im) => {
    const right = re.ge(0), square = re.hypot(im).mul(0.5).add(right.select(re, re.neg()).mul(0.5)), none = square.eq(0), one = full(re, 1);
    const root = none.select(one, square).sqrt(), finite = im.mul(0.5).div(root);
    const infinite = im.isInf(), inf = full(im, Infinity); // then both parts are, for every real part
    const other = infinite.select(inf.copysign(im), finite), t = infinite.select(inf, none.select(full(re, 0), root));
    return right.select(t, other.mul(one.copysign(im))).complex(right.select(other, t.copysign(im)));
  });
}

/** z^w = e^(w·log z); 0^w is 0, and 1 for w = 0. */
export function pow(z: Value, w: Value): Value {
  return ofParts(pow, 'pow', [z, w], () => {
    const zeroBase = z.real().hypot(z.imag()).eq(0), zeroPower = w.real().hypot(w.imag()).eq(0), one = (x: Value) => full(x.real(), 1).complex(full(x.real(), 0)), zero = (x: Value) => x.sub(x);
    const base = zeroBase.select(one(z), z), product = w.mul(logarithm(base.real(), base.imag())), y = turned(product.real().exp(), product.imag());
    return zeroBase.select(zeroPower.select(one(w), zero(one(w))), y);
  });
}

/** sin(x)·cosh(y) + i·cos(x)·sinh(y) for z = x + i·y. */
export function sin(z: Value): Value { return ofParts(sin, 'sin', [z], (x, y) => x.sin().mulZero(y.cosh()).complex(x.cos().mulZero(y.sinh()))); }

/** cos(x)·cosh(y) − i·sin(x)·sinh(y) for z = x + i·y. */
export function cos(z: Value): Value { return ofParts(cos, 'cos', [z], (x, y) => x.cos().mulZero(y.cosh()).complex(x.sin().mulZero(y.sinh()).neg())); }

/** sinh(x)·cos(y) + i·cosh(x)·sin(y) for z = x + i·y. */
export function sinh(z: Value): Value { return ofParts(sinh, 'sinh', [z], (x, y) => x.sinh().mulZero(y.cos()).complex(x.cosh().mulZero(y.sin()))); }

/** cosh(x)·cos(y) + i·sinh(x)·sin(y) for z = x + i·y. */
export function cosh(z: Value): Value { return ofParts(cosh, 'cosh', [z], (x, y) => x.cosh().mulZero(y.cos()).complex(x.sinh().mulZero(y.sin()))); }
