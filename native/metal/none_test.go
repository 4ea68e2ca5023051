//go:build !cgo || !(darwin || linux)

package metal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

func TestMissingDriverErrorNamesTheReason(t *testing.T) {
	for goos, want := range map[string]string{"darwin": "CGO_ENABLED=1", "windows": "the system is windows", "linux": "the system is linux"} {
		if got := missing(goos); !strings.Contains(got, want) {
			t.Errorf("on %s: %s", goos, got)
		}
	}
	b := Backend()
	_, failed := b.Compile(context.Background(), &ir.Module{}, native.Options{})
	for _, err := range []error{b.Probe(), failed} {
		if !errors.Is(err, native.ErrUnavailable) || !strings.Contains(err.Error(), "Metal") {
			t.Errorf("the error is %v", err)
		}
	}
	if b.Info() != (native.Info{}) || b.Support(nil).Level != native.Unsupported {
		t.Error("something is claimed of a device that is not there")
	}
}
