package rlx

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	_ "github.com/rlx-go/rlx/native/cpu" // the device that is always there
)

// Device is a device that this program was built for.
type Device struct {
	native.Info
	// Name is what [Open] takes: "cpu", "webgpu".
	Name string
	// Err says why the device cannot be used; nil where it can.
	Err error
}

// Devices returns the devices that this program was built for, each asked
// whether it is there, sorted by name.
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

// Available returns nil for a device that can be used now. The error is of kind
// [ir.ErrName] for one that this program was not built for, or
// [native.ErrUnavailable], saying what is missing.
func Available(name string) error {
	b, err := native.Lookup(name)
	if err != nil {
		return err
	}
	return b.Probe()
}

// Fastest returns the usable device of the greatest speed, where a device made
// of software is slower than the CPU. There is always one.
func Fastest() Device {
	usable := slices.DeleteFunc(Devices(), func(d Device) bool { return d.Err != nil })
	return slices.MaxFunc(usable, func(a, b Device) int { return cmp.Compare(a.Speed, b.Speed) })
}

// FirstUnsupported returns the first node of a graph that a device cannot
// compute, with the reason, or nil where it can compute all of it. The error is
// of kind [ir.ErrName] for an unknown device, and says why the device is absent
// where it is, of kind [native.ErrUnavailable].
func FirstUnsupported(g *ir.Graph, device string) (*ir.Node, string, error) {
	b, err := native.Lookup(device)
	if err != nil {
		return nil, "", err
	}
	if err := g.Given(); err != nil {
		return nil, "", err
	}
	if err := b.Probe(); err != nil {
		return nil, "", err
	}
	n, reason := firstUnsupported(b, g)
	return n, reason, nil
}

func firstUnsupported(b native.Backend, g *ir.Graph) (*ir.Node, string) {
	for _, n := range g.Nodes() {
		switch s := b.Support(n); s.Level {
		case native.Unsupported:
			return n, s.Reason
		case native.Decomposed:
			if reason := refusal(n); reason != "" {
				return n, reason
			}
		}
		for _, sub := range n.Subgraphs() {
			if n, reason := firstUnsupported(b, sub); n != nil {
				return n, reason
			}
		}
	}
	return nil, ""
}

// refusal returns why a composite cannot be taken apart for one device, "" where it can.
func refusal(n *ir.Node) string {
	_, err := ir.Build(string(n.Op()), func(b *ir.Builder) {
		in := make([]ir.Value, len(n.Inputs()))
		for i, v := range n.Inputs() {
			in[i] = b.Port(ir.InputPort, strconv.Itoa(i), v.Type())
		}
		n.Def().Body(b, n, in)
	})
	if !errors.Is(err, ir.ErrUnsupported) {
		return ""
	}
	return err.Error()
}
