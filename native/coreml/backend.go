package coreml

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/executor/synchronous"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Name is the backend's name.
const Name = driver.Backend

// Register fails only if another package has registered "coreml", which then serves
// instead.
func init() { _ = native.Register(Backend()) }

// Backend returns the backend. Each entry of a module becomes a model that takes the
// parameters and states from the host and returns the new states. It computes in the types
// of the module, so f32 does not run on the Neural Engine.
func Backend() native.Backend { return backend{} }

type backend struct{}

func (backend) Name() string                      { return Name }
func (backend) Support(n *ir.Node) native.Support { return Support(n) }

// open returns Core ML if it supports the models that the backend writes.
func open(call string) (Runtime, System, error) {
	rt, err := Open()
	var s System
	if err == nil {
		s, err = rt.System()
	}
	if err != nil {
		return nil, s, fault(call, "", err)
	}
	return rt, s, nil
}

func (backend) Probe() error {
	_, _, err := open("probe")
	return err
}

// speed ranks Core ML below the CPU, so that it is used only on request: it lacks random
// numbers and 64-bit types, and was not measured.
const speed = 1

func (backend) Info() native.Info {
	_, s, err := open("info")
	if err != nil {
		return native.Info{}
	}
	return native.Info{Description: s.Description, Software: s.Software, Speed: speed}
}

func (backend) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	rt, _, err := open("compile")
	if err != nil {
		return nil, err
	}
	parts, slots := allocations(m)
	budget, err := o.Budget(native.HostMemory())
	if err == nil {
		err = budget.Check(parts, slots)
	}
	if err != nil {
		return nil, fault("compile", "", err)
	}
	p := newProgram(m)
	for _, a := range parts {
		p.bytes += a.Bytes
	}
	for _, e := range m.Entries {
		if err := ctx.Err(); err != nil {
			_ = p.Release()
			return nil, fault("compile", "", err)
		}
		model, err := compile(rt, e)
		if err != nil {
			_ = p.Release()
			return nil, fault("compile", "", err)
		}
		model.call = e.Name
		p.add(e, model)
	}
	return synchronous.NewProgram(p.signature(), p), nil
}

// compile makes a model of an entry, with checks of indices, through a temporary package.
func compile(rt Runtime, e ir.Entry) (*Model, error) {
	for _, p := range e.Graph.Ports() {
		if _, constant := p.Value.Shape().Ints(); !constant {
			return nil, p.Value.Node().Fail(ir.Shapef("%s has a symbolic size: bind it first", p.Value.Type()))
		}
	}
	alone, err := ir.NewModule(e.Name, e)
	if err != nil {
		return nil, err
	}
	pkg, err := New(alone, Options{Checks: true})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rlx-coreml-*")
	if err != nil {
		return nil, fmt.Errorf("create a folder for the model of entry %q: %w", e.Name, err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "entry.mlpackage")
	if err := pkg.Write(path); err != nil {
		return nil, err
	}
	return Load(rt, path, mainFunction, DefaultUnits)
}
