//go:build cgo && !js

package webgpu

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
)

// backends are the graphics APIs by name.
var backends = map[string]wgpu.InstanceBackend{
	"vulkan": wgpu.InstanceBackendVulkan, "metal": wgpu.InstanceBackendMetal, "d3d12": wgpu.InstanceBackendDX12, "opengl": wgpu.InstanceBackendGL,
}

// instance opens devices. Every error of the binding is a value, so that it need not log.
var instance = sync.OnceValue(func() *wgpu.Instance {
	wgpu.SetLogLevel(wgpu.LogLevelOff)
	return wgpu.CreateInstance(nil) // no descriptor: the binding would pass uninitialised fields
})

// device is an open device. It is never released, since this wgpu confuses objects of released devices.
type device struct {
	dev         *wgpu.Device
	queue       *wgpu.Queue
	description string
	software    bool // computes on the CPU
	limits      loop.Limits
	profile     hardware.Profile
	lost        atomic.Bool

	mu        sync.Mutex // held by calls that use the device
	submitted int        // number of submissions
	done      int        // how many of them are known to be done
}

// openDevice opens the fastest GPU that a graphics API reaches; with "" wgpu chooses the API.
func openDevice(api string) (*device, error) {
	adapter := findAdapter(instance(), api)
	if adapter == nil {
		return nil, fmt.Errorf("no adapter: there is no GPU, or no %s driver", cmp.Or(api, "Vulkan, Metal or Direct3D 12"))
	}
	defer adapter.Release()
	limits := loop.DefaultLimits()
	dev, err := adapter.RequestDevice(&wgpu.DeviceDescriptor{Label: "rlx", RequiredLimits: &wgpu.RequiredLimits{Limits: limitsOf(limits)}})
	if err != nil {
		return nil, fmt.Errorf("the adapter gives no device: %w", err)
	}
	info := adapter.GetInfo()
	return &device{
		dev: dev, queue: dev.GetQueue(), limits: limits, profile: profileOf(info), software: info.AdapterType == wgpu.AdapterTypeCPU,
		description: info.DriverDescription + " (" + info.BackendType.String() + ")",
	}, nil
}

// profileOf returns the profile of an adapter by its texts, in the order in which a page gives them to the compiler.
func profileOf(info wgpu.AdapterInfo) hardware.Profile {
	return hardware.Named(strings.Join([]string{info.VendorName, info.Architecture, info.Name, info.DriverDescription}, " "))
}

// findAdapter returns the adapter of a graphics API, nil if there is none.
func findAdapter(inst *wgpu.Instance, api string) *wgpu.Adapter {
	if api == "" {
		adapter, err := inst.RequestAdapter(&wgpu.RequestAdapterOptions{PowerPreference: wgpu.PowerPreferenceHighPerformance})
		if err != nil {
			return nil
		}
		return adapter
	}
	// A request cannot name the API: this wgpu ignores its backend type.
	rank := func(a *wgpu.Adapter) int {
		switch a.GetInfo().AdapterType {
		case wgpu.AdapterTypeDiscreteGPU:
			return 0
		case wgpu.AdapterTypeIntegratedGPU:
			return 1
		}
		return 2
	}
	all := inst.EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{Backends: backends[api]})
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

// limitsOf returns limits in the form of the binding.
func limitsOf(l loop.Limits) wgpu.Limits {
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
	return w
}

// target returns the compilation target of the device. It has neither f16 nor subgroups, whatever the adapter has:
// the compiler of the binding's wgpu-native knows no directive "enable" and no function of subgroups.
func (d *device) target() plan.Target {
	t := plan.WebGPU()
	t.Limits, t.Device = d.limits, d.profile
	return t
}

// variant returns the first of a plan's variants that the device can run.
func (d *device) variant(p *plan.Plan) (*plan.Plan, error) {
	for _, v := range p.All() {
		if v.Target == plan.WebGPU().Name && v.Requires.Met(nil, d.limits, [2]int{}) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%w: the plan is for %s and needs %+v; the device has %+v", native.ErrMemory, p.Target, p.Requires, d.limits)
}

// submit submits the commands of an encoder.
func (d *device) submit(encoder *wgpu.CommandEncoder) error {
	commands, err := encoder.Finish(nil)
	if err != nil {
		return err
	}
	d.queue.Submit(commands)
	commands.Release()
	d.submitted++
	return nil
}

// reached reports whether a submission is done, by its number. wgpu says only whether all are.
func (d *device) reached(submission int) bool {
	if d.done < submission && d.dev.Poll(false, nil) {
		d.done = d.submitted
	}
	return d.done >= submission
}

// drain waits until all submissions are done. wgpu's own wait reports unfinished work as done after
// five seconds.
func (d *device) drain() {
	for begin := time.Now(); !d.reached(d.submitted); {
		async.Pause(time.Since(begin))
	}
}

// buffer makes a buffer, which the caller releases.
func (d *device) buffer(label string, bytes int, usage wgpu.BufferUsage) (*wgpu.Buffer, error) {
	made, err := d.dev.CreateBuffer(&wgpu.BufferDescriptor{Label: "rlx " + label, Size: uint64(bytes), Usage: usage})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	return made, nil
}

// mapped returns the first bytes of a buffer, which the caller unmaps. It waits until the device is idle, so
// that the next poll makes the callback: the binding does not keep it alive longer.
func (d *device) mapped(buffer *wgpu.Buffer, bytes int) ([]byte, error) {
	d.drain()
	status, called := wgpu.BufferMapAsyncStatusUnknown, false
	err := buffer.MapAsync(wgpu.MapModeRead, 0, uint64(bytes), func(s wgpu.BufferMapAsyncStatus) { status, called = s, true })
	for err == nil && !called {
		d.dev.Poll(false, nil)
	}
	switch {
	case err != nil:
		return nil, err
	case status == wgpu.BufferMapAsyncStatusDeviceLost:
		return nil, native.ErrLost
	case status != wgpu.BufferMapAsyncStatusSuccess:
		return nil, errors.New("mapping failed: " + status.String())
	}
	return buffer.GetMappedRange(0, uint(bytes)), nil
}

// kindOf returns the kind of an error of the binding, which has only a text, nil for one of no kind.
func kindOf(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "Not enough memory"):
		return native.ErrMemory
	case strings.Contains(text, "device is lost"), errors.Is(err, native.ErrLost):
		return native.ErrLost
	}
	return nil
}
