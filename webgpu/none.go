//go:build !cgo || js

package webgpu

import (
	"context"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

func init() { _ = native.Register(none{}) }

// Backend returns the backend.
func Backend() native.Backend { return none{} }

// none is the backend of a program that was built without cgo.
type none struct{}

var errNone = &native.Error{
	Backend: Name, Call: "probe", Kind: native.ErrUnavailable,
	Err: errors.New("this program was built without cgo: build it with CGO_ENABLED=1 and a C compiler"),
}

func (none) Name() string      { return Name }
func (none) Probe() error      { return errNone }
func (none) Info() native.Info { return native.Info{} }

// Variants implements [native.VariantDevice].
func (none) Variants() []string { return slices.Clone(apis) }

// Variant implements [native.VariantDevice].
func (none) Variant(name string) native.Backend {
	if !slices.Contains(apis, name) {
		return nil
	}
	return none{}
}

func (none) Support(*ir.Node) native.Support {
	return native.Support{Level: native.Unsupported, Reason: errNone.Err.Error()}
}

func (none) Compile(context.Context, *ir.Module, native.Options) (native.Program, error) {
	return nil, errNone
}
