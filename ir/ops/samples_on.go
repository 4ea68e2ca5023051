//go:build !js

package ops

// withSamples enables the samples of definitions, and the reference implementations of
// matrix ops. Functions that build samples check it first, so that the compiler and the
// linker drop them otherwise.
const withSamples = true
