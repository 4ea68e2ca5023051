// Package nan is the table of conventions: what each op makes of NaN in an operand. Tests run
// through it on the plain meaning of the ops and on backends, and it is a column of
// ir/ops/OPS.md. It stands apart from the definitions, so that the wasm module has none of it.
//
// The one rule is that NaN shows: what is computed of it is NaN, so that a training that
// diverges is seen to. Orders take NaN for larger than all numbers, and comparisons are those of
// IEEE 754. That is what JAX and PyTorch do where they agree; where they do not, the note of an
// op says what is done here and why.
//
// The native CPU, WebAssembly, CUDA, Metal and the simulator keep the conventions. WebGPU keeps
// them as far as its drivers let it: WGSL lets a compiler assume that no NaN occurs. There
// functions, extrema and sorts go by the bits of a number, which no compiler may change, while
// plain arithmetic, comparisons and what selects by them are up to the device, as is what Core
// ML does in 16 bits.
package nan

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// Rule is what an op makes of NaN in an operand.
type Rule uint8

// The rules.
const (
	// NoFloats is for operands of which none is of a float type.
	NoFloats Rule = iota + 1
	// Moved is for ops that move elements: NaN is where its element is.
	Moved
	// Shows is for ops that compute: each result that changes by a NaN is NaN.
	Shows
	// Spoils is for factorisations and what is made of them: some result is NaN, and the
	// others of the same matrix mean nothing.
	Spoils
	// Answered is for results that are no floats, or tell NaN from numbers: the note says
	// what they are, and cases show it.
	Answered
)

var ruleNames = [...]string{NoFloats: "no floats", Moved: "moved", Shows: "shows", Spoils: "spoils the matrix", Answered: "answered"}

// String is the rule in a word or two.
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
	// Note says what comes of NaN beside the rule, and why where JAX and PyTorch disagree.
	Note string
	// Cases show what the note says.
	Cases []Case
	// ByDevice says that which results are NaN depends on the order in which a device
	// computes, as long as one is.
	ByDevice bool
}

// Case is a sample with NaN and what comes of it.
type Case struct {
	ir.Sample
	Want [][]float64
}

// Conventions returns the table in the order of names. An op that it names twice is there
// twice.
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

// mostElements is up to how many elements of the operands samples are taken.
const mostElements = 3000

// Samples returns samples of an op with one NaN each, in each of the operands of floats, and
// those of the cases.
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
			if a.Len() > 0 && size <= mostElements && (a.F != nil || a.C != nil) {
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
