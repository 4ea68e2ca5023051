package native_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1048576": 1 << 20, "8GiB": 8 << 30, " 1.5 GiB ": 3 << 29, "500MB": 500e6, "512M": 512 << 20,
		"2k": 0, "2K": 2048, "3kB": 3000, "7B": 7, "1TiB": 1 << 40,
		"": 0, "0": 0, "-1": 0, "GiB": 0, "8GiBB": 0, "1e30": 0, "NaN": 0, "Inf": 0, "8 bananas": 0, "0x10": 0, "0.5": 0,
	} {
		got, err := native.ParseBytes(text)
		if got != want || (err == nil) != (want > 0) || err != nil && !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestMemoryLimitPrecedence(t *testing.T) {
	device := native.Budget{100, "the device"}
	for _, c := range []struct {
		option   int64
		variable string
		want     native.Budget
	}{
		{0, "", device},
		{0, "2KiB", native.Budget{2048, native.MemoryVariable}},
		{7, "2KiB", native.Budget{7, "the option Memory"}},
		{-1, "", native.Budget{}},
		{0, "much", native.Budget{}},
	} {
		t.Setenv(native.MemoryVariable, c.variable)
		got, err := native.Options{Memory: c.option}.Budget(device)
		if got != c.want || (c.want == native.Budget{}) != errors.Is(err, ir.ErrAttr) {
			t.Errorf("option %d, variable %q: %v, %v, want %v", c.option, c.variable, got, err, c.want)
		}
	}
}

func TestOverBudgetErrorGivesNeedAndLimit(t *testing.T) {
	slots := []native.Slot{
		{Name: "x", Role: native.Input, DType: ir.F32, Dims: []int{100, 25}},
		{Name: "labels", Role: native.Input, DType: ir.I32, Dims: []int{100}},
		{Name: "w", Role: native.Param, DType: ir.F32, Dims: []int{500}},
	}
	parts := []native.Allocation{native.AllocationOf(slots[1], 400), native.AllocationOf(slots[2], 2000), native.AllocationOf(slots[0], 10000), {Name: "what is computed", Bytes: 9600}}
	if err := (native.Budget{22000, "a test"}).Check(parts, slots); err != nil {
		t.Errorf("a module that fits: %v", err)
	}
	err := native.Budget{12000, "a test"}.Check(parts, slots)
	var e *native.MemoryError
	if !errors.As(err, &e) || !errors.Is(err, native.ErrMemory) || e.Needed != 22000 || e.Largest[0].Bytes != 10000 || e.Batch != 100 || e.Fits != 50 {
		t.Fatalf("%+v", err)
	}
	for _, part := range []string{"21.48 KiB", "input x f32[100,25] 9.77 KiB", "11.72 KiB (a test)", "50 in place of 100"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	parts = append(parts, native.Allocation{Bytes: math.MaxInt64}, native.Allocation{Bytes: math.MaxInt64})
	if err := (native.Budget{math.MaxInt64 - 1, "a test"}).Check(parts, nil); !errors.As(err, &e) || e.Needed != math.MaxInt64 || e.Fits != 0 {
		t.Errorf("a sum that overflows: %v", err)
	}
}

func TestTheHostHasMemory(t *testing.T) {
	if b := native.HostMemory(); b.Bytes < 1<<24 || b.Bytes >= 1<<40 || b.Source == "" {
		t.Errorf("the host has %+v", b)
	}
}
