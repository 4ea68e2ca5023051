package rlx_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

func TestTheCPUIsAlwaysThere(t *testing.T) {
	if err := rlx.Available("cpu"); err != nil {
		t.Error(err)
	}
	if rlx.Fastest().Err != nil {
		t.Errorf("the fastest device is %+v", rlx.Fastest())
	}
	s, err := rlx.Open("")
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Device(); d.Name == "" || d.Description == "" {
		t.Errorf("device %+v", d)
	}
}

func TestUnknownDeviceErrorListsDevices(t *testing.T) {
	_, err := rlx.Open("abacus")
	if !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), "abacus") || !strings.Contains(err.Error(), "cpu") {
		t.Errorf("error %v", err)
	}
}

// absent is a backend whose device is not there.
type absent struct{ native.Backend }

func (absent) Name() string      { return "absent" }
func (absent) Info() native.Info { return native.Info{} }
func (absent) Probe() error {
	return &native.Error{Backend: "absent", Call: "probe", Kind: native.ErrUnavailable, Err: errors.New("no driver")}
}

func TestMissingDeviceErrorNamesTheReason(t *testing.T) {
	if err := native.Register(absent{}); err != nil {
		t.Fatal(err)
	}
	if err := native.Register(absent{}); !errors.Is(err, ir.ErrName) {
		t.Errorf("registered twice: %v", err)
	}
	if _, err := rlx.Open("absent"); !errors.Is(err, native.ErrUnavailable) || !strings.Contains(err.Error(), "no driver") {
		t.Errorf("error %v", err)
	}
	if rlx.Fastest().Name == "absent" {
		t.Error("a missing device is the fastest")
	}
	found := false
	for _, d := range rlx.Devices() {
		found = found || d.Name == "absent" && errors.Is(d.Err, native.ErrUnavailable)
	}
	if !found {
		t.Errorf("devices %v", rlx.Devices())
	}
}

func TestFirstUnsupportedNamesTheNode(t *testing.T) {
	n, reason, err := rlx.FirstUnsupported(classifier(t), "cpu")
	if n != nil || reason != "" || err != nil {
		t.Errorf("%v %q %v", n, reason, err)
	}
	if err := native.Register(absent{}); err != nil && !errors.Is(err, ir.ErrName) {
		t.Fatal(err)
	}
	if n, _, err := rlx.FirstUnsupported(classifier(t), "absent"); n != nil || !errors.Is(err, native.ErrUnavailable) {
		t.Errorf("an absent device: %v, %v", n, err)
	}
	if _, _, err := rlx.FirstUnsupported(classifier(t), "abacus"); !errors.Is(err, ir.ErrName) {
		t.Errorf("unknown device: %v", err)
	}
}
