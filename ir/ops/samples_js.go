package ops

// withSamples is false: the wasm module does not use the samples.
const withSamples = false
