package driver

import (
	"fmt"
	"slices"
	"strings"
)

// oldestCapability is the oldest supported compute capability, Volta.
const oldestCapability = 70

// Code is the output format of a compiler for a device: a cubin for its compute capability
// (90 for 9.0), or PTX for an older one, which the driver compiles.
type Code struct {
	Capability int
	PTX        bool
}

// Architecture returns the architecture for NVRTC: "sm_80", or "compute_80" for PTX. If own
// is set it is "sm_90a", with the architecture-specific instructions.
func (c Code) Architecture(own bool) string {
	kind, suffix := "sm", ""
	if c.PTX {
		kind = "compute"
	}
	if own {
		suffix = "a"
	}
	return fmt.Sprintf("%s_%d%s", kind, c.Capability, suffix)
}

// edition describes an installed NVRTC: its version (12040 for 12.4), path and supported
// compute capabilities.
type edition struct {
	version      int
	path         string
	capabilities []int
}

// codeOf returns the code that a compiler makes for a compute capability. ok is false if the
// driver cannot load it: PTX must not be newer than the driver.
func (e edition) codeOf(capability, driver int) (Code, bool) {
	if slices.Contains(e.capabilities, capability) {
		return Code{Capability: capability}, true
	}
	older := slices.DeleteFunc(slices.Clone(e.capabilities), func(c int) bool { return c > capability || c < oldestCapability })
	if len(older) == 0 || e.version > driver {
		return Code{}, false
	}
	return Code{slices.Max(older), true}, true
}

// choose returns the index of the compiler to use for a GPU and its code: the first that
// compiles for the GPU itself, else the one with the nearest PTX, or -1 if none fits.
func choose(editions []edition, capability, driver int) (best int, made Code) {
	best = -1
	for i, e := range editions {
		code, ok := e.codeOf(capability, driver)
		switch {
		case ok && !code.PTX:
			return i, code
		case ok && (best < 0 || code.Capability > made.Capability):
			best, made = i, code
		}
	}
	return best, made
}

// knownSince maps a compute capability to the first version of NVRTC that compiles for it,
// and the last if support was dropped, according to nvrtcGetSupportedArchs of CUDA 12.0 to
// 13.5.
var knownSince = map[int]struct{ first, last int }{
	70: {12000, 12090}, 72: {12000, 12090}, 75: {first: 12000}, 80: {first: 12000}, 86: {first: 12000},
	87: {first: 12000}, 89: {first: 12000}, 90: {first: 12000},
	100: {first: 12080}, 101: {12080, 12090}, 120: {first: 12080}, 103: {first: 12090}, 121: {first: 12090},
	88: {first: 13000}, 110: {first: 13000}, 107: {first: 13040},
}

// remedy returns what to install for a GPU and a driver without a usable compiler.
func remedy(capability, driver int) string {
	known, ok := knownSince[capability]
	if !ok {
		return fmt.Sprintf("install the newest NVRTC, of a CUDA toolkit or by Python's package %s, and a driver for its version of CUDA", wheelOf(driver/1000))
	}
	last := known.last
	if driver/1000 < 13 && last == 0 {
		last = 12090
	}
	if known.first/1000 > driver/1000 {
		return fmt.Sprintf("install NVRTC %s or later, and a driver for its version of CUDA", versionText(known.first))
	}
	versions, wheel := versionText(known.first)+" or later", wheelOf(driver/1000)
	if last != 0 {
		versions, wheel = versionText(known.first)+" to "+versionText(last), wheelOf(last/1000)
	}
	return fmt.Sprintf("install NVRTC %s, of a CUDA toolkit or by Python's package %s, or set %s to the folder of libnvrtc.so", versions, wheel, PathVariable)
}

// wheelOf returns the Python package of NVRTC of a major version.
func wheelOf(major int) string {
	if major < 13 {
		return fmt.Sprintf("nvidia-cuda-nvrtc-cu%d", major)
	}
	return "nvidia-cuda-nvrtc"
}

// unusable explains why no compiler is usable for a GPU.
func unusable(editions []edition, capability, driver int) string {
	if len(editions) == 0 {
		return "NVRTC is missing"
	}
	var out []string
	for _, e := range editions {
		low, high := slices.Min(e.capabilities), slices.Max(e.capabilities)
		why := fmt.Sprintf("NVRTC %s (%s) compiles for compute capability %s to %s", versionText(e.version), e.path, capabilityText(low), capabilityText(high))
		if e.version > driver && low < capability {
			why += fmt.Sprintf(", and its PTX is too new for a driver of CUDA %s", versionText(driver))
		}
		out = append(out, why)
	}
	return strings.Join(out, "; ")
}

// versionText formats a version such as 12040 as "12.4".
func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// capabilityText formats a compute capability such as 90 as "9.0".
func capabilityText(c int) string { return fmt.Sprintf("%d.%d", c/10, c%10) }
