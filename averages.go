package rlx

import (
	"context"
	"fmt"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// averageSlot is the slot of the averages of parameters: see [optim.Options.Average].
const averageSlot = "average"

// averages has the states that keep averages of parameters, by the name of the parameter.
type averages map[string]ir.Port

// add adds the averages that a training step keeps.
func (a averages) add(step *ir.Graph, o optim.Options) {
	for _, p := range step.Ports() {
		if state, ok := step.Port(o.SlotState(averageSlot, p.Name)); ok {
			a[p.Name] = state
		}
	}
}

// entries returns entries that read averages in place of the parameters that they are of. The error is of kind [ir.ErrGraph] for
// an entry that reads no parameter with an average.
func (a averages) entries(of []ir.Entry) ([]ir.Entry, error) {
	out := make([]ir.Entry, len(of))
	for i, e := range of {
		if err := e.Graph.NotNil(); err != nil {
			return nil, fmt.Errorf("entry %q: %w", e.Name, err)
		}
		g, err := a.graph(e.Graph)
		if err != nil {
			return nil, fmt.Errorf("entry %q on averages: %w", e.Name, err)
		}
		out[i] = ir.Entry{Name: e.Name, Graph: g}
	}
	return out, nil
}

// graph returns g with averages, which it only reads, in place of parameters.
func (a averages) graph(g *ir.Graph) (*ir.Graph, error) {
	found := false
	out, err := ir.Transform(g.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(g)
		for _, p := range g.Ports() {
			state, ok := a[p.Name]
			if !ok || p.Kind != ir.ParamPort {
				m.Set(p.Value, b.CopyPort(p))
				continue
			}
			found = true
			average := b.Port(ir.ParamPort, state.Name, state.Value.Type())
			m.Set(p.Value, ops.Convert(b, average, p.Value.DType()))
		}
		for _, n := range g.Nodes() {
			if n.Op() != ir.OpPort {
				b.CopyNode(n, m)
			}
		}
		b.CopyOutputs(g, m)
	})
	if err == nil && !found {
		err = ir.Errorf(ir.ErrGraph, "it reads no parameter with an average: Options.Average must be set, and the parameters be trained")
	}
	return out, err
}

// Averages returns what [Trainer.Params] does, with the averages of the trained parameters ([optim.Options.Average]) in
// their place and under their names: the values for inference. If values are divided among ranks, all ranks call
// it, and each gets the whole ones. The error is of kind [ir.ErrUnsupported] for a
// step that keeps none. Before the first update averages are zeros.
func (t *Trainer) Averages(ctx context.Context) (map[string]Tensor, error) {
	if err := trainerGiven(ctx, t, "averages"); err != nil {
		return nil, err
	}
	all, err := t.Whole(ctx) // an average may be divided though its parameter is not
	if err != nil {
		return nil, err
	}
	var o optim.Options
	switch {
	case t.objective != nil:
		o = t.objective.Options
	case t.recipe != nil:
		o = t.recipe.options.Options
	}
	params, found := inferenceValues(t, all), false
	for name, x := range params {
		average, ok := all[o.SlotState(averageSlot, name)]
		if !ok {
			continue
		}
		found = true
		if params[name], err = rounded(average, x.DType); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, ir.Errorf(ir.ErrUnsupported, "the step keeps no averages of parameters: Options.Average must be set")
	}
	return params, nil
}

// rounded returns a tensor of floats as one of type d.
func rounded(x Tensor, d ir.DType) (Tensor, error) {
	if x.DType == d {
		return x, nil
	}
	from, err := x.Array()
	if err != nil {
		return Tensor{}, err
	}
	to := ir.NewArray(d, x.Dims...)
	copy(to.F, from.F)
	to.Round()
	return native.FromArray(to), nil
}
