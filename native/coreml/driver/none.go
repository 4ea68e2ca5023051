//go:build !cgo || !(darwin || linux)

package driver

import (
	"runtime"
)

// Open returns Core ML, or an error of kind [native.ErrUnavailable] that says what is
// missing.
func Open() (Runtime, error) {
	if runtime.GOOS == "darwin" {
		return nil, unavailable("this program was built without cgo, by which Core ML is called: build it with CGO_ENABLED=1 and the command line tools of Xcode")
	}
	return nil, unavailable("there is no Core ML on " + runtime.GOOS + ", on Apple's systems alone; models can be written here, by coreml.New")
}
