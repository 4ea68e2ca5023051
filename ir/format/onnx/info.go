package onnx

import "github.com/rlx-go/rlx/ir"

// Info describes an input or output of a model.
type Info struct {
	Name string
	// Element is the element type, 0 for a value that is no tensor.
	Element Element
	// Shape is nil if the model does not declare it; undeclared sizes are symbols.
	Shape ir.Shape
}

// Inputs returns the inputs that have no default value, in order.
func (m *Model) Inputs() []Info {
	defaults := map[string]bool{}
	for _, t := range m.graph.initializers {
		defaults[t.name] = true
	}
	var out []Info
	for _, in := range m.graph.inputs {
		if !defaults[in.name] {
			out = append(out, m.info(in))
		}
	}
	return out
}

// Outputs returns the outputs, in order.
func (m *Model) Outputs() []Info {
	var out []Info
	for _, o := range m.graph.outputs {
		out = append(out, m.info(o))
	}
	return out
}

func (m *Model) info(v valueInfo) Info {
	i := Info{Name: v.name, Element: v.elem}
	if v.shaped {
		i.Shape, _ = (&importer{m: m}).shapeOf(v) // fails for a value without a shape alone
	}
	return i
}
