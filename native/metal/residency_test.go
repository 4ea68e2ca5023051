//go:build cgo && linux

package metal_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/native/metal"
)

// residents returns the notes of how many heaps are resident.
func residents(calls []string) []string {
	return slices.DeleteFunc(calls, func(c string) bool { return !strings.HasPrefix(c, "resident ") })
}

// Heaps are resident from their beginning to their end: that of a program, and one for each
// run under way. The software device reports kernels that bind another one.
func TestHeapsAreResidentWhileAllocated(t *testing.T) {
	gpu := install(t, false)
	if info := metal.New().Info(); !info.Software {
		t.Errorf("%+v is said to be Metal itself", info)
	}
	p, err := build(metal.New(), running(t))
	must(t, err)
	must(t, call(p))
	if got := residents(gpu.Calls(t)); !slices.Equal(got, []string{"resident 1", "resident 2"}) {
		t.Errorf("a program that was run: %v", got)
	}
	must(t, p.Close(context.Background()))
	if got := residents(gpu.Calls(t)); got[len(got)-1] != "resident 0" {
		t.Errorf("a program that was closed: %v", got)
	}
}

// Before macOS 15 there are no residency sets, and the backend makes no other calls in their place.
func TestSystemsWithoutResidencySets(t *testing.T) {
	gpu := install(t, false)
	t.Setenv("RLX_SOFTWARE_RESIDENCY", "0")
	p := compile(t, metal.New(), running(t))
	must(t, call(p))
	if got := residents(gpu.Calls(t)); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
