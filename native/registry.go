package native

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rlx-go/rlx/ir"
)

var registry struct {
	sync.Mutex
	backends []Backend
}

// Register adds a backend. Backend packages call it from init, whether or not the
// device is present ([Backend.Probe] reports that). The error is of kind
// [ir.ErrName] for a name that is taken or empty, or no backend.
func Register(b Backend) error {
	if b == nil {
		return ir.Errorf(ir.ErrName, "no backend is given to register")
	}
	registry.Lock()
	defer registry.Unlock()
	name := b.Name()
	taken := slices.ContainsFunc(registry.backends, func(r Backend) bool { return r.Name() == name })
	if name == "" || taken {
		return ir.Errorf(ir.ErrName, "backend %q is unnamed or registered twice", name)
	}
	registry.backends = append(registry.backends, b)
	return nil
}

// Backends returns the registered backends, sorted by name.
func Backends() []Backend {
	registry.Lock()
	defer registry.Unlock()
	return slices.SortedFunc(slices.Values(registry.backends), func(a, b Backend) int {
		return strings.Compare(a.Name(), b.Name())
	})
}

// MultiDevice is a backend with several devices on one machine. The backend
// itself is the first; "cuda:1" is the second device of "cuda".
type MultiDevice interface {
	Backend
	// Device returns the backend of a device, counted from 0. Its Probe fails if
	// there is no such device.
	Device(number int) Backend
}

// Collectives is a backend whose programs move data between ranks: see [Options.Mesh].
type Collectives interface {
	Backend
	// Collectives returns nil, or the reason why this machine lacks what they need.
	Collectives() error
}

// VariantDevice is a backend that reaches its device by several drivers. The backend
// itself chooses one; "webgpu:vulkan" is the variant "vulkan" of "webgpu".
type VariantDevice interface {
	Backend
	// Variants returns the names of the variants, sorted.
	Variants() []string
	// Variant returns the backend of a variant, nil for an unknown name. Its Probe
	// fails if this machine does not have it.
	Variant(name string) Backend
}

// Lookup returns the backend with a name: "cpu", "cuda:1" for the second device of a
// [MultiDevice] backend, or "webgpu:vulkan" for a variant of a [VariantDevice]. The error
// is of kind [ir.ErrName] and says which package to import, or what to use instead.
func Lookup(name string) (Backend, error) {
	base, digits, _ := strings.Cut(name, ":")
	number, notANumber := strconv.ParseUint(digits, 10, 16)
	var names []string
	for _, b := range Backends() {
		if b.Name() == name {
			return b, nil
		}
		if n, ok := b.(MultiDevice); ok && b.Name() == base && notANumber == nil {
			return n.Device(int(number)), nil
		}
		if v, ok := b.(VariantDevice); ok && b.Name() == base && digits != "" {
			if variant := v.Variant(digits); variant != nil {
				return variant, nil
			}
			return nil, unknownError(fmt.Sprintf("unknown device %q: %q has %s", name, base, strings.Join(v.Variants(), ", ")))
		}
		names = append(names, b.Name())
	}
	if pkg := packages[base]; pkg != "" && !slices.Contains(names, base) {
		return nil, unknownError(fmt.Sprintf("unknown device %q: import _ %q", name, pkg))
	}
	if other := instead[strings.ToLower(base)]; other != "" {
		return nil, unknownError(fmt.Sprintf("unknown device %q: %s", name, other))
	}
	return nil, unknownError(fmt.Sprintf("unknown device %q: have %s", name, strings.Join(names, ", ")))
}

// instead says what serves for devices that users of other systems ask for.
var instead = map[string]string{
	"gpu":     `"cuda", "metal" and "webgpu" are the GPUs, and "" is the fastest device`,
	"vulkan":  `"webgpu:vulkan" is WebGPU by Vulkan`,
	"opengl":  `"webgpu:opengl" is WebGPU by OpenGL`,
	"directx": `"webgpu:d3d12" is WebGPU by Direct3D 12`,
	"d3d12":   `"webgpu:d3d12" is WebGPU by Direct3D 12`,
	"rocm":    `there is no backend for ROCm; "webgpu" runs on AMD's GPUs`,
	"mps":     `"metal" and "coreml" run on Apple's GPUs`,
	"mlx":     `"metal" and "coreml" run on Apple's GPUs`,
	"xpu":     `there is no backend for oneAPI; "webgpu" runs on Intel's GPUs`,
	"tpu":     "there is no backend for TPUs",
}

// packages maps the names of rlx's own backends to the packages that register them.
var packages = map[string]string{
	"cpu":    "github.com/rlx-go/rlx/native/cpu",
	"coreml": "github.com/rlx-go/rlx/native/coreml",
	"cuda":   "github.com/rlx-go/rlx/native/cuda",
	"metal":  "github.com/rlx-go/rlx/native/metal",
	"webgpu": "github.com/rlx-go/rlx/webgpu",
}

// unknownError is the error of [Lookup], of kind [ir.ErrName].
type unknownError string

func (e unknownError) Error() string { return string(e) }

func (e unknownError) Unwrap() error { return ir.ErrName }
