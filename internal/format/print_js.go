package format

// Sprintf formats by the verbs of this package.
func Sprintf(text string, args ...any) string { return sprintf(text, args) }

// Errorf returns an error with a formatted text, which wraps the argument of %w.
func Errorf(text string, args ...any) error { return errorf(text, args) }
