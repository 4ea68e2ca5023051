//go:build !js

package group

// withTensorCores is false where [Options.TensorCores] has no use.
const withTensorCores = true
