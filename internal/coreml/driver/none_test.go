//go:build !cgo || !(darwin || linux)

package driver

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/native"
)

func TestMissingDriverErrorNamesTheReason(t *testing.T) {
	for goos, want := range map[string]string{"darwin": "CGO_ENABLED=1", "windows": "the system is windows; Core ML needs", "linux": "the system is linux; Core ML needs"} {
		if got := missing(goos); !strings.Contains(got, want) {
			t.Errorf("on %s: %s", goos, got)
		}
	}
	if _, err := Open(); !errors.Is(err, native.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
}
