package passes

import (
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
)

// Options are the options of [Run].
type Options struct {
	// Claim reports whether the backend implements a composite op, which is then not
	// inlined. Nil claims nothing.
	Claim func(n *ir.Node) bool
	// Decompose reports whether to decompose a scan into ops with fewer operands
	// ([ir.PrefixLowering]). Nil decomposes none.
	Decompose func(n *ir.Node) bool
	// Verify, if not nil, checks the graph after every pass, as [ir.Verify] does. It is
	// an option so that compilers that do not use it do not link it.
	Verify func(g *ir.Graph) error
	// Trace, if not nil, is called with the graph before and after each pass that
	// changed it.
	Trace func(pass string, before, after *ir.Graph)
}

// Error is a bug in a pass, not in the given graph: the pass panicked or returned an
// invalid graph.
type Error struct {
	Pass string
	Node *ir.Node // the node being rewritten, or nil
	Err  error
}

// Error returns "pass fold: model.go:12: mul(f32[2], f32[2]): ...".
func (e *Error) Error() string {
	err := e.Err
	if _, named := errors.AsType[*ir.OpError](err); e.Node != nil && !named {
		err = e.Node.Fail(err)
	}
	return "pass " + e.Pass + ": " + err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// pass is an entry of the table.
type pass struct {
	name string
	run  func(r *run, g *ir.Graph) (*ir.Graph, error)
	// after lists the passes that must come earlier, each with the reason.
	after []order
}

type order struct{ pass, reason string }

// table lists the passes in order. They run repeatedly until none changes the graph.
func table() []pass {
	return []pass{
		{name: "inline", run: inline},
		{name: "simplify", run: simplify, after: []order{
			{"inline", "inlined bodies expose identities across their boundaries"},
		}},
		{name: "fold", run: fold, after: []order{
			{"simplify", "a literal of equal elements becomes a broadcast, which folds as one element"},
		}},
		{name: "cse", run: cse, after: []order{
			{"simplify", "simplifying makes equal values structurally equal"},
			{"fold", "folded literals are shared"},
		}},
		{name: "dce", run: dce, after: []order{
			{"simplify", "rules make operands dead"},
			{"fold", "folding makes operands dead"},
			{"cse", "sharing makes duplicates dead"},
		}},
	}
}

// checkOrder checks that every pass comes after those it depends on.
func checkOrder(passes []pass) error {
	for i, p := range passes {
		for _, o := range p.after {
			if !slices.ContainsFunc(passes[:i], func(q pass) bool { return q.name == o.pass }) {
				return format.Errorf("pass %s must run after %s: %s", p.name, o.pass, o.reason)
			}
		}
	}
	return nil
}

// maxRounds bounds the number of iterations over the table.
const maxRounds = 8

// Run applies all passes to a graph, subgraphs included. An error is an
// [*Error], that is a bug in a pass.
func Run(g *ir.Graph, o Options) (*ir.Graph, error) {
	if err := g.NotNil(); err != nil {
		return nil, err
	}
	passes := table()
	if err := checkOrder(passes); err != nil {
		return nil, err
	}
	r := newRun(o)
	done := make([]*ir.Graph, len(passes)) // the graph that a pass did not change
	for range maxRounds {
		before := g
		for i, p := range passes {
			if done[i] == g {
				continue
			}
			out, err := r.apply(p, g)
			if err != nil {
				return nil, err
			}
			if out == g {
				done[i] = g
			}
			g = out
		}
		if g == before {
			break
		}
	}
	return g, nil
}

// run is one call of Run.
type run struct {
	Options
	node   *ir.Node // the node being rewritten
	forms  *ir.Forms
	bodies map[int]*body // of composites, by their forms
}

func newRun(o Options) *run { return &run{Options: o, forms: ir.NewForms(), bodies: map[int]*body{}} }

func (r *run) apply(p pass, g *ir.Graph) (out *ir.Graph, err error) {
	r.node = nil
	defer func() {
		if x := recover(); x != nil {
			out, err = nil, &Error{p.name, r.node, format.Errorf("panic: %v", x)}
		}
	}()
	out, err = p.run(r, g)
	if err != nil {
		return nil, &Error{p.name, r.node, err}
	}
	if out == g {
		return g, nil
	}
	if r.Trace != nil {
		r.Trace(p.name, g, out)
	}
	if r.Verify != nil {
		if err := r.Verify(out); err != nil {
			return nil, &Error{p.name, nil, err}
		}
	}
	return out, nil
}
