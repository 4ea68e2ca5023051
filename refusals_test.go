package rlx_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
)

// decomposeFailure is a case of ir/irtest/cases/refusals.json, which the tests of TypeScript read too.
type decomposeFailure struct {
	Name         string
	Graph        json.RawMessage // lines of the text form, or the name of a case before
	With, Remedy struct {
		Loss                         string
		Frozen                       []string
		ConstantKeys, AllowUnreached bool
	}
	Init  map[string]float64
	Run   string // an entry to run without anything loaded; training else
	Kind  string // "" where nothing is refused
	Words []string
}

// kindsOfRefusals are the kinds of error as TypeScript calls them.
var kindsOfRefusals = map[string]error{
	"name": ir.ErrName, "graph": ir.ErrGraph, "shape": ir.ErrShape, "missing": ir.ErrName,
}

func TestRefusalsAreThoseOfTypeScript(t *testing.T) {
	data, err := os.ReadFile("ir/irtest/cases/refusals.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []decomposeFailure }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	graphs := map[string]*ir.Graph{}
	for _, c := range file.Cases {
		var lines []string
		if json.Unmarshal(c.Graph, &lines) == nil {
			graphs[c.Name] = must(ir.Parse("graph \"main\" {\n  " + strings.Join(lines, "\n  ") + "\n}\n"))(t)
		} else if err := json.Unmarshal(c.Graph, &c.Name); err != nil {
			t.Fatal(err)
		}
		try := func(remedied bool) error { return c.try(t, graphs[c.Name], remedied) }
		err := try(false)
		if c.Kind == "" && err != nil || c.Kind != "" && !errors.Is(err, kindsOfRefusals[c.Kind]) {
			t.Errorf("%s: %v, want one of kind %q", c.Name, err, c.Kind)
			continue
		}
		for _, word := range c.Words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v says nothing of %s", c.Name, err, word)
			}
		}
		if c.Remedy.ConstantKeys || c.Remedy.AllowUnreached {
			if err := try(true); err != nil {
				t.Errorf("%s, with the remedy: %v", c.Name, err)
			}
		}
	}
}

// try runs the case, with its remedy or without.
func (c *decomposeFailure) try(t *testing.T, g *ir.Graph, remedied bool) error {
	if c.Run != "" {
		p := must(session(t).Compile(ctx, must(ir.NewModule("m", ir.Entry{Name: c.Run, Graph: g}))(t)))(t)
		_, err := p.Call(ctx, c.Run, rlx.Inputs{"key": rlx.Uint32s([]uint32{1, 2}, 2)})
		return errors.Join(err, p.Close(ctx))
	}
	how := rlx.Training{Loss: c.With.Loss, Options: optim.Options{Frozen: c.With.Frozen}, Init: map[string]rlx.Initializer{}}
	for name, x := range c.Init {
		how.Init[name] = rlx.Constant(x)
	}
	if remedied {
		how.Options.ConstantKeys = c.Remedy.ConstantKeys
		if c.Remedy.AllowUnreached {
			how.Options.Missing = autodiff.MissingIsZero
		}
	}
	_, err := how.Entries(g)
	return err
}
