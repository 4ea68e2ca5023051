package coreml

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Name is the backend's name.
const Name = "coreml"

// The name can only be taken by another package that calls itself coreml, which
// then serves in its place.
func init() { _ = native.Register(Backend()) }

// Backend returns the backend, which tells by [Support] what models can be made
// of. It does not run modules yet: models are written by [New] and run by [Load].
func Backend() native.Backend { return backend{} }

type backend struct{}

func (backend) Name() string                      { return Name }
func (backend) Info() native.Info                 { return native.Info{} }
func (backend) Support(n *ir.Node) native.Support { return Support(n) }
func (backend) Probe() error                      { return unavailable("probe") }
func (backend) Compile(context.Context, *ir.Module, native.Options) (native.Program, error) {
	return nil, unavailable("compile")
}

// unavailable says what is missing for modules to run here.
func unavailable(call string) error {
	why := errors.New("modules are not run by Core ML yet: write them by coreml.New and run them by coreml.Load and coreml/driver")
	if runtime.GOOS != "darwin" {
		why = fmt.Errorf("there is no Core ML on %s; models can be written here, by coreml.New, and run on a Mac", runtime.GOOS)
	}
	return &native.Error{Backend: Name, Call: call, Kind: native.ErrUnavailable, Err: why}
}
