package ir

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// PortOptions are the options of a parameter or state. They do not change what a graph computes:
// [Graph.Hash] and plans ignore them.
type PortOptions struct {
	// Initial is the initialisation rule; with the zero value the initialising program chooses.
	Initial Initial
	// Frozen keeps optimizers from training the parameter.
	Frozen bool
}

// Initial is a rule for the initial value of a parameter or state, with the numbers that it takes.
// Package nn has constructors and draws the values. The zero Initial is no rule.
//
//	constant(x)                            x
//	normal(mean, deviation)                normal
//	uniform(low, high)                     uniform in [low, high)
//	truncated_normal(mean, deviation, low, high)   normal, within [low, high]
//	glorot_uniform, glorot_normal          variance 2/(fan in + fan out)
//	he_uniform, he_normal                  variance 2/(fan in)
//	lecun_uniform, lecun_normal            variance 1/(fan in)
//	orthogonal(gain, batch)                orthonormal rows or columns, for each index of the first batch axes
//	log_range                              log(1 + i) at index i of the last axis
//	softplus_inverse(low, high)            the inverse of softplus of exp(uniform(log low, log high))
//	key                                    a random key, u32[2]
type Initial struct {
	Rule string
	Args []float64
}

// initialRules has the number of arguments of each rule of [Initial].
var initialRules = map[string]int{
	"constant": 1, "normal": 2, "uniform": 2, "truncated_normal": 4,
	"glorot_uniform": 0, "glorot_normal": 0, "he_uniform": 0, "he_normal": 0, "lecun_uniform": 0, "lecun_normal": 0,
	"orthogonal": 2, "log_range": 0, "softplus_inverse": 2, "key": 0,
}

// IsZero reports whether i is no rule.
func (i Initial) IsZero() bool { return i.Rule == "" && len(i.Args) == 0 }

// String returns the rule as in the text form: "normal(0,0.02)", "he_normal".
func (i Initial) String() string {
	if len(i.Args) == 0 {
		return i.Rule
	}
	args := make([]string, len(i.Args))
	for k, x := range i.Args {
		args[k] = strconv.FormatFloat(x, 'g', -1, 64)
	}
	return i.Rule + "(" + strings.Join(args, ",") + ")"
}

// Equal reports whether two rules are the same.
func (i Initial) Equal(j Initial) bool { return i.Rule == j.Rule && slices.Equal(i.Args, j.Args) }

// Check returns an error of kind [ErrAttr] for an unknown rule or numbers outside its domain.
func (i Initial) Check() error {
	if i.IsZero() {
		return nil
	}
	want, known := initialRules[i.Rule]
	if !known {
		return Attrf("the initial rule is %q: it must be one of those of ir.Initial", i.Rule)
	}
	if len(i.Args) != want {
		return Attrf("the initial rule is %s: it must have %d numbers", i, want)
	}
	for _, x := range i.Args {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return Attrf("the initial rule is %s: its numbers must be finite", i)
		}
	}
	return i.checkDomain()
}

func (i Initial) checkDomain() error {
	a := i.Args
	switch i.Rule {
	case "normal", "truncated_normal":
		if a[1] < 0 {
			return Attrf("the initial rule is %s: its deviation must not be negative", i)
		}
	case "orthogonal":
		if a[1] < 0 || a[1] != math.Trunc(a[1]) {
			return Attrf("the initial rule is %s: its number of batch axes must be a count", i)
		}
	}
	switch i.Rule {
	case "uniform", "truncated_normal", "softplus_inverse":
		if low, high := a[len(a)-2], a[len(a)-1]; cmp.Compare(low, high) > 0 || i.Rule == "softplus_inverse" && low <= 0 {
			return Attrf("the initial rule is %s: its bounds must be a range, and those of softplus_inverse positive", i)
		}
	}
	return nil
}

// ParamWith is [Builder.Param] with options. The error is of kind [ErrAttr] for an initial rule
// that does not exist or whose numbers are outside its domain.
func (b *Builder) ParamWith(name string, o PortOptions, d DType, axes ...Dim) Value {
	return b.portWith(b.scoped(name), ParamPort, o, Type{d, axes})
}

// StateWith is [Builder.State] with options; Frozen has no effect on a state.
func (b *Builder) StateWith(name string, o PortOptions, d DType, axes ...Dim) Value {
	return b.portWith(b.scoped(name), StatePort, o, Type{d, axes})
}

func (b *Builder) portWith(name string, kind PortKind, o PortOptions, t Type) Value {
	if err := o.Initial.Check(); err != nil && b.err == nil {
		b.failDeclared(kindWord(kind), name, err)
	}
	o.Initial.Args = slices.Clone(o.Initial.Args)
	return b.port(name, kind, &PortAttrs{Name: name, Kind: kind, Options: o}, []Type{{t.DType, t.Shape.Clone()}})
}

// Options returns the options of the port.
func (p Port) Options() PortOptions {
	if p.Value.node == nil {
		return PortOptions{}
	}
	a, ok := p.Value.node.attrs.(*PortAttrs)
	if !ok { // a Port that is none
		return PortOptions{}
	}
	return a.Options
}
