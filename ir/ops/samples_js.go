package ops

// withSamples says that definitions carry their samples; the wasm module has
// no use for them.
const withSamples = false
