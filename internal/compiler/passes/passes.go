package passes

import (
	"errors"
	"slices"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
)

// Options steer [Run].
type Options struct {
	// Claim reports whether the backend has a kernel of its own for a node
	// with a composite op, which is then kept as it is. Nil claims nothing.
	Claim func(n *ir.Node) bool
	// Apart reports whether a running combination is to be made of ops that touch few
	// arrays each ([ir.PrefixLowering]). Nil says so of none.
	Apart func(n *ir.Node) bool
	// Verify, if not nil, checks the graph after every pass, as [ir.Verify] does. It is given
	// so that compilers that have no use for it go without.
	Verify func(g *ir.Graph) error
	// Trace, if not nil, is shown the graph before and after each pass that
	// changed it.
	Trace func(pass string, before, after *ir.Graph)
}

// Error is a bug in a pass: it panicked, or made a graph that is not well
// formed. The graph that was given is not to blame.
type Error struct {
	Pass string
	Node *ir.Node // that the pass was at, nil if none
	Err  error
}

// Error returns "pass fold: model.go:12: mul(f32[2], f32[2]): ...".
func (e *Error) Error() string {
	err := e.Err
	var named *ir.OpError
	if e.Node != nil && !errors.As(err, &named) {
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

// table is the order in which passes run, over and over until none of them
// finds anything to do.
func table() []pass {
	return []pass{
		{name: "inline", run: inline},
		{name: "simplify", run: simplify, after: []order{
			{"inline", "identities show up where bodies meet what surrounds them"},
		}},
		{name: "fold", run: fold, after: []order{
			{"simplify", "a literal of equal elements is evaluated as one element once it is written as a broadcast"},
		}},
		{name: "cse", run: cse, after: []order{
			{"simplify", "equal values are recognised by their form, and simplifying brings forms together"},
			{"fold", "literals made by folding are shared"},
		}},
		{name: "dce", run: dce, after: []order{
			{"simplify", "rules leave the operands they no longer need behind"},
			{"fold", "folding leaves its operands behind"},
			{"cse", "sharing leaves the copies behind"},
		}},
	}
}

// checkOrder makes sure that every pass comes after those it needs.
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

// maxRounds bounds how often the table is gone through. Each round has seen
// the work of the one before, and what is left after these is not worth more.
const maxRounds = 8

// Run applies all passes to a graph, subgraphs included. An error is an
// [*Error], that is a bug in a pass.
func Run(g *ir.Graph, o Options) (*ir.Graph, error) {
	if err := g.Given(); err != nil {
		return nil, err
	}
	passes := table()
	if err := checkOrder(passes); err != nil {
		return nil, err
	}
	r := newRun(o)
	done := make([]*ir.Graph, len(passes)) // the graph that a pass has found nothing to do in
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
	node   *ir.Node // that the pass at work is at
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
