package nn_test

import "log"

// check ends an example at an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// must returns x unless there is an error.
func must[T any](x T, err error) T {
	check(err)
	return x
}
