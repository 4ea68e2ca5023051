package hardware_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir/kernel/hardware"
)

// Drivers' names, and the profiles that they find.
func TestDevicesAreKnownByName(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H200":                        "H200",
		"NVIDIA H100 80GB HBM3":              "H100",
		"NVIDIA H100 PCIe":                   "H100 PCIe",
		"NVIDIA A100-SXM4-80GB":              "A100-SXM4-80GB",
		"NVIDIA A100-PCIE-40GB":              "A100",
		"NVIDIA L40S":                        "L40",
		"NVIDIA L4":                          "L4",
		"Tesla T4":                           "T4",
		"NVIDIA GeForce RTX 4090":            "RTX 4090",
		"NVIDIA GeForce RTX 3060":            "RTX 3060",
		"Apple M1 Pro":                       "Apple M1",
		"llvmpipe (LLVM 15.0.6, 256 bits)":   "llvmpipe",
		"SwiftShader Device (LLVM 10.0.0)":   "SwiftShader",
		"a device of next year":              "unknown",
		"Intel(R) Iris(R) Xe Graphics (TGL)": "Iris(R) Xe",
		"":                                   "unknown",
	} {
		if got := hardware.Named(name).Name; got != want {
			t.Errorf("%q has the profile of %q, not of %q", name, got, want)
		}
	}
}

// Every profile states all that costs divide by or multiply with.
func TestProfilesAreWhole(t *testing.T) {
	for _, p := range append(hardware.All(), hardware.Unknown()) {
		if p.Name == "" || min(p.Processors, p.Threads, p.Cache, p.Shared) <= 0 ||
			min(p.Bytes, p.Flops, p.Matrix, p.CacheRate, p.Latency, p.Barrier, p.Launch) <= 0 {
			t.Errorf("incomplete: %+v", p)
		}
		if p.Kept() > p.Cache || p.Resident() > p.Processors*p.Threads {
			t.Errorf("%s keeps or holds more than it has", p.Name)
		}
	}
}

// What a driver tells replaces a data sheet and not what was measured.
func TestDriversReplaceDataSheets(t *testing.T) {
	if got := hardware.H200().Asked(66, 4917, 60<<20); got.Processors != 66 || got.Bytes != 23 || got.Cache != hardware.H200().Cache {
		t.Errorf("half an H200 becomes %+v", got)
	}
	got := hardware.Unknown().Asked(48, 672, 96<<20)
	if got.Processors != 48 || got.Bandwidth() < 400 || got.Bandwidth() > 672 || got.Cache != 96<<20 {
		t.Errorf("an unknown device of 672 GB/s becomes %+v", got)
	}
	if got := hardware.Unknown().Asked(0, 0, 0); got != hardware.Unknown() {
		t.Errorf("a driver that tells nothing makes %+v", got)
	}
}

// A launch takes what bounds it: memory, the cache, arithmetic, or waiting.
func TestTimesAreRoofs(t *testing.T) {
	p := hardware.H200()
	for name, c := range map[string]struct {
		work hardware.Work
		want float64
	}{
		"nothing": {hardware.Work{}, p.Launch + p.Latency},
		"memory":  {hardware.Work{Bytes: 1e9, Threads: 1 << 20, UnderWay: 64}, p.Launch + 1e9/p.Bandwidth()},
		"cache":   {hardware.Work{Bytes: 1e9, Sectors: 8e9, Threads: 1 << 20, UnderWay: 64}, p.Launch + 8e9/p.CacheBandwidth()},
		"ops":     {hardware.Work{Bytes: 1e6, Ops: 1e12, Threads: 1 << 20, UnderWay: 64}, p.Launch + p.OpsTime(1e12)},
		"waiting": {hardware.Work{Bytes: 1e9, Threads: 512, UnderWay: 16}, p.Launch + p.Latency*1e9/(512*16)},
	} {
		if got := c.work.Time(p); got != c.want {
			t.Errorf("%s: %g ns, not %g", name, got, c.want)
		}
	}
}
