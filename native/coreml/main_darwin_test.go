//go:build cgo

package coreml_test

// alive is 0, as Core ML does not report it.
func alive() int { return 0 }
