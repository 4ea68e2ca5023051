//go:build !unix && !windows

package jit

import "errors"

func mapCode([]byte) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapCode([]byte) error { return nil }
