//go:build !js

package loop

// withAsync is true where a target may have asynchronous statements, or fragments.
const withAsync = true
