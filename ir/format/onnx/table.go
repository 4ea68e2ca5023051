package onnx

import (
	"github.com/rlx-go/rlx/ir"
)

// MaxOpset is the last operator set of the default domain that the importer knows. Below 7, binary
// ops with attributes of their own for broadcasting are refused.
const MaxOpset = 28

// opInfo is how an op is imported from a version of its operator set on, until the next entry of the
// same op.
type opInfo struct {
	since int64
	// build adds the op to the graph and returns its results.
	build func(c *call) []ir.Value
	// values does so for an op of graphs, sequences or optionals, which sets the results itself.
	values func(c *call)
	impure bool // random: not folded
}

const (
	preview  = "ai.onnx.preview"
	training = "ai.onnx.preview.training"
)

// tables are the ops by domain and name.
var tables = map[string]map[string][]opInfo{}

// add enters an op of the default domain.
func add(name string, build func(c *call) []ir.Value) { addSince(name, 1, build) }

// addSince enters the meaning of an op from a version on. Versions are entered in order.
func addSince(name string, since int64, build func(c *call) []ir.Value) {
	addTo("", name, opInfo{since: since, build: build})
}

func addTo(domain, name string, o opInfo) {
	if tables[domain] == nil {
		tables[domain] = map[string][]opInfo{}
	}
	tables[domain][name] = append(tables[domain][name], o)
}

// lookupOp returns the meaning of an op in a version of its operator set.
func lookupOp(domain, name string, opset int64) (*opInfo, error) {
	if opset == 0 {
		return nil, ir.Errorf(ir.ErrUnsupported, "the model names no version of the operator set %q", domain)
	}
	if domain == "" && opset > MaxOpset {
		return nil, ir.Errorf(ir.ErrUnsupported, "operator sets up to %d are known", MaxOpset)
	}
	table, ok := tables[domain]
	if !ok {
		return nil, ir.Errorf(ir.ErrUnsupported, "no op of the domain %q is known, and the model has no function of this name", domain)
	}
	list := table[name]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].since <= opset {
			return &list[i], nil
		}
	}
	way := ""
	if domain == microsoft {
		way = ": export without the optimiser that puts it in place of others"
	}
	return nil, ir.Errorf(ir.ErrUnsupported, "the op is not known; %d ops of the domain are%s", len(table), way)
}
