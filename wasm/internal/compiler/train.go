package compiler

import (
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/wasm/internal/wire"
)

// hyper reads hyper-parameters by name.
func hyper(r *wire.Request) recipe.Numbers {
	out := recipe.Numbers{}
	r.List(func() {
		name := r.Text()
		out[name] = r.F64()
	})
	return out
}

// curvature (loss graph, loss, hyper-parameters of Sophia, frozen, name of its states, seed) → graph that updates the curvature.
func curvature(g *ir.Graph, c *wire.Service, r *wire.Request, w *wire.Response) error {
	loss, h, frozen, stateName, seed := r.Text(), hyper(r), r.Texts(), r.Text(), r.U32()
	if r.Err() != nil {
		return r.Err()
	}
	g, err := recipe.Sophia(h).Curvature(g, loss, uint64(seed), optim.Options{Frozen: frozen, Name: stateName})
	return keepGraph(c, w, g, err)
}

// readGroups reads groups of parameters: patterns, optimizer, its hyper-parameters and the factor of
// the rate, each.
func readGroups(r *wire.Request) []recipe.Group {
	var groups []recipe.Group
	r.List(func() {
		groups = append(groups, recipe.Group{Params: r.Texts(), Optimizer: r.Text(), Hyper: hyper(r), Rate: r.F64()})
	})
	return groups
}

// trainingStep (loss graph, loss, optimizer, hyper-parameters, schedule, its
// parameters, frozen, how many losses to keep, groups, checkpoint policy, name of the optimizer's
// states) → step graph.
func trainingStep(g *ir.Graph, c *wire.Service, r *wire.Request, w *wire.Response) error {
	step := recipe.Step{
		Loss: r.Text(), Optimizer: r.Text(), Hyper: hyper(r), Schedule: r.Text(), Rates: hyper(r), Frozen: r.Texts(), History: r.U32(),
		Groups: readGroups(r), Policy: r.Texts(), Name: r.Text(),
	}
	if r.Err() != nil {
		return r.Err()
	}
	g, err := step.Graph(g)
	return keepGraph(c, w, g, err)
}

// initialState (step graph) → graph that sets the optimiser's states.
func initialState(g *ir.Graph, c *wire.Service, r *wire.Request, w *wire.Response) error {
	g, err := optim.Init(g)
	return keepGraph(c, w, g, err)
}
