/**
 * Losses over a builder beside those of ops, with PyTorch's formulas and defaults. They build on values of one float type, which are broadcast.
 *
 * @module
 */

export { cosineEmbedding, gaussianNLL, type GaussianOptions, hingeEmbedding, klDiv, type KLOptions, type MarginOptions, marginRanking, poissonNLL, type PoissonOptions, type Reduction, softMargin, tripletMargin, type TripletOptions } from './functions/losses.js';
