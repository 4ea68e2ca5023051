package hardware_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir/hardware"
)

// Named finds profiles by drivers' names.
func TestDevicesAreKnownByName(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H200":                        "H200",
		"NVIDIA H100 80GB HBM3":              "H100",
		"NVIDIA H100 PCIe":                   "H100 PCIe",
		"NVIDIA A100-SXM4-80GB":              "A100-SXM4-80GB",
		"NVIDIA A100-PCIE-40GB":              "A100",
		"NVIDIA L40S":                        "NVIDIA L40",
		"NVIDIA L4":                          "NVIDIA L4",
		"Tesla T4":                           "Tesla T4",
		"NVIDIA GeForce RTX 4090":            "RTX 4090",
		"NVIDIA GeForce RTX 3060":            "RTX 3060",
		"Apple M1 Pro":                       "Apple M1",
		"llvmpipe (LLVM 15.0.6, 256 bits)":   "llvmpipe",
		"SwiftShader Device (LLVM 10.0.0)":   "SwiftShader",
		"NVIDIA GeForce GT 430, GT430":       "unknown",
		"a device of next year":              "unknown",
		"Intel(R) Iris(R) Xe Graphics (TGL)": "Iris(R) Xe",
		"apple metal-3  ":                    "Apple M1",
		"intel gen-12lp  ":                   "Iris(R) Xe",
		"nvidia lovelace  ":                  "unknown",
		"google swiftshader":                 "SwiftShader",
		"cpu":                                "CPU",
		"":                                   "unknown",
	} {
		if got := hardware.Named(name).Name; got != want {
			t.Errorf("%q has the profile of %q, not of %q", name, got, want)
		}
	}
}

// Every profile sets all parameters of the cost model.
func TestProfilesAreComplete(t *testing.T) {
	for _, p := range append(hardware.All(), hardware.Unknown()) {
		r := p.Rates()
		if p.Name == "" || min(p.Processors, p.Threads, p.Cache, p.Shared, p.SplitThreads, p.ScatterThreads) <= 0 ||
			min(p.Bytes, p.Flops, p.Matrix, p.Clock, p.CacheRate, p.Latency, p.Barrier, p.Launch) <= 0 ||
			min(slices.Min(r.WarpGroups[:]), slices.Min(r.Warps[:]), r.Attention, r.AttentionF32) <= 0 ||
			min(r.Library16, r.LibraryTF32, r.LibraryTransposed, r.LibraryF32) <= 0 {
			t.Errorf("incomplete: %+v", p)
		}
		if p.Resident() < p.Processors {
			t.Errorf("%s has processors without threads", p.Name)
		}
		if p.RetainedBytes() > p.Cache || p.Resident() > p.Processors*p.Threads {
			t.Errorf("%s keeps or holds more than it has", p.Name)
		}
	}
}

// Values from a driver replace those of a data sheet, but not measured ones.
func TestDriversReplaceDataSheets(t *testing.T) {
	if got := hardware.H200().WithDriver(66, 4917, 60<<20); got.Processors != 66 || got.Bytes != 23 || got.Cache != hardware.H200().Cache {
		t.Errorf("half an H200 becomes %+v", got)
	}
	got := hardware.Unknown().WithDriver(48, 672, 96<<20)
	if got.Processors != 48 || got.Bandwidth() < 400 || got.Bandwidth() > 672 || got.Cache != 96<<20 {
		t.Errorf("an unknown device of 672 GB/s becomes %+v", got)
	}
	if got := hardware.Unknown().WithDriver(0, 0, 0); got != hardware.Unknown() {
		t.Errorf("a driver that reports nothing makes %+v", got)
	}
}

// The time of a launch is bound by memory, the cache, arithmetic or latency.
func TestTimeIsARoofline(t *testing.T) {
	p := hardware.H200()
	for name, c := range map[string]struct {
		work hardware.Work
		want float64
	}{
		"nothing": {hardware.Work{}, p.Launch + p.Latency},
		"memory":  {hardware.Work{Bytes: 1e9, Threads: 1 << 20, BytesInFlight: 64}, p.Launch + 1e9/p.Bandwidth()},
		"cache":   {hardware.Work{Bytes: 1e9, Sectors: 8e9, Threads: 1 << 20, BytesInFlight: 64}, p.Launch + 8e9/p.CacheBandwidth()},
		"ops":     {hardware.Work{Bytes: 1e6, Ops: 1e12, Threads: 1 << 20, BytesInFlight: 64}, p.Launch + p.OpsTime(1e12)},
		"waiting": {hardware.Work{Bytes: 1e9, Threads: 512, BytesInFlight: 16}, p.Launch + p.Latency*1e9/(512*16)},
	} {
		if got := c.work.Time(p); got != c.want {
			t.Errorf("%s: %g ns, not %g", name, got, c.want)
		}
	}
}

// Rows are split if they make few workgroups, and further stages depend on whole rows only if
// these keep the device busy.
func TestRowsFillTheDevice(t *testing.T) {
	for _, c := range []struct {
		name         string
		p            hardware.Profile
		rows, length int
		beside       bool
		parts        int
		stages       bool
	}{
		{"batch norm of 64 channels, last", hardware.H200(), 64, 32 * 112 * 112, true, 512, false},
		{"batch norm of 64 channels, first", hardware.H200(), 64, 32 * 112 * 112, false, 16, false},
		{"batch norm of 2048 channels of 7×7", hardware.H200(), 2048, 64 * 7 * 7, true, 12, false},
		{"layer norm", hardware.H200(), 16384, 768, false, 1, true},
		{"softmax of a vocabulary", hardware.H200(), 1024, 50257, false, 1, true},
		{"a loss", hardware.H200(), 1, 1 << 20, false, 1024, false},
		{"small columns", hardware.H200(), 128, 768, true, 1, true},
		{"on a small device", hardware.Named("Apple M1"), 64, 32 * 112 * 112, false, 1, true},
		{"on a device that is not known", hardware.Unknown(), 64, 32 * 112 * 112, true, 512, false},
	} {
		if got := c.p.RowSplits(c.rows, c.length, c.beside); got != c.parts {
			t.Errorf("%s: %d parts, not %d", c.name, got, c.parts)
		}
		if got := c.p.AllowsStages(c.rows, c.length, c.beside); got != c.stages {
			t.Errorf("%s: further stages %t, not %t", c.name, got, c.stages)
		}
	}
	if s := (hardware.Serial{Profile: hardware.H200()}); !s.AllowsStages(64, 32*112*112, true) {
		t.Error("processors of one thread wait for rows of their own")
	}
}

// The rates of products scale with the data sheets of the devices.
func TestRatesScale(t *testing.T) {
	a100 := hardware.Named("NVIDIA A100-PCIE-40GB")
	units := (312e3 / 108) / (989e3 / 132) // 312 TFLOP/s on 108 processors, 989 on 132
	for name, c := range map[string][2]float64{
		"warp groups": {a100.Rates().WarpGroups[1], 4300 * units},
		"warps":       {a100.Rates().Warps[2], 2100 * units},
		"attention":   {a100.Rates().Attention, 2700 * units},
		"library":     {a100.Rates().Library16, 5600 * units},
		"f32":         {a100.Rates().LibraryF32, 380 * (19.5 / 108) / (67. / 132)},
	} {
		if got, want := c[0], c[1]; !(math.Abs(got/want-1) <= 1e-9) {
			t.Errorf("%s: %g operations per nanosecond, not %g", name, got, want)
		}
	}
	if hardware.Unknown().Rates() != hardware.H200().Rates() {
		t.Error("an unknown device has not the rates of an H200")
	}
}

// Clocks follow from data sheets' operations and lanes: those that NVIDIA and Apple publish as boost clocks, in GHz.
func TestClocksAreThoseOfDataSheets(t *testing.T) {
	reached := hardware.H200().Clock / 1.98
	for name, boost := range map[string]float64{
		"H100 PCIe": 1.755, "H100": 1.98, "A100": 1.41, "NVIDIA L40": 2.49, "NVIDIA L4": 2.04, "RTX 4090": 2.52, "RTX 3060": 1.777,
		"Tesla T4": 1.59, "Apple M1": 1.278, "Iris(R) Xe": 1.35, "Radeon 780M": 2.7, "cpu": 3,
	} {
		if got := hardware.Named(name).Clock / reached; !(math.Abs(got-boost) <= 0.02*boost) {
			t.Errorf("%s has %.3f GHz, not %g", name, got, boost)
		}
	}
}

// What is computed again, and what is fused horizontally, depends on the operations and launches in the time of memory
// traffic. On an H200 a launch takes the time of 9.1 MB.
func TestTrafficIsWorthOperations(t *testing.T) {
	for _, c := range []struct {
		p    hardware.Profile
		want hardware.Traffic
	}{
		{hardware.H200(), hardware.Traffic{CheapOps: 6, RepeatedOps: 48, LaunchBytes: 8 << 20, RepeatsGathers: true, Searches: 1 << 24}},
		{hardware.Unknown(), hardware.Traffic{CheapOps: 6, RepeatedOps: 48, LaunchBytes: 8 << 20, RepeatsGathers: true, Searches: 1 << 24}},
		{hardware.Named("A100-SXM4-80GB"), hardware.Traffic{CheapOps: 4, RepeatedOps: 32, LaunchBytes: 2 << 20, RepeatsGathers: true, Searches: 1 << 24}},
		{hardware.Named("Apple M1"), hardware.Traffic{CheapOps: 12, RepeatedOps: 131, LaunchBytes: 128 << 10, RepeatsGathers: true, Searches: 1 << 24}},
		{hardware.Named("cpu"), hardware.Traffic{CheapOps: 6, RepeatedOps: 52, LaunchBytes: 16 << 10, RepeatsGathers: true, Searches: 1 << 24}},
		{hardware.Profile{Bytes: 1, Flops: 1}, hardware.Traffic{CheapOps: 0, RepeatedOps: 4, LaunchBytes: 1, RepeatsGathers: true, Searches: 1 << 24}},
	} {
		if got := c.p.Traffic(); got != c.want {
			t.Errorf("%s: %+v, not %+v", c.p.Name, got, c.want)
		}
	}
	if got := (hardware.Serial{Profile: hardware.Named("cpu")}).Traffic(); got != (hardware.Traffic{CheapOps: 6, RepeatedOps: 52, LaunchBytes: 8 << 20, Searches: 1 << 12}) {
		t.Errorf("serial: %+v", got)
	}
}
