package rlx

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
)

// Partition trains one model with the processes of a mesh: tensor, sequence, expert and data
// parallelism, and ZeRO, by [parallel.Partition]. The loss is written for the whole batch, as for
// one process, and so are the entries of Eval. Each process passes its own parts of the inputs:
//
//	mesh, err := collective.NewMesh(ctx, group, collective.Axis{Name: "data", Size: 2}, collective.Axis{Name: "model", Size: 2})
//	trainer, err := session.Train(ctx, loss, rlx.Training{Partition: &rlx.Partition{
//		Mesh:      mesh,
//		Shardings: append(parallel.Megatron("model"), parallel.Sharding{Pattern: "ids", Axes: []string{"data"}}),
//	}})
//	ids, err := trainer.Part("ids", batch) // the rows of this process
//
// All processes call the same methods of their trainers the same number of times. [Program.Get]
// returns a process's part of a divided value: see [Trainer.Whole] and [Trainer.SaveShards].
type Partition struct {
	Mesh *collective.Mesh
	// Shardings, States, Params, Bucket, Ahead and Limit are those of [parallel.Partition].
	Shardings     []parallel.Sharding
	States        string
	Params        bool
	Bucket, Ahead int
	Limit         int64
	// Log, if not nil, receives the [parallel.PartitionReport] of the step.
	Log io.Writer
}

// mesh returns the mesh to compile for, nil for one rank.
func (p *Partition) mesh() (*collective.Mesh, error) {
	if p.Mesh == nil {
		return nil, ir.Attrf("the Partition has no Mesh: it must be given")
	}
	if p.Mesh.World().Size() == 1 {
		return nil, nil
	}
	return p.Mesh, nil
}

// divide divides some entries. The step is the first of them.
func (p *Partition) divide(entries []ir.Entry) ([]ir.Entry, map[string]parallel.Placement, error) {
	mesh, err := p.mesh()
	if mesh == nil {
		return entries, nil, err
	}
	pass := parallel.Partition{Shardings: p.Shardings, States: p.States, Params: p.Params, Bucket: p.Bucket, Ahead: p.Ahead, Limit: p.Limit}
	for _, a := range mesh.Axes() {
		pass.Mesh = append(pass.Mesh, parallel.Axis{Name: a.Name, Size: a.Size})
	}
	placements, err := pass.Placements(entries[0].Graph)
	if err != nil {
		return nil, nil, err
	}
	for i := range entries {
		var report parallel.PartitionReport
		if entries[i].Graph, report, err = pass.Apply(entries[i].Graph, placements); err != nil {
			return nil, nil, fmt.Errorf("entry %q: %w", entries[i].Name, err)
		}
		if i > 0 || p.Log == nil {
			continue
		}
		if _, err := io.WriteString(p.Log, report.String()); err != nil {
			return nil, nil, err
		}
	}
	return entries, placements, nil
}

// Part returns this process's part of a whole value: of an input of the step, a parameter or a
// state. An undivided value is returned unchanged. The error is of kind [ir.ErrShape] for a value
// of another type than the whole.
func (t *Trainer) Part(name string, whole Tensor) (Tensor, error) {
	if err := trainerGiven(context.Background(), t, "part"); err != nil {
		return Tensor{}, err
	}
	if t.unusable != nil {
		return Tensor{}, t.unusable
	}
	placement, ok := t.placements[name]
	if !ok {
		return whole, nil
	}
	if shape, _ := placement.Type.Shape.Ints(); whole.DType != placement.Type.DType || !slices.Equal(whole.Dims, shape) || whole.Check() != nil {
		return Tensor{}, ir.Shapef("the value of %q is %s; it must be %s", name, whole, placement.Type)
	}
	return partOf(placement, whole, t.layout().at(t.rank())), nil
}

// spread copies parameters, states or parts of them from one rank to all others that have the same
// ones: initial values on two kinds of processor can differ in the last bit.
func spread(ctx context.Context, p *Program, mesh *collective.Mesh, placements map[string]parallel.Placement) error {
	if mesh == nil {
		return nil
	}
	values, err := p.GetAll(ctx)
	if err != nil {
		return err
	}
	slots := p.Persistent()
	slices.SortFunc(slots, func(a, b native.Slot) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range slots {
		x, placement := values[s.Name], placements[s.Name]
		for _, a := range mesh.Axes() {
			if a.Size == 1 || a.Name == placement.Flat || slices.Contains(placement.Axes, a.Name) {
				continue
			}
			first := native.Zeros(x.DType, x.Dims...)
			if err := mesh.Along(a.Name).Broadcast(ctx, x.DType, 0, x.Data, first.Data); err != nil {
				return fmt.Errorf("initial value of %q: %w", s.Name, err)
			}
			x = first
		}
		values[s.Name] = x
	}
	return p.SetAll(ctx, values)
}
