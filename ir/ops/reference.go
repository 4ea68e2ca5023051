//go:build !js

package ops

// withReferences enables the reference implementations of ops that have a body too, which
// are as large as the bodies. Functions check it first, so that the compiler and the linker
// drop what follows in the wasm module.
const withReferences = true
