// Package fragile is a device for tests: the CPU, which is lost after some runs.
package fragile

import (
	"context"
	"sync/atomic"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Name is the name of the device.
const Name = "fragile"

// Register registers the device, which makes as many runs as left says when they begin. The error is that of [native.Register].
func Register(left *atomic.Int32) error {
	cpu, err := native.Lookup("cpu")
	if err != nil {
		return err
	}
	return native.Register(backend{cpu, left})
}

type backend struct {
	native.Backend
	left *atomic.Int32
}

func (backend) Name() string { return Name }

func (b backend) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	p, err := b.Backend.Compile(ctx, m, o)
	return program{p, b.left}, err
}

type program struct {
	native.Program
	left *atomic.Int32
}

func (p program) Run(ctx context.Context, entry string, in map[string]native.Tensor) (native.Run, error) {
	if p.left.Add(-1) < 0 {
		return nil, &native.Error{Backend: Name, Call: "run", Kind: native.ErrLost}
	}
	return p.Program.Run(ctx, entry, in)
}
