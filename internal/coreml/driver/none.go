//go:build !cgo || !(darwin || linux)

package driver

import (
	"runtime"
)

// Open returns Core ML, or an error of kind [native.ErrUnavailable] that names what is missing.
func Open() (Runtime, error) { return nil, unavailable(missing(runtime.GOOS)) }

// missing returns what a program for a system lacks.
func missing(goos string) string {
	if goos == "darwin" {
		return "this program was built without cgo, by which Core ML is called: build it with CGO_ENABLED=1 and the command line tools of Xcode"
	}
	return "the system is " + goos + "; Core ML needs macOS or iOS, coreml.New writes models on any system"
}
