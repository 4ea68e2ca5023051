package rlx

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// DeviceReport lists how a device computes the nodes of a module.
type DeviceReport struct {
	Device Device
	// Rows has a row for each node, in order: entry by entry, the nodes of a subgraph after the
	// node that owns it. Inputs, parameters and states have a row only if they are unsupported.
	Rows []ReportRow
}

// ReportRow is how a device computes a node.
type ReportRow struct {
	Entry string
	Node  *ir.Node
	// Level is [native.Unsupported] for a composite if the device can compute neither it nor its
	// body.
	Level native.Level
	// Reason is why the node is unsupported; "" if it is supported.
	Reason string
}

// Unsupported returns the rows of the nodes that the device cannot compute.
func (r *DeviceReport) Unsupported() (rows []ReportRow) {
	for _, row := range r.Rows {
		if row.Level == native.Unsupported {
			rows = append(rows, row)
		}
	}
	return rows
}

// Err returns nil if the device can compute the module, else an error of kind [ir.ErrUnsupported]
// about the first node that it cannot.
func (r *DeviceReport) Err() error {
	rows := r.Unsupported()
	if len(rows) == 0 {
		return nil
	}
	more := ""
	if n := len(rows) - 1; n > 0 {
		more = fmt.Sprintf(", and %d nodes more", n)
	}
	return ir.Errorf(ir.ErrUnsupported, "%s cannot compute %s of entry %q: %s%s", r.Device.Name, rows[0].Node, rows[0].Entry, rows[0].Reason, more)
}

// String returns the numbers of nodes by level, and a line for each node that is unsupported:
//
//	cpu computes all 12 nodes: 10 native, 2 decomposed
func (r *DeviceReport) String() string {
	var counts [native.Unsupported + 1]int
	for _, row := range r.Rows {
		counts[row.Level]++
	}
	var levels []string
	for level, n := range counts {
		if n > 0 {
			levels = append(levels, fmt.Sprintf("%d %s", n, native.Level(level)))
		}
	}
	var sb strings.Builder
	if n := counts[native.Unsupported]; n == 0 {
		fmt.Fprintf(&sb, "%s computes all %d nodes", r.Device.Name, len(r.Rows))
	} else {
		fmt.Fprintf(&sb, "%s cannot compute %d of %d nodes", r.Device.Name, n, len(r.Rows))
	}
	fmt.Fprintf(&sb, ": %s\n", cmp.Or(strings.Join(levels, ", "), "it has none"))
	for _, row := range r.Unsupported() {
		fmt.Fprintf(&sb, "  %s: %s%s: %s\n", row.Entry, where(row.Node), row.Node, row.Reason)
	}
	return sb.String()
}

// where returns "model.go:12: ", "" for a node without a position.
func where(n *ir.Node) string {
	if p := n.Pos().String(); p != "" {
		return p + ": "
	}
	return ""
}

// MarshalJSON returns the report as an object with the device's name, its description, whether it
// can compute the module, and the rows.
func (r *DeviceReport) MarshalJSON() ([]byte, error) {
	type row struct {
		Entry  string `json:"entry"`
		Node   string `json:"node"`
		At     string `json:"at,omitempty"`
		Level  string `json:"level"`
		Reason string `json:"reason,omitempty"`
	}
	rows := make([]row, len(r.Rows))
	for i, x := range r.Rows {
		rows[i] = row{x.Entry, x.Node.String(), x.Node.Pos().String(), x.Level.String(), x.Reason}
	}
	return json.Marshal(struct {
		Device      string `json:"device"`
		Description string `json:"description"`
		Computes    bool   `json:"computes"`
		Rows        []row  `json:"rows"`
	}{r.Device.Name, r.Device.Description, r.Err() == nil, rows})
}

// symbolSize is the size of a symbol in a report.
const symbolSize = 16

// ReportOn returns how the named device computes each node of a module. A node counts as computed
// only if the device's compiler accepts it, within the device's limits on the memory of one tensor.
// Symbolic sizes count as 16. The error is of kind [ir.ErrName] for an unknown device and
// [native.ErrUnavailable] for one that is not usable.
func ReportOn(m *ir.Module, device string) (*DeviceReport, error) {
	b, err := usable(device)
	if err != nil {
		return nil, err
	}
	return reportOn(m, b)
}

// DevicesFor returns the reports of all usable devices, the fastest first. Those that can compute
// the module are those whose [DeviceReport.Err] is nil.
func DevicesFor(m *ir.Module) ([]*DeviceReport, error) {
	var out []*DeviceReport
	for _, d := range fastestFirst() {
		if d.Err != nil {
			continue
		}
		r, err := ReportOn(m, d.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func reportOn(m *ir.Module, b native.Backend) (*DeviceReport, error) {
	if m == nil {
		return nil, ir.Errorf(ir.ErrGraph, "no module given")
	}
	m, err := ir.NewModule(m.Name, m.Entries...)
	if err != nil {
		return nil, err
	}
	bound := &ir.Module{Name: m.Name}
	for _, e := range m.Entries {
		sizes := map[string]int{}
		for _, s := range e.Graph.Symbols() {
			sizes[s] = symbolSize
		}
		g, err := e.Graph.Bind(sizes)
		if err != nil {
			return nil, err
		}
		bound.Entries = append(bound.Entries, ir.Entry{Name: e.Name, Graph: g})
	}
	r := newReporter(b)
	r.whole = r.check(bound)
	out := &DeviceReport{Device: Device{Name: b.Name(), Info: b.Info()}}
	for _, e := range bound.Entries {
		r.graph(e.Name, e.Graph, out)
	}
	if r.whole != nil && out.Err() == nil { // the device refuses nodes that it accepts one by one
		return nil, r.whole
	}
	return out, nil
}

// reporter finds how a backend computes nodes.
type reporter struct {
	backend native.Backend
	forms   *ir.Forms
	known   map[int]native.Support // by form
	whole   error                  // why the compiler refuses the whole module; nil if it accepts it
}

func newReporter(b native.Backend) *reporter {
	return &reporter{backend: b, forms: ir.NewForms(), known: map[int]native.Support{}}
}

// check returns why the compiler of the backend refuses a module.
func (r *reporter) check(m *ir.Module) error {
	if c, ok := r.backend.(native.Checker); ok {
		return c.Check(m)
	}
	return nil
}

// graph appends the rows of a graph's nodes.
func (r *reporter) graph(entry string, g *ir.Graph, out *DeviceReport) {
	for _, n := range g.Nodes() {
		s := r.of(n)
		if n.Op() == ir.OpPort && s.Level != native.Unsupported {
			continue
		}
		out.Rows = append(out.Rows, ReportRow{Entry: entry, Node: n, Level: s.Level, Reason: s.Reason})
		for _, sub := range n.Subgraphs() {
			r.graph(entry, sub, out)
		}
	}
}

// of returns how the backend computes a node, subgraphs aside.
func (r *reporter) of(n *ir.Node) native.Support {
	form := r.forms.Of(n)
	s, ok := r.known[form]
	if !ok {
		s = r.support(n)
		r.known[form] = s
	}
	return s
}

func (r *reporter) support(n *ir.Node) native.Support {
	s := r.backend.Support(n)
	switch {
	case s.Level == native.Decomposed:
		if reason := r.body(n); reason != "" {
			return native.Support{Level: native.Unsupported, Reason: reason}
		}
	case s.Level != native.Unsupported && r.whole != nil && n.Op() != ir.OpPort:
		if err := r.alone(n); err != nil {
			return native.Support{Level: native.Unsupported, Reason: err.Error()}
		}
	}
	return s
}

// body returns why the backend cannot compute the decomposition of a composite, or "".
func (r *reporter) body(n *ir.Node) string {
	g, err := ir.Body(n)
	if errors.Is(err, ir.ErrUnsupported) {
		return err.Error()
	}
	if err != nil {
		return ""
	}
	if inner, reason := r.first(g); inner != nil {
		return fmt.Sprintf("its decomposition has %s: %s", inner, reason)
	}
	return ""
}

// first returns the first node of a graph that is unsupported, and the reason; or nil.
func (r *reporter) first(g *ir.Graph) (*ir.Node, string) {
	for _, n := range g.Nodes() {
		if s := r.of(n); s.Level == native.Unsupported {
			return n, s.Reason
		}
		for _, sub := range n.Subgraphs() {
			if inner, reason := r.first(sub); inner != nil {
				return inner, reason
			}
		}
	}
	return nil, ""
}

// alone returns why the compiler of the backend refuses a node in a separate graph.
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
	m, err := ir.NewModule(g.Name(), ir.Entry{Name: g.Name(), Graph: g})
	if err != nil {
		return nil
	}
	return r.check(m)
}
