/**
 * Statistics over a builder: reductions without NaN, covariances, distances, order statistics.
 *
 * @module
 */

export { argPartition, cdist, corrCoef, cov, kthSmallest, nanMax, nanMean, nanMin, nanStd, nanSum, nanVar } from './functions/stats.js';
