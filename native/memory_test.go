package native

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rlx-go/rlx/ir"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1048576": 1 << 20, "8GiB": 8 << 30, " 1.5 GiB ": 3 << 29, "500MB": 500e6, "512M": 512 << 20,
		"2k": 0, "2K": 2048, "3kB": 3000, "7B": 7, "1TiB": 1 << 40,
		"": 0, "0": 0, "-1": 0, "GiB": 0, "8GiBB": 0, "1e30": 0, "NaN": 0, "Inf": 0, "8 bananas": 0, "0x10": 0, "0.5": 0,
	} {
		got, err := ParseBytes(text)
		if got != want || (err == nil) != (want > 0) || err != nil && !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestMemoryLimitPrecedence(t *testing.T) {
	device := Budget{100, "the device"}
	for _, c := range []struct {
		option   int64
		variable string
		want     Budget
	}{
		{0, "", device},
		{0, "2KiB", Budget{2048, MemoryVariable}},
		{7, "2KiB", Budget{7, "the option Memory"}},
		{-1, "", Budget{}},
		{0, "much", Budget{}},
	} {
		t.Setenv(MemoryVariable, c.variable)
		got, err := Options{Memory: c.option}.Budget(device)
		if got != c.want || (c.want == Budget{}) != errors.Is(err, ir.ErrAttr) {
			t.Errorf("option %d, variable %q: %v, %v, want %v", c.option, c.variable, got, err, c.want)
		}
	}
}

func TestOverBudgetErrorGivesNeedAndLimit(t *testing.T) {
	slots := []Slot{
		{Name: "x", Role: Input, DType: ir.F32, Dims: []int{100, 25}},
		{Name: "labels", Role: Input, DType: ir.I32, Dims: []int{100}},
		{Name: "w", Role: Param, DType: ir.F32, Dims: []int{500}},
	}
	parts := []Allocation{AllocationOf(slots[1], 400), AllocationOf(slots[2], 2000), AllocationOf(slots[0], 10000), {Name: "what is computed", Bytes: 9600}}
	if err := (Budget{22000, "a test"}).Check(parts, slots); err != nil {
		t.Errorf("a module that fits: %v", err)
	}
	err := Budget{12000, "a test"}.Check(parts, slots)
	var e *MemoryError
	if !errors.As(err, &e) || !errors.Is(err, ErrMemory) || e.Needed != 22000 || e.Largest[0].Bytes != 10000 || e.Batch != 100 || e.Fits != 50 {
		t.Fatalf("%+v", err)
	}
	for _, part := range []string{"21.48 KiB", "input x f32[100,25] 9.77 KiB", "11.72 KiB (a test)", "50 in place of 100"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	parts = append(parts, Allocation{Bytes: math.MaxInt64}, Allocation{Bytes: math.MaxInt64})
	if err := (Budget{math.MaxInt64 - 1, "a test"}).Check(parts, nil); !errors.As(err, &e) || e.Needed != math.MaxInt64 || e.Fits != 0 {
		t.Errorf("a sum that overflows: %v", err)
	}
}

func TestControlGroupsBoundTheMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"none":              {fstest.MapFS{}, 0},
		"version 2":         {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("4096\n")}, 4096},
		"a group around it": {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("512\n")}, 512},
		"a container":       {fstest.MapFS{"proc/self/cgroup": file("0::/../../x\n"), "sys/fs/cgroup/memory.max": file("99\n")}, 99},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": file("5:cpu,cpuacct:/c\n4:memory:/docker/7\n"),
			"sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes": file("8192"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          file("9223372036854771712"),
		}, 8192},
		"no limit": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 0},
	} {
		if got := groupLimit(c.files); got.Bytes != c.want {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
}

func TestTheHostHasMemory(t *testing.T) {
	if b := HostMemory(); b.Bytes < 1<<24 || b.Bytes >= 1<<40 || b.Source == "" {
		t.Errorf("the host has %+v", b)
	}
}
