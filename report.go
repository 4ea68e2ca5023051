package rlx

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/internal/report"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// DeviceReport lists how a device computes the nodes of a module.
type DeviceReport struct {
	Device Device
	// Rows has a row for each node, in order: entry by entry, the nodes of a subgraph after the
	// node that owns it. Inputs, parameters and states have a row only if they are unsupported.
	Rows []ReportRow
	// Refused is why the device refuses the module though it can compute each node: it takes too much
	// memory, say. It is nil if the device accepts the module, or has an unsupported node.
	Refused error
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
// about the first node that it cannot, or [DeviceReport.Refused].
func (r *DeviceReport) Err() error {
	if r == nil {
		return absent("report", "err", "ReportOn")
	}
	rows := r.Unsupported()
	if len(rows) == 0 {
		return r.Refused
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
	switch n := counts[native.Unsupported]; {
	case r.Refused != nil:
		fmt.Fprintf(&sb, "%s refuses the module, and none of its %d nodes", r.Device.Name, len(r.Rows))
	case n == 0:
		fmt.Fprintf(&sb, "%s computes all %d nodes", r.Device.Name, len(r.Rows))
	default:
		fmt.Fprintf(&sb, "%s cannot compute %d of %d nodes", r.Device.Name, n, len(r.Rows))
	}
	fmt.Fprintf(&sb, ": %s\n", cmp.Or(strings.Join(levels, ", "), "it has none"))
	if r.Refused != nil {
		fmt.Fprintf(&sb, "  %v\n", r.Refused)
	}
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
// can compute the module, why it refuses the module as a whole if it does, and the rows.
func (r *DeviceReport) MarshalJSON() ([]byte, error) {
	if r == nil {
		return nil, absent("report", "json", "ReportOn")
	}
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
	refused := ""
	if r.Refused != nil {
		refused = r.Refused.Error()
	}
	return json.Marshal(struct {
		Device      string `json:"device"`
		Description string `json:"description"`
		Computes    bool   `json:"computes"`
		Refused     string `json:"refused,omitempty"`
		Rows        []row  `json:"rows"`
	}{r.Device.Name, r.Device.Description, r.Err() == nil, refused, rows})
}

// symbolSize is the size of a symbol in a report.
const symbolSize = 16

// ReportOn returns how the named device computes each node of a module. A node counts as computed
// only if the device's compiler accepts it, and the module only if it fits in the memory of the device, or that of [native.MemoryVariable].
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
	for _, d := range fastestFirst(m) {
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
	bound, err := withSizes(m)
	if err != nil {
		return nil, err
	}
	rows, refused := report.Of(bound, reported(b))
	out := &DeviceReport{Device: Device{Name: b.Name(), Info: b.Info()}, Refused: refused}
	for _, r := range rows {
		out.Rows = append(out.Rows, ReportRow{Entry: r.Entry, Node: r.Node, Level: native.Level(r.Level), Reason: r.Reason})
	}
	return out, nil
}

// reported returns a backend as package report takes it. The levels of both packages have the same numbers.
func reported(b native.Backend) report.Device {
	d := report.Device{Support: func(n *ir.Node) report.Support {
		s := b.Support(n)
		return report.Support{Level: report.Level(s.Level), Reason: s.Reason}
	}}
	if c, ok := b.(native.Checker); ok {
		d.Check = c.Check
		d.IsOfWhole = func(err error) bool { return errors.Is(err, native.ErrMemory) }
	}
	return d
}

// withSizes returns a module with sizes for its symbols.
func withSizes(m *ir.Module) (*ir.Module, error) {
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
	return bound, nil
}
