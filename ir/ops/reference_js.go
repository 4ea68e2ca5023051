package ops

// withReferences is false: the wasm module does not call the reference implementations.
const withReferences = false
