//go:build !cgo || !(darwin || linux)

package metal

import (
	"context"
	"errors"
	"runtime"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

func init() { _ = native.Register(Backend()) }

// Backend returns the backend.
func Backend() native.Backend { return none{} }

// none is the backend of a program that cannot call Metal.
type none struct{}

// unavailable says why.
func unavailable() error {
	return &native.Error{Backend: Name, Call: "probe", Kind: native.ErrUnavailable, Err: errors.New(missing(runtime.GOOS))}
}

// missing returns what a program for a system lacks.
func missing(goos string) string {
	if goos == "darwin" {
		return "this program was built without cgo: build it with CGO_ENABLED=1 and the command line tools of Xcode"
	}
	return "the system is " + goos + "; Metal needs macOS"
}

func (none) Name() string      { return Name }
func (none) Probe() error      { return unavailable() }
func (none) Info() native.Info { return native.Info{} }

func (none) Support(*ir.Node) native.Support {
	return native.Support{Level: native.Unsupported, Reason: unavailable().Error()}
}

func (none) Compile(context.Context, *ir.Module, native.Options) (native.Program, error) {
	return nil, unavailable()
}
