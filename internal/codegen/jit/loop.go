//go:build amd64 || arm64

package jit

// control writes the loops over lanes and rows.
type control struct{ *registers }
