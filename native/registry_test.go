package native_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// numbered is a backend with several devices.
type numbered struct {
	native.Backend
	name string
}

func (n numbered) Name() string { return n.name }

func (n numbered) Device(number int) native.Backend {
	return numbered{name: fmt.Sprintf("several:%d", number)}
}

func TestADeviceOfSeveralIsNamedByItsNumber(t *testing.T) {
	if err := native.Register(numbered{name: "several"}); err != nil {
		t.Fatal(err)
	}
	if err := native.Register(nil); !errors.Is(err, ir.ErrName) {
		t.Errorf("no backend: %v", err)
	}
	for _, name := range []string{"several", "several:0", "several:12"} {
		if b, err := native.Lookup(name); err != nil || b.Name() != name {
			t.Errorf("%s is %v, %v", name, b, err)
		}
	}
	for _, name := range []string{"several:", "several:-1", "several:x", "several:1:2", "several:99999999999"} {
		if _, err := native.Lookup(name); !errors.Is(err, ir.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLookupNamesWhatServesInstead(t *testing.T) {
	for name, want := range map[string]string{"vulkan": `"webgpu:vulkan"`, "ROCm": `"webgpu" runs on AMD's GPUs`, "mps": `"metal"`, "tpu": "no backend for TPUs"} {
		if _, err := native.Lookup(name); !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", name, err, want)
		}
	}
}
