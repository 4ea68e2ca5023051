//go:build !js

package fusion

// withTensorCores is true where a target may have tensor cores.
const withTensorCores = true
