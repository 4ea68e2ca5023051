//go:build !js

package clike

// withAsync is false where no language has asynchronous work.
const withAsync = true
