//go:build !js

package emit

// WithMma reports whether some target has multiply-adds of warp groups.
const WithMma = true
