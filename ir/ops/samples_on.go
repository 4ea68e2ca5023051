//go:build !js

package ops

// withSamples says that definitions carry their samples.
const withSamples = true
