package exec

import (
	"encoding/binary"
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/plan"
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

// Session is a plan on a device.
type Session struct {
	device  *driver.Device
	plan    *plan.Plan
	kernels []*driver.Function
	buffers []driver.Ptr
}

// Open compiles a module, compiles its kernels with NVRTC and gives the plan
// memory on the device. Errors are those of [plan.Compile] and [driver.Error].
func Open(d *driver.Device, m *ir.Module) (*Session, error) {
	p, err := plan.Compile(m, Target(), cudacpp.Printer{})
	if err != nil {
		return nil, err
	}
	s := &Session{device: d, plan: p}
	for _, k := range p.Kernels {
		f, err := d.Compile(k.Source, cudacpp.Prefix+k.Name)
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		s.kernels = append(s.kernels, f)
	}
	for _, b := range p.Buffers {
		ptr, err := d.Alloc(b.Bytes)
		if err != nil {
			return nil, err
		}
		s.buffers = append(s.buffers, ptr)
	}
	for _, c := range p.Constants {
		if err := d.Write(s.buffers[c.Buffer]+driver.Ptr(c.Offset), c.Data); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Plan returns the plan that the session runs.
func (s *Session) Plan() *plan.Plan { return s.plan }

// Close gives the memory back.
func (s *Session) Close() error {
	for _, b := range s.buffers {
		if err := s.device.Free(b); err != nil {
			return err
		}
	}
	s.buffers = nil
	return nil
}

// Set writes a parameter or a state, as a device stores it.
func (s *Session) Set(name string, data []byte) error {
	slot := s.plan.Lookup(name)
	if slot == nil {
		return ir.Errorf(ir.ErrName, "there is no parameter or state %q", name)
	}
	return s.write(slot, data)
}

// Get reads a parameter or a state.
func (s *Session) Get(name string) ([]byte, error) {
	slot := s.plan.Lookup(name)
	if slot == nil {
		return nil, ir.Errorf(ir.ErrName, "there is no parameter or state %q", name)
	}
	return s.read(slot)
}

func (s *Session) write(slot *plan.Slot, data []byte) error {
	if len(data) > slot.Bytes {
		return ir.Shapef("%q takes %d bytes, not %d", slot.Name, slot.Bytes, len(data))
	}
	return s.device.Write(s.buffers[slot.Buffer]+driver.Ptr(slot.Offset), data)
}

func (s *Session) read(slot *plan.Slot) ([]byte, error) {
	data := make([]byte, slot.Bytes)
	return data, s.device.Read(data, s.buffers[slot.Buffer]+driver.Ptr(slot.Offset))
}

// Run runs an entry with the given inputs and scalars, each as the bytes a
// device stores, and returns its outputs. An index that the device found out of
// range is an error of kind [ir.ErrIndex].
func (s *Session) Run(entry string, inputs map[string][]byte) (map[string][]byte, error) {
	e := s.plan.Entry(entry)
	if e == nil {
		return nil, ir.Errorf(ir.ErrName, "there is no entry %q", entry)
	}
	for _, i := range e.Inputs {
		if data, ok := inputs[s.plan.Slots[i].Name]; ok {
			if err := s.write(&s.plan.Slots[i], data); err != nil {
				return nil, err
			}
		}
	}
	row := make([]byte, e.UniformBytes)
	for _, i := range e.Scalars {
		copy(row[s.plan.Slots[i].Offset:], inputs[s.plan.Slots[i].Name])
	}
	if err := s.steps(e.Steps, row, nil); err != nil {
		return nil, err
	}
	if err := s.status(); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, i := range e.Outputs {
		data, err := s.read(&s.plan.Slots[i])
		if err != nil {
			return nil, err
		}
		out[s.plan.Slots[i].Name] = data
	}
	return out, nil
}

// Start launches the steps of an entry without inputs and waits for nothing.
func (s *Session) Start(entry string) error {
	e := s.plan.Entry(entry)
	if e == nil {
		return ir.Errorf(ir.ErrName, "there is no entry %q", entry)
	}
	return s.steps(e.Steps, make([]byte, e.UniformBytes), nil)
}

func (s *Session) steps(steps []plan.Step, row []byte, counters []int) error {
	for _, step := range steps {
		switch step := step.(type) {
		case *plan.Dispatch:
			if err := s.dispatch(step, row, counters); err != nil {
				return err
			}
		case *plan.Repeat:
			for i := range step.Count {
				if err := s.steps(step.Steps, row, append(counters[:len(counters):len(counters)], i)); err != nil {
					return err
				}
			}
		default:
			return ir.Errorf(ir.ErrUnsupported, "a step of type %T", step)
		}
	}
	return nil
}

func (s *Session) dispatch(d *plan.Dispatch, row []byte, counters []int) error {
	k := &s.plan.Kernels[d.Kernel]
	var args []driver.Ptr
	for _, b := range d.Bindings {
		args = append(args, s.buffers[b.Buffer]+driver.Ptr(b.Offset))
	}
	params := append([]byte(nil), row[:k.ScalarBytes]...)
	for _, n := range counters[:k.Counters] {
		params = binary.LittleEndian.AppendUint32(params, uint32(n))
	}
	return s.device.Launch(s.kernels[d.Kernel], d.Groups, k.Workgroup, args, params)
}

// status reports and clears the status words.
func (s *Session) status() error {
	st := s.plan.Status
	if st == nil {
		return nil
	}
	at := s.buffers[st.Buffer] + driver.Ptr(st.Offset)
	words := make([]byte, plan.StatusBytes)
	if err := s.device.Read(words, at); err != nil {
		return err
	}
	code := binary.LittleEndian.Uint32(words)
	if code == 0 {
		return nil
	}
	clear(words)
	if err := s.device.Write(at, words); err != nil {
		return err
	}
	for _, c := range st.Codes {
		if c.Code == code {
			return ir.Errorf(ir.ErrIndex, "%s: %s", c.Node, c.Message)
		}
	}
	return fmt.Errorf("status code %d has no meaning", code)
}
