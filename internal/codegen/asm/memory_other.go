//go:build !unix && !windows

package asm

import "errors"

func mapCode([]byte) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapCode([]byte) error { return nil }
