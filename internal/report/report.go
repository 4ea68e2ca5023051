// Package report finds how a device computes the nodes of a module, and why it cannot compute others. It is part of the
// page's compiler, and has no knowledge of the devices of a Go program.
//
// Its input is a module, before it is compiled, and a [Device], which answers for a node and, by its compiler, for a
// module. Its output is a [Row] for each node. If the compiler refuses the module for something other than the whole,
// nodes are compiled alone to find the one at fault. Read report.go first; target.go answers for the targets of package
// plan.
package report

import (
	"errors"
	"strconv"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
)

// Level describes how a node is computed.
type Level uint8

// The levels, best first.
const (
	// Native is an op with native code.
	Native Level = iota
	// Claimed is a composite with one kernel for the whole.
	Claimed
	// Decomposed is a composite computed by its body.
	Decomposed
	// Unsupported is an op that the device cannot compute.
	Unsupported
)

// Support is a level, with a reason if it is [Unsupported].
type Support struct {
	Level  Level
	Reason string
}

// Device is how a device answers.
type Device struct {
	// Support returns how the device computes a node, subgraphs aside.
	Support func(n *ir.Node) Support
	// Check returns why the compiler of the device refuses a module; nil if it accepts it. A nil Check accepts all.
	Check func(m *ir.Module) error
	// IsOfWhole reports whether an error of Check is about the module as a whole, such as its memory, so that no node is
	// at fault. A nil IsOfWhole means that none is.
	IsOfWhole func(err error) bool
}

// Row is how a device computes a node.
type Row struct {
	Entry string
	Node  *ir.Node
	Support
}

// Of returns a row for each node of a module whose sizes are constants: entry by entry, the nodes of a
// subgraph after the node that owns it. Inputs, parameters and states have a row only if they are
// unsupported. The error is that of the device's compiler if it refuses the module but no node of it; the
// rows are complete then, too.
func Of(m *ir.Module, d Device) (rows []Row, err error) {
	r := newReporter(d)
	if d.Check != nil {
		r.whole = d.Check(m)
		r.suspects = r.whole != nil && (d.IsOfWhole == nil || !d.IsOfWhole(r.whole))
	}
	refused := false
	for _, e := range m.Entries {
		r.each(e.Graph, func(n *ir.Node, s Support) bool {
			if n.Op() != ir.OpPort || s.Level == Unsupported {
				rows = append(rows, Row{e.Name, n, s})
			}
			refused = refused || s.Level == Unsupported
			return true
		})
	}
	if refused {
		return rows, nil
	}
	return rows, r.whole
}

// First returns the first node of a graph that the device does not support, and the reason; or nil. It does
// not ask the compiler of the device.
func First(g *ir.Graph, d Device) (*ir.Node, string) { return newReporter(d).first(g) }

// reporter finds how a device computes nodes.
type reporter struct {
	device   Device
	forms    *ir.Forms
	known    map[int]Support // by form
	whole    error           // why the compiler refuses the whole module; nil if it accepts it
	suspects bool            // whether that may be for a node
}

func newReporter(d Device) *reporter {
	return &reporter{device: d, forms: ir.NewForms(), known: map[int]Support{}}
}

// each calls f for the nodes of a graph and of their subgraphs, until it returns false. It reports whether none did.
func (r *reporter) each(g *ir.Graph, f func(n *ir.Node, s Support) bool) bool {
	for _, n := range g.Nodes() {
		if !f(n, r.of(n)) {
			return false
		}
		for _, sub := range n.Subgraphs() {
			if !r.each(sub, f) {
				return false
			}
		}
	}
	return true
}

// of returns how the device computes a node, subgraphs aside.
func (r *reporter) of(n *ir.Node) Support {
	form := r.forms.Of(n)
	s, ok := r.known[form]
	if !ok {
		s = r.support(n)
		r.known[form] = s
	}
	return s
}

func (r *reporter) support(n *ir.Node) Support {
	s := r.device.Support(n)
	switch {
	case s.Level == Decomposed:
		if reason := r.body(n); reason != "" {
			return Support{Unsupported, reason}
		}
	case s.Level != Unsupported && r.suspects && n.Op() != ir.OpPort:
		if err := r.alone(n); err != nil {
			return Support{Unsupported, err.Error()}
		}
	}
	return s
}

// body returns why the device cannot compute the decomposition of a composite, or "".
func (r *reporter) body(n *ir.Node) string {
	g, err := ir.Body(n)
	if errors.Is(err, ir.ErrUnsupported) {
		return err.Error()
	}
	if err != nil {
		return ""
	}
	if inner, reason := r.first(g); inner != nil {
		return format.Sprintf("its decomposition has %s: %s", inner, reason)
	}
	return ""
}

// first returns the first node of a graph that is unsupported, and the reason; or nil.
func (r *reporter) first(g *ir.Graph) (first *ir.Node, reason string) {
	r.each(g, func(n *ir.Node, s Support) bool {
		if s.Level == Unsupported {
			first, reason = n, s.Reason
		}
		return first == nil
	})
	return first, reason
}

// alone returns why the compiler of the device refuses a node in a separate graph.
func (r *reporter) alone(n *ir.Node) error {
	g, err := ir.Build(string(n.Op()), func(b *ir.Builder) {
		in := make([]ir.Value, len(n.Inputs()))
		for i, v := range n.Inputs() {
			in[i] = b.Port(ir.InputPort, strconv.Itoa(i), v.Type())
		}
		for i, v := range b.Copy(n, in) {
			b.Output(strconv.Itoa(i), v)
		}
	})
	if err != nil {
		return nil // not a node that can be a separate graph
	}
	return r.device.Check(&ir.Module{Name: g.Name(), Entries: []ir.Entry{{Name: g.Name(), Graph: g}}})
}
