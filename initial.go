package rlx

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// Initializer adds the initial value of a parameter of type t to a graph. key is a random key,
// u32[2], unique to the parameter. The value is computed by the graph, so every device gets the
// same one.
type Initializer func(b *ir.Builder, key ir.Value, t ir.Type) ir.Value

// HeNormal draws from a normal distribution with mean 0 and variance 2/(fan in), after He et al.
// 2015, as torch.nn.init.kaiming_normal_ does for ReLU. Weights are [in, out] or [height, width,
// in, out]: the fan out is the last axis times the receptive field, the fan in the axis before it
// times the receptive field.
func HeNormal() Initializer { return ByRule(nn.HeNormal()) }

// GlorotNormal draws from a normal distribution with mean 0 and variance 2/(fan in + fan out),
// after Glorot and Bengio 2010. See [HeNormal] for the fans.
func GlorotNormal() Initializer { return ByRule(nn.GlorotNormal()) }

// GlorotUniform draws from [−a, a) with a = √(6/(fan in + fan out)), after Glorot and Bengio 2010.
// See [HeNormal] for the fans.
func GlorotUniform() Initializer { return ByRule(nn.GlorotUniform()) }

// HeUniform draws from [−a, a) with a = √(6/(fan in)), as torch.nn.init.kaiming_uniform_ does for
// ReLU. See [HeNormal] for the fan.
func HeUniform() Initializer { return ByRule(nn.HeUniform()) }

// Normal draws from a normal distribution with the given mean and standard deviation.
func Normal(mean, deviation float64) Initializer { return ByRule(nn.Normal(mean, deviation)) }

// Uniform draws from [low, high).
func Uniform(low, high float64) Initializer { return ByRule(nn.Uniform(low, high)) }

// Constant sets all elements to x.
func Constant(x float64) Initializer { return ByRule(nn.Constant(x)) }

// ByRule returns the initializer of a rule, as parameters declare them ([ir.PortOptions]).
func ByRule(rule ir.Initial) Initializer {
	return func(b *ir.Builder, key ir.Value, t ir.Type) ir.Value { return nn.Draw(b, rule, key, t) }
}

// defaultInitializer returns the default initializer of a parameter: GlorotUniform for rank 2 and above,
// zeros otherwise.
func defaultInitializer(t ir.Type) Initializer {
	if t.Shape.Rank() < 2 {
		return Constant(0)
	}
	return GlorotUniform()
}

// SeedInput is the name of the input of the graph returned by [InitGraph], a rank-0 u32.
const SeedInput = "seed"

// InitGraph returns a graph that sets the states of a training step to their initial values.
// Each starts by its initializer in by or else by the rule that it declares ([ir.PortOptions]).
// Without either, a parameter that trained names starts by [GlorotUniform] if it is of a floating
// type and of rank 2 or above; all others, such as states of the optimizer, start as zeros.
// Parameters that the step only reads are set if trained or by names them; otherwise they are left
// alone, since they may belong to another step. The keys of by are names or patterns like those of
// [optim.Options.Frozen]; a name takes precedence over a pattern.
//
// The random key of a parameter depends on its name and the seed only: the same seed gives the same
// numbers on every device and in TypeScript, whatever other parameters there are. The error is of
// kind [ir.ErrName] for a name or pattern that matches nothing, and for a parameter that two
// patterns match.
func InitGraph(step *ir.Graph, trained []string, by map[string]Initializer) (*ir.Graph, error) {
	if err := step.NotNil(); err != nil {
		return nil, err
	}
	own, err := initializers(step, by)
	if err != nil {
		return nil, err
	}
	weights := map[string]bool{}
	for _, name := range trained {
		weights[name] = true
	}
	return ir.Build(step.Name()+"/init", func(b *ir.Builder) {
		seed := b.Input(SeedInput, ir.U32)
		for _, p := range step.Ports() {
			t := p.Value.Type()
			if p.Kind == ir.InputPort || p.Kind == ir.ParamPort && !weights[p.Name] && own[p.Name] == nil {
				continue
			}
			b.Port(ir.StatePort, p.Name, t)
			init, declared := own[p.Name], p.Options().Initial
			switch {
			case init != nil:
			case !declared.IsZero():
				init = ByRule(declared)
			case weights[p.Name] && t.DType.IsFloat():
				init = defaultInitializer(t)
			default:
				init = Constant(0)
			}
			b.SetState(p.Name, init(b, ops.FoldIn(b, ops.Key(b, nameHash(p.Name)), seed), t))
		}
	})
}

// InitialParams draws the initial values of the parameters and states of a graph on the CPU, for [Program.Load]: those of
// [InitGraph] with all parameters as trained, and ones where [ir.Graph.InitAsOnes] has them. [Session.Train] needs no call of
// it. The errors are those of InitGraph, of [Session.Compile] and of [Program.Call].
func InitialParams(ctx context.Context, g *ir.Graph, by map[string]Initializer, seed uint32) (values map[string]Tensor, err error) {
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	given, err := initializers(g, by)
	if err != nil {
		return nil, err
	}
	by = maps.Clone(by)
	if by == nil {
		by = map[string]Initializer{}
	}
	var names []string
	ones := g.InitAsOnes()
	for _, p := range g.Ports() {
		if p.Kind == ir.ParamPort {
			names = append(names, p.Name)
		}
		if ones[p.Name] && given[p.Name] == nil && p.Options().Initial.IsZero() {
			by[p.Name] = Constant(1)
		}
	}
	first, err := InitGraph(g, names, by)
	if err != nil || len(first.Outputs()) == 0 {
		return map[string]Tensor{}, err
	}
	return draw(ctx, first, seed)
}

// draw returns the values of the states that a graph of [InitGraph] sets.
func draw(ctx context.Context, first *ir.Graph, seed uint32) (values map[string]Tensor, err error) {
	m, err := ir.NewModule("init", ir.Entry{Name: "init", Graph: first})
	if err != nil {
		return nil, err
	}
	host, err := Open("cpu")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Close(context.WithoutCancel(ctx))) }()
	p, err := host.Compile(ctx, m)
	if err != nil {
		return nil, err
	}
	if _, err := p.Call(ctx, "init", Inputs{SeedInput: Uint32(seed)}); err != nil {
		return nil, err
	}
	return p.Save(ctx)
}

// nameHash is FNV-1a of 64 bits, as in js/src/graph/initial.ts.
func nameHash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// initializers returns the initializers of a step's parameters and states by their names,
// given by names and patterns.
func initializers(step *ir.Graph, by map[string]Initializer) (map[string]Initializer, error) {
	own, from := map[string]Initializer{}, map[string]string{}
	var params []string
	for _, p := range step.Ports() {
		if p.Kind == ir.ParamPort {
			params = append(params, p.Name)
		}
		if p.Kind != ir.InputPort && by[p.Name] != nil {
			own[p.Name], from[p.Name] = by[p.Name], p.Name
		}
	}
	for _, pattern := range slices.Sorted(maps.Keys(by)) {
		if by[pattern] == nil {
			return nil, ir.Attrf("the initializer for %q is nil: it must be given", pattern)
		}
		matched := own[pattern] != nil
		for _, name := range params {
			if !optim.Covers(pattern, name) {
				continue
			}
			matched = true
			switch other := from[name]; {
			case other == "":
				own[name], from[name] = by[pattern], pattern
			case other != name && pattern != name:
				return nil, ir.Errorf(ir.ErrName, "initializers for %q and for %q both match parameter %q: give it one by its name", other, pattern, name)
			}
		}
		if !matched {
			return nil, ir.Errorf(ir.ErrName, "an initializer for %q, which matches no parameter or state of %q: there are %s", pattern, step.Name(), formatNames(params))
		}
	}
	return own, nil
}
