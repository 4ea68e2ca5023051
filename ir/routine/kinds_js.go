package routine

// kinds has no decoders: a page calls no library and has no collectives.
var kinds map[string]func(words []int) (Routine, error)
