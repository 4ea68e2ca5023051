// Package dist provides probability distributions as functions over a builder: numbers that are drawn,
// logarithms of densities, moments and divergences.
//
//	z := dist.Normal{Loc: mean, Scale: deviation}
//	kl := dist.KL(b, z, prior)
//	x := z.Sample(b, key)
//
// The parameters of a distribution are values of one float type, which broadcast as those of elementwise
// ops do. Their common shape is that of a batch of independent distributions; Categorical, Dirichlet
// and Multinomial have one further axis, the last.
//
// Methods are calls of a builder that add ops, some by package special; ops are what the compiler knows of them. Start
// reading at dist.go, which has the interface, then location.go.
//
// # Numbers
//
// A number depends on the key, u32[2], and its position alone, as those of the random ops do. Numbers of
// Normal, Uniform, Exponential, Laplace, Gumbel, Logistic, StudentT, TruncatedNormal, Gamma, Beta and
// Dirichlet have derivatives by the parameters; those of the last three, and by the freedom of StudentT,
// are implicit ones, up to second order (see [special.GammaQuantileSlope]). Numbers of discrete distributions and of
// [Mixture] have none: they are constants to derivatives.
//
// # Precision
//
// Densities, probabilities, entropies and divergences are accurate for parameters of any size: they are sums whose terms
// do not cancel ([special.KLDiv], [special.StirlingRemainder]). In f32 tests hold their relative errors below 10⁻⁵, for
// parameters from 10⁻³ to 10⁷. The rounding of a product adds to that what a rounding of x would: of Rate·x, in a
// density of Gamma with Shape 10⁶ at 4 standard deviations from the mean, up to 3·10⁻⁴.
//
// # Errors
//
// Where a distribution has no formula for a method, the builder gets an error of kind
// [ir.ErrUnsupported]. Probabilities of arguments outside a distribution's support are 0, the density at NaN is NaN, and
// parameters outside their domain give NaN or another meaningless number.
package dist
