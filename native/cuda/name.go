package cuda

import "strconv"

// nameOf returns the name of the backend for a device: "cuda" for the first.
func nameOf(number int) string {
	if number == 0 {
		return Name
	}
	return Name + ":" + strconv.Itoa(number)
}
