package routine

// kinds holds the decoders of routines by name: no page has collectives.
var kinds = map[string]func(words []int) (Routine, error){"product": productOf}
