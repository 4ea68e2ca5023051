//go:build cgo

package driver_test

// alive is 0, as Core ML does not tell.
func alive() int { return 0 }
