//go:build !js

package ops

// withSamples says that definitions carry their samples, and ops on matrices their
// plain meaning beside the body. Functions that make samples ask for it first, so
// that without it the compiler drops all the rest of them, and the linker what
// only they need.
const withSamples = true
