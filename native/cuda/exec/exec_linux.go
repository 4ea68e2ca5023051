//go:build cgo && (amd64 || arm64)

package exec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/ir/plan/replay"
	"github.com/rlx-go/rlx/native/cuda/cudacpp"
	"github.com/rlx-go/rlx/native/cuda/driver"
)

// Target is what plans for this package are compiled for: WebGPU's default
// limits but for the size of a binding, which is bounded by memory alone.
func Target() plan.Target {
	l := plan.DefaultLimits()
	l.BindingBytes, l.BufferBytes = 2<<30, 4<<30
	return plan.Target{Name: "cuda", Dialect: dtype.CUDA, Limits: l}
}

// Session is a plan on a GPU.
type Session struct {
	*replay.Session
	device *device
}

// Open compiles a module, compiles its kernels with NVRTC and gives the plan
// memory on the device. Errors are those of [plan.Compile] and [driver.Error].
func Open(gpu *driver.Device, m *ir.Module) (*Session, error) {
	p, err := plan.Compile(m, Target(), cudacpp.Printer{})
	if err != nil {
		return nil, err
	}
	d := &device{gpu: gpu, plan: p}
	for _, k := range p.Kernels {
		f, err := gpu.Compile(k.Source, cudacpp.Prefix+k.Name)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		d.kernels = append(d.kernels, f)
	}
	for _, b := range p.Buffers {
		ptr, err := gpu.Alloc(b.Bytes)
		if err != nil {
			return nil, errors.Join(err, d.free())
		}
		d.buffers = append(d.buffers, ptr)
	}
	s, err := replay.New(p, d)
	if err != nil {
		return nil, errors.Join(err, d.free())
	}
	return &Session{s, d}, nil
}

// Close gives the memory back.
func (s *Session) Close() error { return s.device.free() }

// device is the memory and the kernels of a plan.
type device struct {
	gpu     *driver.Device
	plan    *plan.Plan
	kernels []*driver.Function
	buffers []driver.Ptr
}

func (d *device) free() error {
	var failed error
	for _, b := range d.buffers {
		failed = errors.Join(failed, d.gpu.Free(b))
	}
	d.buffers = nil
	return failed
}

func (d *device) at(buffer, offset int) driver.Ptr { return d.buffers[buffer] + driver.Ptr(offset) }

// Write copies data to the GPU.
func (d *device) Write(buffer, offset int, data []byte) error {
	return d.gpu.Write(d.at(buffer, offset), data)
}

// Read waits for the kernels and copies data from the GPU.
func (d *device) Read(data []byte, buffer, offset int) error {
	return d.gpu.Read(data, d.at(buffer, offset))
}

// Copy fails: plans of these sizes have none.
func (d *device) Copy(c *plan.Copy) error {
	return ir.Errorf(ir.ErrUnsupported, "a step of type %T", c)
}

// Dispatch launches a kernel: its arguments are the bindings, then the scalars
// and the counters as one block.
func (d *device) Dispatch(step *plan.Dispatch, scalars []byte, counters []int) error {
	k := &d.plan.Kernels[step.Kernel]
	var args []driver.Ptr
	for _, b := range step.Bindings {
		args = append(args, d.at(b.Buffer, b.Offset))
	}
	params := append([]byte(nil), scalars[:k.ScalarBytes]...)
	for _, n := range counters {
		params = binary.LittleEndian.AppendUint32(params, uint32(n))
	}
	return d.gpu.Launch(d.kernels[step.Kernel], step.Groups, k.Workgroup, args, params)
}
