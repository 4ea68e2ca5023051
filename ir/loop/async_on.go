//go:build !js

package loop

// withAsync is false where no target has asynchronous work.
const withAsync = true
