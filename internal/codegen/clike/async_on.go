//go:build !js

package clike

// withAsync is true where a language may have asynchronous copies, MMA or fragments.
const withAsync = true
