package rlx_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// fragile is the CPU as a device that is lost after some runs of bound entries, for each program that
// is compiled, and never in those after them. No GPU here can be lost on purpose.
type fragile struct {
	native.Backend
	name string
	runs *[]int
	gone error // of Probe, after the device is lost
}

func (f fragile) Name() string { return f.name }

func (f fragile) Probe() error {
	if f.gone != nil && len(*f.runs) == 0 {
		return f.gone
	}
	return f.Backend.Probe()
}

func (f fragile) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	p, err := f.Backend.Compile(ctx, m, o)
	left := math.MaxInt
	if len(*f.runs) > 0 {
		left, *f.runs = (*f.runs)[0], (*f.runs)[1:]
	}
	return &fragileProgram{Program: p, left: left}, err
}

// openFragile opens a device that is lost after the given runs of its programs; then it is gone, or
// opened again if gone is nil.
func openFragile(t *testing.T, name string, gone error, runs ...int) *rlx.Session {
	t.Helper()
	cpu, err := native.Lookup("cpu")
	if err != nil {
		t.Fatal(err)
	}
	if err := native.Register(fragile{cpu, name, &runs, gone}); err != nil {
		t.Fatal(err)
	}
	s, err := rlx.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type fragileProgram struct {
	native.Program
	left, done int
}

// lost returns the error of a lost device, nil while there are runs left.
func (p *fragileProgram) lost(call string) error {
	if p.left > 0 {
		return nil
	}
	return &native.Error{Backend: "fragile", Call: call, Kind: native.ErrLost, Steps: p.done}
}

func (p *fragileProgram) Get(ctx context.Context, name string) (native.Tensor, error) {
	if err := p.lost("get"); err != nil {
		return native.Tensor{}, err
	}
	return p.Program.Get(ctx, name)
}

func (p *fragileProgram) GetAll(ctx context.Context) (map[string]native.Tensor, error) {
	if err := p.lost("get"); err != nil {
		return nil, err
	}
	return p.Program.GetAll(ctx)
}

func (p *fragileProgram) Bind(ctx context.Context, entry string, in, out map[string]native.Tensor) (native.Bound, error) {
	b, err := p.Program.Bind(ctx, entry, in, out)
	return &fragileBound{b, p}, err
}

type fragileBound struct {
	native.Bound
	program *fragileProgram
}

func (b *fragileBound) Start(ctx context.Context) error {
	if err := b.program.lost("step"); err != nil {
		return err
	}
	b.program.left--
	b.program.done++
	return b.Bound.Start(ctx)
}

func (b *fragileBound) Wait(ctx context.Context) error {
	if err := b.program.lost("step"); err != nil {
		return err
	}
	return b.Bound.Wait(ctx)
}

func TestLostDeviceEndsTrainingAndReportsLostSteps(t *testing.T) {
	s := openFragile(t, "fragile", nil, 5)
	tr, err := s.Train(ctx, classifier(t), rlx.Training{})
	if err != nil {
		t.Fatal(err)
	}
	fill := func(int) error {
		for name, x := range examples() {
			copy(tr.Input(name).Data, x.Data)
		}
		return nil
	}
	err = tr.Run(ctx, 20, fill, nil)
	var lost *native.Error
	if !errors.As(err, &lost) || !errors.Is(err, native.ErrLost) || lost.Steps != 5 {
		t.Fatalf("training ends with %v, want a lost device that cost 5 steps", err)
	}
	if _, err := tr.Losses(ctx); !errors.Is(err, native.ErrLost) {
		t.Errorf("losses: %v, want the lost device", err)
	}
	if _, err := tr.Program().Save(ctx); !errors.Is(err, native.ErrLost) {
		t.Errorf("saving: %v, want the lost device", err)
	}
	steps(t, trainer(t, rlx.Training{}), 2) // other devices go on
}
