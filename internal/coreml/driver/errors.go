package driver

import (
	"errors"

	"github.com/rlx-go/rlx/native"
)

// Backend is the name of the backend, for errors.
const Backend = "coreml"

// unavailable returns an error that names what is missing.
func unavailable(why string) error {
	return &native.Error{Backend: Backend, Call: "open", Kind: native.ErrUnavailable, Err: errors.New(why)}
}
