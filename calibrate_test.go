package rlx_test

import (
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/internal/tune"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// keepRates writes rates of a usable device.
func keepRates(t *testing.T, d rlx.Device, r rlx.Rates) {
	t.Helper()
	if err := tune.WriteRates(d.Name+": "+d.Description, r); err != nil {
		t.Fatal(err)
	}
}

// TestRatesChooseTheDevice has a device with quick runs and one with quick products: a small module
// runs on the first, a large one on the second.
func TestRatesChooseTheDevice(t *testing.T) {
	t.Setenv(tune.Variable, t.TempDir())
	t.Setenv(rlx.DeviceVariable, "")
	accept := func(*ir.Node) string { return "" }
	register(t, &picky{name: "quick", node: accept})
	register(t, &picky{name: "strong", node: accept})
	chosen := func(n int) string {
		m := moduleOf(t, func(b *ir.Builder) {
			x := b.Param("x", ir.F32, ir.Dims(n, n)...)
			b.Output("y", ops.ReduceSum(b, ops.MatMul(b, x, x), 0, 1))
		})
		s, err := rlx.OpenFor(m, rlx.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		return s.Device().Name
	}
	before := chosen(8)
	rates := map[string]rlx.Rates{
		"quick":  {Operations: 1e9, Bytes: 1e9, Transfer: 1e9, Kernel: time.Microsecond, Call: 10 * time.Microsecond},
		"strong": {Operations: 1e12, Bytes: 1e11, Transfer: 1e9, Kernel: time.Microsecond, Call: time.Millisecond},
	}
	for _, d := range rlx.Devices() {
		if d.Err != nil || d.Name == "strong" {
			continue
		}
		r, chooses := rates[d.Name]
		if !chooses {
			r = rlx.Rates{Operations: 1, Bytes: 1, Transfer: 1, Call: time.Hour}
		}
		keepRates(t, d, r)
	}
	if got := chosen(8); got != before {
		t.Errorf("one device has no rates: the module ran on %s, and on %s without any", got, before)
	}
	for _, d := range rlx.Devices() {
		if d.Name == "strong" {
			keepRates(t, d, rates["strong"])
		}
	}
	if got := chosen(8); got != "quick" {
		t.Errorf("a small module ran on %s", got)
	}
	if got := chosen(512); got != "strong" { // 0.27 GFLOP: 0.27 s and 1.3 ms
		t.Errorf("a large module ran on %s", got)
	}
	if got := rlx.Fastest().Name; got != "strong" {
		t.Errorf("the fastest device is %s", got)
	}
}

// TestCalibrationIsKept measures the CPU for a moment.
func TestCalibrationIsKept(t *testing.T) {
	t.Setenv(tune.Variable, t.TempDir())
	r, err := rlx.CalibrateFor(t.Context(), "cpu", time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.Operations < 1e6 || r.Bytes < 1e6 || r.Transfer < 1e6 || r.Call <= 0 || r.Kernel < 0 || r.Call > time.Minute {
		t.Errorf("%+v", r)
	}
	for _, d := range rlx.Devices() {
		if kept, ok := rlx.RatesOf(d); d.Name == "cpu" && (!ok || kept != r) || d.Name == "webgpu" && ok {
			t.Errorf("%s has %+v, %v; measured were %+v", d.Name, kept, ok, r)
		}
	}
	if kept, ok := rlx.RatesOf(rlx.Device{Name: "cpu", Info: native.Info{Description: "another one"}}); ok {
		t.Errorf("another device has %+v", kept)
	}
	if _, err := rlx.Calibrate(t.Context(), "abacus"); err == nil {
		t.Error("an unknown device was measured")
	}
}
