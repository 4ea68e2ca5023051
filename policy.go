package rlx

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// DeviceVariable is the environment variable with the devices that [Open] and [OpenFor] choose from if the
// program names none.
const DeviceVariable = "RLX_DEVICE"

// Policy lists which devices a program may use, and in which order they are tried. The zero Policy
// is the fastest usable device first.
type Policy struct {
	// Only, if not empty, are the devices to use, the first choice first.
	Only []string
	// Prefer are devices to try before all others, in order. A device that is missing is skipped.
	// It has no effect with Only.
	Prefer []string
	// Deny are devices not to use. "webgpu" denies "webgpu:vulkan", too.
	Deny []string
}

// ParsePolicy returns the policy of a list in the form of RLX_DEVICE, separated by commas: names
// are the devices to use in order ([Policy.Only]), a name after a minus sign is denied, and "auto"
// is any device. "cuda,webgpu,cpu" is CUDA if it is usable; "-coreml" is the fastest other device;
// "cuda,auto" prefers CUDA. The error is of kind [ir.ErrName] for a list with an empty name.
func ParsePolicy(list string) (Policy, error) {
	var p Policy
	any := false
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		denied, minus := strings.CutPrefix(name, "-")
		switch {
		case name == "" || denied == "":
			return Policy{}, ir.Errorf(ir.ErrName, "the list of devices %q has an empty name: it must be of the form \"cuda,webgpu,cpu\"", list)
		case name == "auto":
			any = true
		case minus:
			p.Deny = append(p.Deny, denied)
		default:
			p.Only = append(p.Only, name)
		}
	}
	if any {
		p.Only, p.Prefer = nil, p.Only
	}
	return p, nil
}

// policyOf returns the policy of an argument of [Open].
func policyOf(device string) (Policy, error) {
	list := cmp.Or(device, os.Getenv(DeviceVariable))
	if list == "" {
		return Policy{}, nil
	}
	return ParsePolicy(list)
}

// denies reports whether the policy denies a device.
func (p Policy) denies(name string) bool {
	base, _, _ := strings.Cut(name, ":")
	return slices.Contains(p.Deny, name) || slices.Contains(p.Deny, base)
}

// OpenFor returns a session on the first device, in the order of the policy, that is usable and can
// compute all of a module ([ReportOn]). The zero Policy is that of [DeviceVariable] or, if it is unset, the fastest device that can.
// The order is by the estimated time of the module if all usable devices were calibrated
// ([Calibrate]), else that of [Device.Speed], an estimate by the kind of device. The error joins the
// reasons of all devices: it is of kind [ir.ErrUnsupported] if one of them cannot compute the
// module, [native.ErrUnavailable] for one that is not usable, and [ir.ErrName] for one that is
// unknown, or a policy that denies every device.
func OpenFor(m *ir.Module, p Policy) (*Session, error) {
	if m == nil {
		return nil, ir.Errorf(ir.ErrGraph, "no module given")
	}
	if len(p.Only)+len(p.Prefer)+len(p.Deny) == 0 {
		var err error
		if p, err = policyOf(""); err != nil {
			return nil, err
		}
	}
	return p.open(m)
}

// open opens the first device that is usable and, if m is not nil, can compute m.
func (p Policy) open(m *ir.Module) (*Session, error) {
	var reasons []error
	for _, name := range p.order(m) {
		b, err := usable(name)
		if err == nil && m != nil {
			var r *DeviceReport
			if r, err = reportOn(m, b); err == nil {
				err = r.Err()
			}
		}
		if err == nil {
			return &Session{backend: b, info: b.Info()}, nil
		}
		reasons = append(reasons, err)
	}
	if len(reasons) == 0 {
		return nil, ir.Errorf(ir.ErrName, "the policy denies every device: it must leave one of %q", deviceNames())
	}
	return nil, errors.Join(reasons...)
}

// order returns the names of the devices to try. Unusable devices that the policy does not name
// come last; they are tried for their error. With a module devices are in the order for that.
func (p Policy) order(m *ir.Module) []string {
	names := slices.Clone(p.Only)
	if len(p.Only) == 0 {
		names = slices.Clone(p.Prefer)
		for _, d := range fastestFirst(m) {
			if !slices.Contains(names, d.Name) {
				names = append(names, d.Name)
			}
		}
	}
	return slices.DeleteFunc(names, p.denies)
}

// deviceNames returns the names of the devices that this program was built with.
func deviceNames() (names []string) {
	for _, b := range native.Backends() {
		names = append(names, b.Name())
	}
	return names
}

// usable returns the backend of a device that can be opened now.
func usable(name string) (native.Backend, error) {
	b, err := native.Lookup(name)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(name, ":") {
		b = localDevice(b)
	}
	return b, b.Probe()
}
