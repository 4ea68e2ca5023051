package rlx

import (
	"github.com/rlx-go/rlx/internal/report"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	_ "github.com/rlx-go/rlx/native/cpu" // registers "cpu", the device that is always available
)

// Device describes a device that this program was built with.
type Device struct {
	native.Info
	// Name is the name for [Open]: "cpu", "webgpu".
	Name string
	// Err is the reason why the device is not usable; nil if it is.
	Err error
}

// Devices probes the devices that this program was built with and returns them sorted by name.
func Devices() []Device {
	var out []Device
	for _, b := range native.Backends() {
		d := Device{Name: b.Name(), Err: b.Probe()}
		if d.Err == nil {
			d.Info = b.Info()
		}
		out = append(out, d)
	}
	return out
}

// Available returns nil if the named device is usable now. The error is of kind [ir.ErrName] for a
// device that this program was not built with, and [native.ErrUnavailable] for one whose driver or
// hardware is missing.
func Available(name string) error {
	b, err := native.Lookup(name)
	if err != nil {
		return err
	}
	return b.Probe()
}

// Fastest returns the usable device with the highest speed: that of [Calibrate] if all usable devices
// were calibrated, else [Device.Speed]. A software implementation of a GPU counts as slower than the CPU
// there. There is always a usable device.
func Fastest() Device { return fastestFirst(nil)[0] }

// FirstUnsupported returns the first node of a graph that the named device cannot compute, and the
// reason; or nil if the device can compute the whole graph. It asks node by node, the bodies of
// composites included; [ReportOn] asks the compiler, too. The error is of kind [ir.ErrName] for
// an unknown device and [native.ErrUnavailable] for one that is not usable.
func FirstUnsupported(g *ir.Graph, device string) (*ir.Node, string, error) {
	b, err := native.Lookup(device)
	if err != nil {
		return nil, "", err
	}
	if err := g.NotNil(); err != nil {
		return nil, "", err
	}
	if err := b.Probe(); err != nil {
		return nil, "", err
	}
	n, reason := report.First(g, reported(b))
	return n, reason, nil
}
