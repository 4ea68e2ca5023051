package native_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// TestManyInputsAreCheckedQuickly: each compared with each takes a quarter of a minute.
func TestManyInputsAreCheckedQuickly(t *testing.T) {
	const n = 100_000
	var slots []native.Slot
	given := map[string]native.Tensor{}
	for i := range n {
		name := "x" + strconv.Itoa(i)
		slots = append(slots, native.Slot{Name: name, Role: native.Input, DType: ir.F32})
		given[name] = native.Float32(1)
	}
	begin := time.Now()
	if err := native.AcceptAll("test", "run", slots, native.Input, given, true); err != nil {
		t.Error(err)
	}
	if err := native.AcceptBound("test", "run", slots, given, nil); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("checking %d inputs took %v", n, took)
	}
}

func TestInputsThatAreWrongAreNamed(t *testing.T) {
	slots := []native.Slot{
		{Name: "x", Role: native.Input, DType: ir.F32},
		{Name: "n", Role: native.Input, DType: ir.I32, Hi: 3, Checked: true},
		{Name: "y", Role: native.Output, DType: ir.F32},
	}
	x, n := native.Float32(1), native.Int32(1)
	for what, c := range map[string]struct {
		given    map[string]native.Tensor
		complete bool
		kind     error
		name     string
	}{
		"all":              {map[string]native.Tensor{"x": x, "n": n}, true, nil, ""},
		"some":             {map[string]native.Tensor{"x": x}, false, nil, ""},
		"one is missing":   {map[string]native.Tensor{"x": x}, true, ir.ErrName, "n"},
		"one is unknown":   {map[string]native.Tensor{"x": x, "n": n, "z": x}, true, ir.ErrName, "z"},
		"one is an output": {map[string]native.Tensor{"x": x, "n": n, "y": x}, true, ir.ErrName, "y"},
		"two are unknown":  {map[string]native.Tensor{"b": x, "a": n}, false, ir.ErrName, "a"},
		"a type":           {map[string]native.Tensor{"x": n, "n": n}, true, ir.ErrDType, "x"},
		"an index":         {map[string]native.Tensor{"x": x, "n": native.Int32(3)}, true, ir.ErrIndex, "n"},
	} {
		err := native.AcceptAll("test", "run", slots, native.Input, c.given, c.complete)
		var typed *native.Error
		if c.kind == nil && err != nil || c.kind != nil && (!errors.Is(err, c.kind) || !errors.As(err, &typed) || typed.Name != c.name || !strings.Contains(err.Error(), c.name)) {
			t.Errorf("%s: %v, want %v of %q", what, err, c.kind, c.name)
		}
	}
}
