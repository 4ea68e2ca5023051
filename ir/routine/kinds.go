//go:build !js

package routine

// kinds holds the decoders of routines by name.
var kinds = map[string]func(words []int) (Routine, error){
	"product": productOf, "factor": factorOf, "collective": collectiveOf, "device_index": deviceIndexOf,
}
