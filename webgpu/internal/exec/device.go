//go:build cgo && !js

package exec

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/fair"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Options select the device to open.
type Options struct {
	// Limits are the required limits; the zero value means WebGPU's defaults.
	Limits loop.Limits
	// LowPower prefers a power-saving GPU.
	LowPower bool
	// API is the graphics API to use, one of [APIs]; with "" wgpu chooses.
	API string
}

// apis are the graphics APIs by name.
var apis = map[string]wgpu.InstanceBackend{
	"vulkan": wgpu.InstanceBackendVulkan, "metal": wgpu.InstanceBackendMetal, "d3d12": wgpu.InstanceBackendDX12, "opengl": wgpu.InstanceBackendGL,
}

// APIs returns the names of the graphics APIs, sorted.
func APIs() []string { return slices.Sorted(maps.Keys(apis)) }

// Info describes a device.
type Info struct {
	Name    string // as reported by the driver
	Backend string // "vulkan", "metal", "d3d12"
	CPU     bool   // a software device
}

// Device is an open device. Its methods and those of its sessions may be called from
// several goroutines and are served first come, first served.
type Device struct {
	*gpu
	closed atomic.Bool
}

// gpu is the underlying device, shared by devices opened with equal options. It is never
// released, since this wgpu confuses objects of released devices.
type gpu struct {
	turns  fair.Lock // of all that uses the device
	dev    *wgpu.Device
	queue  *wgpu.Queue
	info   Info
	limits loop.Limits
}

var opened struct {
	sync.Mutex
	instance *wgpu.Instance
	gpus     map[Options]*gpu
}

// Open opens the fastest GPU. The error is of kind [ErrDevice] or [ErrLimit] and names what is
// missing, or of kind [ir.ErrName] for an unknown API.
func Open(opts Options) (*Device, error) {
	if _, known := apis[opts.API]; !known && opts.API != "" {
		return nil, &Error{Kind: ir.ErrName, Op: "open", Msg: fmt.Sprintf("unknown graphics API %q: have %q", opts.API, APIs())}
	}
	opened.Lock()
	defer opened.Unlock()
	if g := opened.gpus[opts]; g != nil {
		return &Device{gpu: g}, nil
	}
	if opened.instance == nil {
		wgpu.SetLogLevel(wgpu.LogLevelOff) // every error comes back as a value
		// No descriptor: the binding would pass uninitialised fields.
		opened.instance = wgpu.CreateInstance(nil)
		opened.gpus = map[Options]*gpu{}
	}
	g, err := openGPU(opened.instance, opts)
	if err != nil {
		return nil, err
	}
	opened.gpus[opts] = g
	return &Device{gpu: g}, nil
}

func openGPU(inst *wgpu.Instance, opts Options) (*gpu, error) {
	adapter := findAdapter(inst, opts)
	if adapter == nil {
		driver := cmp.Or(opts.API, "Vulkan, Metal or Direct3D 12")
		return nil, &Error{Kind: ErrDevice, Op: "open", Msg: "no adapter: there is no GPU, or no " + driver + " driver"}
	}
	defer adapter.Release()
	limits, required := requiredLimits(opts.Limits)
	has := adapter.GetLimits().Limits
	if !(plan.Requires{Limits: limits}).Met(nil, limitsOf(&has), [2]int{}) {
		return nil, &Error{Kind: ErrLimit, Op: "open", Msg: fmt.Sprintf("the limits are %+v; the adapter has %+v", limits, limitsOf(&has))}
	}
	dev, err := adapter.RequestDevice(&wgpu.DeviceDescriptor{Label: "rlx", RequiredLimits: required})
	if err != nil {
		return nil, &Error{Kind: ErrDevice, Op: "open", Msg: "the adapter gives no device: " + err.Error()}
	}
	info := adapter.GetInfo()
	return &gpu{
		dev: dev, queue: dev.GetQueue(), limits: limits,
		info: Info{Name: info.DriverDescription, Backend: info.BackendType.String(), CPU: info.AdapterType == wgpu.AdapterTypeCPU},
	}, nil
}

// findAdapter returns the adapter that options ask for, nil if there is none.
func findAdapter(inst *wgpu.Instance, opts Options) *wgpu.Adapter {
	if opts.API == "" {
		power := wgpu.PowerPreferenceHighPerformance
		if opts.LowPower {
			power = wgpu.PowerPreferenceLowPower
		}
		adapter, err := inst.RequestAdapter(&wgpu.RequestAdapterOptions{PowerPreference: power})
		if err != nil {
			return nil
		}
		return adapter
	}
	// A request cannot name the API: this wgpu ignores its backend type.
	first := []wgpu.AdapterType{wgpu.AdapterTypeDiscreteGPU, wgpu.AdapterTypeIntegratedGPU}
	if opts.LowPower {
		slices.Reverse(first)
	}
	rank := func(a *wgpu.Adapter) int {
		if i := slices.Index(first, a.GetInfo().AdapterType); i >= 0 {
			return i
		}
		return len(first)
	}
	all := inst.EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{Backends: apis[opts.API]})
	if len(all) == 0 {
		return nil
	}
	best := slices.MinFunc(all, func(a, b *wgpu.Adapter) int { return cmp.Compare(rank(a), rank(b)) })
	for _, a := range all {
		if a != best {
			a.Release()
		}
	}
	return best
}

// requiredLimits returns the limits to request, defaults included, in the plan's and in the
// binding's form.
func requiredLimits(asked loop.Limits) (loop.Limits, *wgpu.RequiredLimits) {
	l := loop.DefaultLimits()
	l.StorageBuffers = max(l.StorageBuffers, asked.StorageBuffers)
	l.BindingBytes = max(l.BindingBytes, asked.BindingBytes)
	l.BufferBytes = max(l.BufferBytes, asked.BufferBytes)
	l.SharedBytes = max(l.SharedBytes, asked.SharedBytes)
	l.Invocations = max(l.Invocations, asked.Invocations)
	l.Groups = max(l.Groups, asked.Groups)
	for i := range l.Workgroup {
		l.Workgroup[i] = max(l.Workgroup[i], asked.Workgroup[i])
	}
	w := wgpu.DefaultLimits()
	w.MaxStorageBuffersPerShaderStage = uint32(l.StorageBuffers)
	w.MaxStorageBufferBindingSize = uint64(l.BindingBytes)
	w.MaxBufferSize = uint64(l.BufferBytes)
	w.MaxComputeWorkgroupStorageSize = uint32(l.SharedBytes)
	w.MaxComputeInvocationsPerWorkgroup = uint32(l.Invocations)
	w.MaxComputeWorkgroupSizeX = uint32(l.Workgroup[0])
	w.MaxComputeWorkgroupSizeY = uint32(l.Workgroup[1])
	w.MaxComputeWorkgroupSizeZ = uint32(l.Workgroup[2])
	w.MaxComputeWorkgroupsPerDimension = uint32(l.Groups)
	return l, &wgpu.RequiredLimits{Limits: w}
}

func limitsOf(l *wgpu.Limits) loop.Limits {
	return loop.Limits{
		StorageBuffers: int(l.MaxStorageBuffersPerShaderStage),
		BindingBytes:   int(l.MaxStorageBufferBindingSize),
		BufferBytes:    int(l.MaxBufferSize),
		SharedBytes:    int(l.MaxComputeWorkgroupStorageSize),
		Invocations:    int(l.MaxComputeInvocationsPerWorkgroup),
		Workgroup:      [3]int{int(l.MaxComputeWorkgroupSizeX), int(l.MaxComputeWorkgroupSizeY), int(l.MaxComputeWorkgroupSizeZ)},
		Groups:         int(l.MaxComputeWorkgroupsPerDimension),
	}
}

// Info describes the device.
func (d *Device) Info() Info { return d.info }

// Target returns the compilation target of the device.
func (d *Device) Target() plan.Target {
	t := plan.WebGPU()
	t.Limits = d.limits
	return t
}

// Close closes the device, but not its sessions.
func (d *Device) Close() {
	d.closed.Store(true)
}

// drain polls until the device is idle or the context is done. wgpu's own wait reports
// unfinished work as done after five seconds.
func (g *gpu) drain(ctx context.Context) error {
	pause := 10 * time.Microsecond
	for tries := 0; !g.dev.Poll(false, nil); tries++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if tries < 16 {
			runtime.Gosched()
			continue
		}
		time.Sleep(pause)
		pause = min(2*pause, time.Millisecond)
	}
	return nil
}
