package async

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Fault wraps an error of a machine in a [*native.Error] of the call. It returns nil and
// errors that hold a [*native.Error] unchanged.
func Fault(m Machine, call string, err error) error {
	if err == nil {
		return nil
	}
	var typed *native.Error
	if errors.As(err, &typed) {
		return err
	}
	kind := m.Kind(err)
	if kind == nil {
		kind = native.KindOf(err)
	}
	return &native.Error{Backend: m.Backend(), Call: call, Kind: kind, Err: err}
}

// Blame wraps an error in a [*native.Error] that names the tensor at fault, which may be "".
func Blame(m Machine, call, name string, err error) error {
	return &native.Error{Backend: m.Backend(), Call: call, Kind: native.KindOf(err), Name: name, Err: err}
}

// fault is [Fault] with the number of runs lost with the device.
func (p *Program) fault(call string, err error) error {
	err = Fault(p.machine, call, err)
	var typed *native.Error
	if errors.As(err, &typed) && typed.Kind == native.ErrLost && typed.Steps == 0 {
		typed.Steps = p.runs
	}
	return err
}

// usable returns an error if the program is closed or its device is lost.
func (p *Program) usable(call string) error {
	if p.closed {
		return &native.Error{Backend: p.machine.Backend(), Call: call, Kind: native.ErrClosed}
	}
	if err := p.machine.Lost(); err != nil {
		return &native.Error{Backend: p.machine.Backend(), Call: call, Kind: native.ErrLost, Steps: p.runs, Err: err}
	}
	return nil
}

// statusError returns the error that the status word of a run encodes, nil for 0.
func (e *entry) statusError(word []byte) error {
	code := binary.LittleEndian.Uint32(word)
	if code == 0 {
		return nil
	}
	for _, c := range e.p.plan.Status.Codes {
		if c.Code == code {
			return &native.Error{
				Backend: e.p.machine.Backend(), Call: e.spec.Name, Kind: ir.ErrIndex,
				Node: c.Node, Err: ir.Errorf(ir.ErrIndex, "%s", c.Message),
			}
		}
	}
	return ir.Errorf(ir.ErrIndex, "a check failed with code %d", code)
}

// Checks reports whether a kernel of an entry may set the status word.
func Checks(p *plan.Plan, e *plan.Entry) bool {
	if p.Status == nil {
		return false
	}
	for s := range plan.Each(e.Steps) {
		d, is := s.(*plan.Dispatch)
		if is && slices.ContainsFunc(d.Bindings, func(b plan.Binding) bool { return b.Buffer == p.Status.Buffer }) {
			return true
		}
	}
	return false
}
