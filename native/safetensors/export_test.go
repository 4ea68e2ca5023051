package safetensors

// TemporaryPrefix begins the names of the files that are written in place of one.
func TemporaryPrefix(base string) string { return temporaryPrefix(base) }
