//go:build !js

package format

import "fmt"

// Sprintf formats by the verbs of this package.
func Sprintf(text string, args ...any) string { return fmt.Sprintf(text, args...) }

// Errorf returns an error with a formatted text, which wraps the argument of %w.
func Errorf(text string, args ...any) error { return fmt.Errorf(text, args...) }
