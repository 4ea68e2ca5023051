/**
 * Probability distributions over a builder: numbers that are drawn, logarithms of densities, moments and divergences. Parameters
 * are values of one float type, which are broadcast, or numbers beside a value; their common shape is that of a batch of
 * independent distributions. `categorical`, `dirichlet` and `multinomial` have one further axis, the last.
 *
 * ```ts
 * const z = normal(mean, deviation), loss = kl(z, normal(mean.mul(0), 1)), x = z.sample(key);
 * ```
 *
 * A number depends on the key, u32[2], and its position alone. Numbers have derivatives by the parameters, those of gamma, beta,
 * dirichlet and studentT's freedom the first and second; numbers of discrete distributions and of a mixture have none.
 *
 * @module
 */

export { bernoulli, type Bernoulli, binomial, type Binomial, categorical, type Categorical, mixture, type Mixture, multinomial, type Multinomial, poisson, type Poisson } from './functions/discrete.js';
export { type Distribution, kl, randInt } from './functions/dist.js';
export { gumbel, laplace, type Located, logistic, normal, studentT, type StudentT, uniform, type Uniform } from './functions/location.js';
export { truncatedNormal, type TruncatedNormal } from './functions/truncated.js';
export { beta, type Beta, dirichlet, type Dirichlet, exponential, type Exponential, gamma, type Gamma } from './functions/positive.js';
