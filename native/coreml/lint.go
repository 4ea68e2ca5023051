package coreml

import (
	"fmt"
	"strings"

	"github.com/rlx-go/rlx/internal/coreml/mil"
)

// Finding reports something that keeps an operation off the Neural Engine, or makes it slow
// there.
type Finding struct {
	Function string
	Op       string // kind and name of the operation
	Rule     string // the rule's name
	Reason   string
	Slow     bool // it would run there, but slowly
}

// String returns "main: matmul matmul_3: fp16: ...".
func (f Finding) String() string {
	return strings.Join([]string{f.Function, f.Op, f.Rule, f.Reason}, ": ")
}

// rule is a limit of the Neural Engine, as published by Apple's researchers and users
// (machinelearning.apple.com/research/neural-engine-transformers; the ANE guide at
// ane-guide.readthedocs.io). Apple does not guarantee them and none was measured here.
type rule struct {
	name  string
	fault func(op *mil.Op, result mil.Type) string // "" where there is none
	slow  bool
}

var rules = []rule{
	{"fp16", func(op *mil.Op, t mil.Type) string {
		if t.DType != mil.Float32 {
			return ""
		}
		return "it computes with fp16 alone: ask for Half"
	}, false},
	{"operation", func(op *mil.Op, _ mil.Type) string {
		switch {
		case op.Kind == "reduce_prod", strings.HasPrefix(op.Kind, "scatter"), op.Kind == "argsort", op.Kind == "cumsum":
			return "it has no " + op.Kind
		}
		return ""
	}, false},
	{"product", func(op *mil.Op, _ mil.Type) string {
		if op.Kind != "matmul" && op.Kind != "linear" {
			return ""
		}
		return "products run faster there as convolutions 1 wide, of [batch, channels, 1, positions]"
	}, true},
	{"size", func(_ *mil.Op, t mil.Type) string {
		for i, d := range t.Dims {
			longest := 16384
			if len(t.Dims) == 4 && i == 1 {
				longest = 65536 // channels
			}
			if d > longest {
				return fmt.Sprintf("axis %d of %s is longer than %d", i, t, longest)
			}
		}
		return ""
	}, false},
	{"axes", func(_ *mil.Op, t mil.Type) string {
		if len(t.Dims) <= 4 {
			return ""
		}
		return fmt.Sprintf("%s has more axes than [batch, channels, 1, positions]", t)
	}, true},
	{"last axis", func(_ *mil.Op, t mil.Type) string {
		if n := len(t.Dims); n < 2 || t.Dims[n-1] != 1 || t.Len() < 64 {
			return ""
		}
		return fmt.Sprintf("the last axis of %s is padded to 64 bytes for one element", t)
	}, true},
	{"memory", func(_ *mil.Op, t mil.Type) string {
		if mb := float64(t.Len()) * 2 / (1 << 20); mb > 2 {
			return fmt.Sprintf("%s takes %.1f MiB in fp16, of about 2 that stay on the chip", t, mb)
		}
		return ""
	}, true},
}

// Lint returns what would keep operations of a model off the Neural Engine or make them
// slow there, in program order: types, operations, products that are not convolutions,
// sizes, convolution kernels wider than 13, and argmax axes longer than 2,048. It skips
// constants and moves to and from inputs.
func Lint(p *Package) []Finding {
	var out []Finding
	for _, f := range p.Program.Functions {
		types := map[string]mil.Type{}
		for _, in := range f.Inputs {
			types[in.Name] = in.Type
		}
		for _, op := range f.Ops {
			types[op.Name] = op.Type
			if op.Kind == "const" || op.Kind == "cast" || op.Kind == "identity" || strings.HasSuffix(op.Kind, "_state") {
				continue
			}
			for _, r := range rules {
				if why := r.fault(op, op.Type); why != "" {
					out = append(out, Finding{f.Name, op.String(), r.name, why, r.slow})
				}
			}
			if why := operandFault(op, types); why != "" {
				out = append(out, Finding{f.Name, op.String(), "operand", why, false})
			}
		}
	}
	return out
}

// operandFault checks the operands of an operation.
func operandFault(op *mil.Op, types map[string]mil.Type) string {
	for _, a := range op.Inputs {
		t := types[a.Values[0]]
		last := len(t.Dims) - 1
		switch {
		case op.Kind == "conv" && a.Parameter == "weight" && t.Dims[last] > 13:
			return fmt.Sprintf("a kernel %d wide: 13 is the most", t.Dims[last])
		case strings.HasPrefix(op.Kind, "reduce_arg") && a.Parameter == "x":
			for _, d := range t.Dims {
				if d > 2048 {
					return fmt.Sprintf("the largest of %d elements is looked for: 2,048 are the most", d)
				}
			}
		}
	}
	return ""
}
