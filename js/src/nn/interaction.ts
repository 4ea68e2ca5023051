// Products of features, for recommenders.

import type { Value } from '../graph/builder.js';
import { builderOf, inside, Layer } from './layer.js';

/**
 * The products of all pairs of features of x, [..., n, width], as the layer between the embeddings and the MLP of a recommender has
 * them: [..., n·(n−1)/2], those of feature 1 with 0, of 2 with 0 and 1, and so on (Naumov et al., Deep Learning Recommendation
 * Model). Features are embeddings of one width, such as `b.stack([dense, nn.embeddingBag(genres, 20, 16), nn.embedding(user, 1000, 16)], 1)`.
 */
export function dotInteraction(x: Value): Value {
  return inside(dotInteraction, builderOf(dotInteraction, x), () => {
    const l = new Layer(x, 'dotInteraction'), { shape } = x, lead = shape.slice(0, -2);
    if (shape.length < 2) l.fail('shape', 'x is [..., features, width]');
    const n = l.size(-2);
    if (n < 2) l.fail('shape', 'x has two features or more');
    const below: number[] = []; // the places of the pairs in the matrix of all products
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) below.push(i * n + j);
    return x.matmul(x.swapAxes({ axis1: -2, axis2: -1 })).reshape([...lead, n * n]).take(l.b.constant('i32', [below.length], Int32Array.from(below)), -1, 'clip');
  });
}
