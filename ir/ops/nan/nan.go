// Package nan is the table of NaN conventions: the results of each op for NaN in an
// operand. Tests check it on the reference implementation and on backends, and it is a
// column of ir/ops/OPS.md. It is separate from the definitions to keep it out of the wasm
// module.
//
// The rule is that NaN propagates, so that diverging training is visible. Orders take NaN
// for larger than all numbers, and comparisons are those of IEEE 754. That is what JAX and
// PyTorch do where they agree; where they differ, the op's note states the convention and
// the reason.
//
// The native CPU, WebAssembly, CUDA, Metal and the simulator keep the conventions. WebGPU
// keeps them as far as its drivers do: WGSL lets a compiler assume that no NaN occurs.
// There functions, extrema and sorts use the bits of a number, which no compiler may
// change, while plain arithmetic, comparisons and selections by them depend on the device,
// as do 16-bit results of Core ML.
package nan

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	_ "github.com/rlx-go/rlx/ir/ops/samples"
)

// Rule classifies how an op treats NaN in an operand.
type Rule uint8

// The rules.
const (
	// NoFloats is for ops without float operands.
	NoFloats Rule = iota + 1
	// Moved is for ops that move elements: NaN moves with its element.
	Moved
	// Shows is for ops that propagate NaN: each result that depends on a NaN is NaN.
	Shows
	// Spoils is for factorisations and ops based on them: some result is NaN, and the
	// others of the same matrix are unspecified.
	Spoils
	// Answered is for results that are not floats or that distinguish NaN from numbers:
	// the note and the cases define them.
	Answered
)

var ruleNames = [...]string{NoFloats: "no floats", Moved: "moved", Shows: "shows", Spoils: "spoils the matrix", Answered: "answered"}

// String returns the rule in a word or two.
func (r Rule) String() string {
	if int(r) >= len(ruleNames) || r == 0 {
		return "no rule"
	}
	return ruleNames[r]
}

// Convention is the rule of an op.
type Convention struct {
	Op   ir.Op
	Rule Rule
	// Note states exceptions from the rule, and the reason where JAX and PyTorch differ.
	Note string
	// Cases are examples of the note.
	Cases []Case
	// ByDevice marks ops for which the device's order of computation decides which results
	// are NaN; at least one is.
	ByDevice bool
}

// Case is a sample with NaN and its results.
type Case struct {
	ir.Sample
	Want [][]float64
}

// Conventions returns the table sorted by name. An op listed twice appears twice.
func Conventions() []Convention {
	var out []Convention
	for r, names := range rules {
		for op := range strings.FieldsSeq(names) {
			loose := r == Spoils || slices.Contains(byDevice, ir.Op(op))
			out = append(out, Convention{ir.Op(op), r, notes[ir.Op(op)], cases[ir.Op(op)], loose})
		}
	}
	slices.SortFunc(out, func(a, b Convention) int { return strings.Compare(string(a.Op), string(b.Op)) })
	return out
}

// maxSampleElements is the maximum number of operand elements of a sample.
const maxSampleElements = 3000

// Samples returns samples of an op with one NaN each, in each float operand, and those of
// the cases.
func Samples(op ir.Op) []ir.Sample {
	d, ok := ir.Lookup(op)
	if !ok || d.Samples == nil {
		return nil
	}
	var out []ir.Sample
	for _, s := range d.Samples() {
		size := 0
		for _, a := range s.In {
			size += a.Len()
		}
		for i, a := range s.In {
			if a.Len() > 0 && size <= maxSampleElements && (a.F != nil || a.C != nil) {
				out = append(out, With(s, i, a.Len()/2))
			}
		}
	}
	for _, c := range cases[op] {
		out = append(out, c.Sample)
	}
	return out
}

// With returns a sample with NaN as an element of one operand.
func With(s ir.Sample, operand, at int) ir.Sample {
	old := s.In[operand]
	a := ir.NewArray(old.DType, old.Dims...)
	copy(a.F, old.F)
	copy(a.C, old.C)
	if a.F != nil {
		a.F[at] = none
	} else {
		a.C[at] = complex(none, none)
	}
	s.In = slices.Clone(s.In)
	s.In[operand] = a
	s.Name += ", NaN"
	return s
}
