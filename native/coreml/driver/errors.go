package driver

import (
	"errors"

	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
)

// unavailable says what is missing.
func unavailable(why string) error {
	return &native.Error{Backend: coreml.Name, Call: "load", Kind: native.ErrUnavailable, Err: errors.New(why)}
}
