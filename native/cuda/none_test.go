//go:build !cgo || !linux || !(amd64 || arm64)

package cuda_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	_ "github.com/rlx-go/rlx/native/cuda"
)

func TestMissingCUDAErrorNamesTheReason(t *testing.T) {
	for _, name := range []string{"cuda", "cuda:1"} {
		b, err := native.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		_, failed := b.Compile(context.Background(), &ir.Module{}, native.Options{})
		for _, err := range []error{b.Probe(), failed} {
			var typed *native.Error
			if !errors.Is(err, native.ErrUnavailable) || !errors.As(err, &typed) || typed.Backend != name || typed.Err == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
