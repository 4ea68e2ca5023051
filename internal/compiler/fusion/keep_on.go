//go:build !js

package fusion

// withTensorCores is false where [Options.TensorCores] has no use.
const withTensorCores = true
