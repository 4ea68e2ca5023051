//go:build !cgo || !linux || !(amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

func init() { _ = native.Register(Backend()) }

// Backend returns the backend.
func Backend() native.Backend { return none(Name) }

// none is the backend, by name, in a program that cannot call the driver.
type none string

// unavailable returns the error of all calls.
func (n none) unavailable() error {
	why := errors.New("this program was built without cgo: build it with CGO_ENABLED=1 and a C compiler")
	if system := runtime.GOOS + "/" + runtime.GOARCH; system != "linux/amd64" && system != "linux/arm64" {
		why = fmt.Errorf("the system is %s; CUDA needs linux/amd64 or linux/arm64", system)
	}
	return &native.Error{Backend: string(n), Call: "probe", Kind: native.ErrUnavailable, Err: why}
}

func (n none) Name() string                     { return string(n) }
func (n none) Probe() error                     { return n.unavailable() }
func (n none) Info() native.Info                { return native.Info{} }
func (n none) Device(number int) native.Backend { return none(nameOf(number)) }

func (n none) Support(*ir.Node) native.Support {
	return native.Support{Level: native.Unsupported, Reason: n.unavailable().Error()}
}

func (n none) Compile(context.Context, *ir.Module, native.Options) (native.Program, error) {
	return nil, n.unavailable()
}
