// Eigenvalues and eigenvectors of square matrices, as in the Go package ir/cmplx, whose comments describe the steps.

import type { Value } from '../graph/builder.js';
import type { Called } from '../graph/caller-stack.js';
import { part } from '../graph/part.js';
import { broadcastTo, calling, counting, epsilon, full, numbers } from './check.js';
import { sqrt } from './cmplx.js';

/** How many times eigenvalues can be differentiated by the formulas. */
const orders = 2;

/**
 * The eigenvalues w, [..., n], of matrices [..., n, n] of f32 or c64, and their eigenvectors as the columns of v, [..., n, n], both
 * complex. `eigh` is for symmetric matrices, with less work. Eigenvalues ascend by their real parts, and equal ones by
 * their imaginary parts; those of a real matrix are real or in pairs of conjugates exactly. An eigenvector v has length 1,
 * and the sum of vᵢ/(i+√2) over its elements, counted from 0, is real and not negative. There are first and second derivatives,
 * infinite for repeated eigenvalues. The algorithm is a loop of some 5·n² short steps, made for matrices of up to some dozens
 * of rows.
 */
export function eig(x: Value): { w: Value; v: Value } { return ofMatrices(eig, 'eig', x); }

/** The eigenvalues of {@link eig}. */
export function eigvals(x: Value): Value { return ofMatrices(eigvals, 'eigvals', x).w; }

function ofMatrices(called: Called, name: string, x: Value): { w: Value; v: Value } {
  return calling(called, `cmplx.${name}`, [x], undefined, '', (c) => {
    if (!/^(f32|f64|c\d+)$/.test(x.dtype)) c.fail('dtype', `the operand is ${x.dtype}: it must be of f32, f64 or a complex type`);
    c.shape(x.shape.length >= 2, 'the operand must be matrices');
    const n = c.size(x, -1, 'the operand'), m = c.size(x, -2, 'the operand');
    c.shape(n === m && n > 0, 'the operand must be square matrices, not empty');
    const [w, v] = differentiable(x, orders);
    return { w, v };
  });
}

function differentiable(x: Value, orders: number): [w: Value, v: Value] {
  if (orders === 0) return eigen(x);
  return x.builder.customJVP([x], (_, [x]) => eigen(x), (_, [x], [t]) => {
    const [w, v] = differentiable(x, orders - 1);
    return tangents(w, v, complexOf(t!));
  }) as [Value, Value];
}

/** With p = v⁻¹·dx·v, dw is the diagonal of p and dv = v·(f∘p) + v·diag(c), where f[i,j] = 1/(w[j] − w[i]) off the diagonal; c keeps the normalization. */
function tangents(w: Value, v: Value, dx: Value): Value[] {
  const p = solve(v, dx.matmul(v)), own = onDiagonal(v), gaps = w.expandDims(-2).sub(w.expandDims(-1));
  const u = v.matmul(keep(own.not(), p.div(own.select(ones(gaps), gaps))));
  const length = v.conj().mul(u).reduceSum([-2], true).real(), turn = weighted(u).imag().div(weighted(v).real());
  return [p.diagonal(0), u.add(v.mul(length.complex(turn).neg()))];
}

/** The sums of vᵢ/(i+√2) of columns v, [..., 1, n]. */
function weighted(v: Value): Value {
  const n = sizeOf(v), weights = counting(n).map((i) => 1 / (i + Math.SQRT2));
  return v.mul(complexOf(numbers(v.real(), weights, [n, 1]))).reduceSum([-2], true);
}

/** a⁻¹·y, by a system of real numbers. */
function solve(a: Value, y: Value): Value {
  const { builder: b } = a, re = a.real(), im = a.imag(), n = sizeOf(a);
  const both = b.concatenate([b.concatenate([re, im.neg()], -1), b.concatenate([im, re], -1)], -2), z = both.solve(b.concatenate([y.real(), y.imag()], -2));
  return part(z, -2, 0, n).complex(part(z, -2, n, n));
}

const complexOf = (x: Value): Value => x.dtype.startsWith('c') ? x : x.complex(full(x, 0));
const ones = (x: Value): Value => complexOf(full(x.real(), 1));
const zeros = (x: Value): Value => x.dtype.startsWith('c') ? complexOf(full(x.real(), 0)) : full(x, 0);
const sizeOf = (x: Value): number => x.shape.at(-1) as number;
const size = (x: Value): Value => x.real().hypot(x.imag());
const squares = (x: Value): Value => x.real().square().add(x.imag().square());

/** The positions along an axis, in the shape of a value. */
const along = (x: Value, axis: number): Value => x.builder.iota({ dtype: 'i32', axis: x.shape.length + axis, shape: x.shape });
const onDiagonal = (x: Value): Value => along(x, -2).eq(along(x, -1));

/** x where the condition holds, and 0 elsewhere. */
const keep = (condition: Value, x: Value): Value => condition.select(x, zeros(x));

/** Moves an axis, counted from the end where it is negative. */
function moved(x: Value, from: number, to: number): Value {
  const rank = x.shape.length, perm = counting(rank);
  perm.splice(to < 0 ? to + rank : to, 0, ...perm.splice(from < 0 ? from + rank : from, 1));
  return x.transpose(perm);
}

/** x/|x|, 1 where x is 0. */
function phase(x: Value): Value {
  const length = size(x), none = length.eq(0);
  return none.select(ones(x), x.div(complexOf(none.select(full(length, 1), length))));
}

/** Eigenvalues and eigenvectors by a Schur decomposition: x is z·t·zᴴ for a triangular t. */
function eigen(given: Value): [w: Value, v: Value] {
  const x = complexOf(given), largest = size(x).reduceMax([-2, -1], true), by = largest.gt(0).select(largest, full(largest, 1));
  const [t, z] = schur(x.div(complexOf(by))), found = t.diagonal(0), all = z.matmul(triangularVectors(t)), w = given.dtype.startsWith('c') ? found : paired(found);
  const units = all.div(complexOf(squares(all).reduceSum([-2], true).sqrt())), v = units.mul(phase(weighted(units)).conj());
  const first = w.imag().argsort({ axis: -1 }), once = w.takeAlongAxis(first, -1, 'clip'), second = once.real().argsort({ axis: -1 }); // stable
  const order = first.takeAlongAxis(second, -1, 'clip').expandDims(-2);
  return [once.takeAlongAxis(second, -1, 'clip').mul(complexOf(by.squeeze([-1]))), v.takeAlongAxis(broadcastTo(order, v.shape), -1, 'clip')];
}

/** Eigenvalues of a real matrix as exact conjugates: each is the mean of itself and of the conjugate of that which is the nearest to its conjugate. */
function paired(w: Value): Value {
  const distance = size(w.conj().expandDims(-1).sub(w.expandDims(-2))), other = w.takeAlongAxis(distance.argmin({ axis: -1 }), -1, 'clip'), sum = w.add(other.conj());
  return sum.mul(complexOf(full(sum.real(), 0.5)));
}

/** Eigenvectors of triangular matrices as the columns of a triangular matrix, row by row from the last. Columns are scaled down where they would grow. */
function triangularVectors(t: Value): Value {
  const { builder: b } = t, steps = b.iota({ dtype: 'i32', axis: 0, shape: [sizeOf(t)] });
  return b.scan({ carries: [zeros(t)], xs: [steps], reverse: true }, (_, __, [x], [k]) => {
    const i = along(t, -2), j = along(t, -1), here = i.eq(k), row = keep(here.and(j.gt(i)), t).reduceSum([-2]);
    const sum = row.expandDims(-1).mul(x).reduceSum([-2]), own = keep(here.and(i.eq(j)), t).reduceSum([-2, -1]), gap = t.diagonal(0).sub(own.expandDims(-1));
    const least = full(gap.real(), epsilon(gap.real())), y = sum.div(size(gap).lt(least).select(complexOf(least), gap)), place = along(y, -1); // of elements up to 1
    const next = place.eq(k).select(ones(y), keep(place.gt(k), y)), by = size(next).max(1);
    return { carries: [here.select(broadcastTo(next.expandDims(-2), x.shape), x).div(complexOf(by.expandDims(-2)))] };
  }).carries[0];
}

/**
 * A triangular t and a unitary z with x = z·t·zᴴ, for elements up to 1: by Householder's reduction to Hessenberg form, and the QR
 * algorithm with Wilkinson's shifts (Golub and Van Loan, Matrix Computations, chapter 7).
 */
function schur(x: Value): [t: Value, z: Value] {
  const { builder: b } = x, n = sizeOf(x), unit = keep(onDiagonal(x), ones(x));
  if (n < 2) return [x, unit];
  const [form, by] = n > 2 ? hessenberg(x, unit, n) : [x, unit], start = deflated(form);
  const out = b.whileLoop({ carries: [b.full('i32', [], 0), start.first, start.last, start.h, moved(by, -1, 0)], maxSteps: 30 * n },
    (_, __, c) => c[2].gt(0).any(), (_, __, c) => {
      const step = c[0].add(1), [turned, columns] = qrStep(step, c[1], c[2], c[3], c[4]), { h, first, last } = deflated(turned);
      return [step, first, last, h, columns] as const;
    });
  return [out[3], moved(out[4], 0, -1)];
}

/** zᴴ·x·z, which is 0 below the first subdiagonal, and z, from that of before. */
function hessenberg(x: Value, z: Value, n: number): [h: Value, z: Value] {
  const { builder: b } = x;
  const { carries } = b.scan({ carries: [x, z], xs: [b.iota({ dtype: 'i32', axis: 0, shape: [n - 2] })] }, (_, __, [x, z], [k]) => {
    const i = along(x, -2), column = keep(along(x, -1).eq(k).and(i.gt(k)), x).reduceSum([-1], true), isHead = along(column, -2).eq(k.add(1));
    const head = keep(isHead, column).reduceSum([-2], true), length = squares(column).reduceSum([-2], true).sqrt();
    const u = column.add(phase(head).mul(complexOf(length)).mul(keep(isHead, ones(column)))), half = length.mul(length.add(size(head))), none = half.eq(0); // of |u|²
    const scale = complexOf(none.select(full(half, 0), none.select(full(half, 1), half).reciprocal())), across = u.swapAxes({ axis1: -1, axis2: -2 });
    const left = x.sub(scale.mul(u).mul(u.conj().mul(x).reduceSum([-2], true)));
    const right = (m: Value): Value => m.sub(scale.mul(m.mul(across).reduceSum([-1], true)).mul(across.conj()));
    return { carries: [right(left), right(z)] };
  });
  return [carries[0], carries[1]];
}

/** Sets what is negligible below the diagonal to 0; first and last are the rows of the last block that is not triangular, last 0 if there is none. */
function deflated(given: Value): { h: Value; first: Value; last: Value } {
  const i = along(given, -2), j = along(given, -1), h = keep(i.le(j.add(1)), given), w = size(h.diagonal(0)), below = size(h.diagonal(-1)), n = sizeOf(w), eps = epsilon(w);
  const around = part(w, -1, 0, n - 1).add(part(w, -1, 1, n - 1)), isSmall = below.le(around.max(eps).mul(eps)), row = along(isSmall, -1).add(1);
  const last = keep(isSmall.not(), row).reduceMax([-1]), first = keep(isSmall.and(row.le(last.expandDims(-1))), row).reduceMax([-1]);
  const small = h.builder.concatenate([part(isSmall, -1, 0, 1), isSmall], -1).expandDims(-1); // isSmall is of the rows from 1
  return { h: keep(i.gt(j).and(broadcastTo(small, h.shape)).not(), h), first, last };
}

/** A step of the QR algorithm: with q·r = h − s·1 for a shift s, r·q + s·1 and the columns of z·q. q changes the rows from first to last alone. */
function qrStep(step: Value, first: Value, last: Value, given: Value, columns: Value): [h: Value, columns: Value] {
  const { builder: b } = given, n = sizeOf(given), shifts = keep(onDiagonal(given), broadcastTo(shiftOf(step, last, given), given.shape)), rows = moved(given.sub(shifts), -2, 0);
  const head = (x: Value): Value => part(x, 0, 0, 1).squeeze([0]), tail = (x: Value): Value => part(x, 0, 1, n - 1);
  const joined = (all: Value, end: Value): Value => b.concatenate([all, end.expandDims(0)], 0);
  // The rotation of rows k and k+1 is [[ā, b̄], [−b, a]].
  const up = b.scan({ carries: [head(rows)], xs: [tail(rows), b.iota({ dtype: 'i32', axis: 0, shape: [n - 1] })] }, (_, __, [upper], [lower, k]) => {
    const here = along(upper, -1).eq(k), at = (x: Value): Value => keep(here, x).reduceSum([-1], true), f = at(upper), g = at(lower), length = size(f).hypot(size(g));
    const rotates = k.ge(first).and(k.lt(last)).expandDims(-1).and(length.gt(0)), r = complexOf(rotates.select(length, full(length, 1)));
    const cos = rotates.select(f.div(r), ones(f)), sin = keep(rotates, g.div(r));
    return { carries: [cos.mul(lower).sub(sin.mul(upper))], ys: [cos.conj().mul(upper).add(sin.conj().mul(lower)), cos, sin] };
  });
  const both = b.concatenate([moved(moved(joined(up.ys[0], up.carries[0]), 0, -1), -2, 0), columns], -1);
  const across = b.scan({ carries: [head(both)], xs: [tail(both), up.ys[1], up.ys[2]] }, (_, __, [left], [right, cos, sin]) =>
    ({ carries: [right.mul(cos.conj()).sub(left.mul(sin.conj()))], ys: [left.mul(cos).add(right.mul(sin))] }));
  const turned = joined(across.ys[0], across.carries[0]);
  return [moved(part(turned, -1, 0, n), 0, -1).add(shifts), part(turned, -1, n, n)];
}

/** The eigenvalue of the last two rows of a block that is the nearest to its last element, [..., 1, 1]. Each tenth step has an exceptional one, as there are matrices that no other changes. */
function shiftOf(step: Value, last: Value, h: Value): Value {
  const i = along(h, -2), j = along(h, -1), end = last.expandDims(-1).expandDims(-1), previous = end.sub(1);
  const at = (row: Value, column: Value): Value => keep(i.eq(row).and(j.eq(column)), h).reduceSum([-2, -1], true);
  const s = at(end, end), r = at(end, previous), half = at(previous, previous).sub(s).mul(complexOf(full(s.real(), 0.5))), product = at(previous, end).mul(r);
  const root = sqrt(half.mul(half).add(product)), plus = half.add(root), minus = half.sub(root), under = size(plus).gt(size(minus)).select(plus, minus), none = size(under).eq(0);
  const usual = s.sub(keep(none.not(), product.div(none.select(ones(under), under)))), exceptional = s.add(complexOf(size(r).mul(0.75)));
  return keep(end.gt(0), step.rem(10).eq(0).select(exceptional, usual));
}
