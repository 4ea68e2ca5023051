package native_test

import (
	"errors"
	"fmt"
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
