//go:build !(cgo && linux && (amd64 || arm64))

package mpi

import (
	"context"
	"errors"

	"github.com/rlx-go/rlx/native/collective"
)

// Variable is the environment variable with the path of MPI's library.
const Variable = "RLX_MPI"

var errNone = errors.New("MPI needs Linux on amd64 or arm64, and cgo")

// Available returns an error: this build has no MPI.
func Available() error { return errNone }

// Join returns an error of kind [collective.ErrJoin]: this build has no MPI.
func Join(context.Context, collective.Options) (*collective.Group, error) {
	return nil, &collective.Error{Kind: collective.ErrJoin, Size: 1, Peer: -1, Err: errNone}
}
