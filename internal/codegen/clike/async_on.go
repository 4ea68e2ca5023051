//go:build !js

package clike

// withAsync is true where a language may have asynchronous copies and MMA.
const withAsync = true
