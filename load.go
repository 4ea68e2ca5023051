package rlx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// LoadOptions are the options of [Program.LoadWith]. Patterns are those of [optim.Options.Frozen]: "head" covers all names
// in that scope, "*/bias" those of all biases.
type LoadOptions struct {
	// AllowMissing keeps the current value of parameters that the given values do not contain.
	AllowMissing bool
	// AllowExtra ignores values that are not a parameter or state of the program.
	AllowExtra bool
	// Missing are patterns of parameters that keep their current value if they are not given one, without AllowMissing.
	Missing []string
	// Extra are patterns, after Rename, of values that are ignored, also where the program has the name: a head that both Missing and
	// Extra cover keeps its value, as when the file has one for other classes. PyTorch's num_batches_tracked is always ignored.
	Extra []string
	// Rename returns the name of the parameter that a value is for, "" for a value to ignore; nil keeps all names. The method
	// Replace of a [strings.Replacer] is one.
	Rename func(name string) string
	// OutIn are patterns, after Rename, of values with the axis of outputs first, as PyTorch has the weights of linear layers
	// and of convolutions: [out, in, ...] becomes [..., in, out]. Values of rank 0 and 1 stay as they are.
	OutIn []string
	// InOut are patterns, after Rename, of values with the window last, as PyTorch has the weights of transposed convolutions: [in, out, ...]
	// becomes [..., in, out]. It has precedence over OutIn.
	InOut []string
	// Cast rounds floats of another element type to that of their parameter.
	Cast bool
}

// Load sets parameters and states to saved values. The values must contain every parameter and must
// not contain names that the program does not have; states that they do not contain keep their
// value. Otherwise the error is a [*CheckpointError] and nothing is set.
func (p *Program) Load(ctx context.Context, values map[string]Tensor) error {
	return p.LoadWith(ctx, values, LoadOptions{})
}

// LoadWith is [Program.Load] with options:
//
//	err := program.LoadWith(ctx, values, rlx.LoadOptions{ // of PyTorch
//		Rename: strings.NewReplacer("layers.", "h/", ".", "/").Replace, OutIn: []string{"h/*/weight"}, Missing: []string{"head"},
//	})
//
// The error is also of kind [ir.ErrName] for two values that Rename gives one name, and for a pattern of Missing that
// matches no parameter or state or of OutIn or InOut that matches no value.
func (p *Program) LoadWith(ctx context.Context, values map[string]Tensor, o LoadOptions) error {
	if err := p.given(ctx, "load"); err != nil {
		return err
	}
	values, err := o.renamed(values)
	if err != nil {
		return err
	}
	if err := o.checkPatterns(values, p.Persistent()); err != nil {
		return err
	}
	e, fitting := &CheckpointError{}, map[string]Tensor{}
	for _, s := range p.Persistent() {
		x, given := values[s.Name]
		if !given || covered(o.Extra, s.Name) {
			if s.Role == native.Param && !o.AllowMissing && !covered(o.Missing, s.Name) {
				e.Missing = append(e.Missing, s.Name)
			}
			continue
		}
		x, err := o.fit(x, s)
		if err != nil && e.Err == nil {
			e.Err = err
		}
		fitting[s.Name] = x
	}
	var unused []string
	for name := range values {
		if _, known := fitting[name]; known {
			continue
		}
		if unused = append(unused, name); !o.AllowExtra && !covered(o.Extra, name) && !strings.HasSuffix(name, batchCount) {
			e.Unknown = append(e.Unknown, name)
		}
	}
	if err := e.errOrNil(unused); err != nil {
		return err
	}
	return p.SetAll(ctx, fitting)
}

// batchCount ends the name of a count that PyTorch's batch norms have, and nothing here needs.
const batchCount = "num_batches_tracked"

// covered reports whether one of the patterns covers a name.
func covered(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return optim.Covers(pattern, name) })
}

// renamed returns the values by the names of their parameters.
func (o *LoadOptions) renamed(values map[string]Tensor) (map[string]Tensor, error) {
	if o.Rename == nil {
		return values, nil
	}
	out, from := map[string]Tensor{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		to := o.Rename(name)
		if to == "" {
			continue
		}
		if other, twice := from[to]; twice {
			return nil, ir.Errorf(ir.ErrName, "values %q and %q are both renamed to %q", other, name, to)
		}
		out[to], from[to] = values[name], name
	}
	return out, nil
}

// checkPatterns refuses patterns that match nothing, which are probably misspelt.
func (o *LoadOptions) checkPatterns(values map[string]Tensor, all []native.Slot) error {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	check := func(option string, patterns, names []string) error {
		for _, pattern := range patterns {
			if !slices.ContainsFunc(names, func(name string) bool { return optim.Covers(pattern, name) }) {
				return ir.Errorf(ir.ErrName, "%s has %q, which matches none of %s", option, pattern, formatNames(names))
			}
		}
		return nil
	}
	if err := check("Missing", o.Missing, names); err != nil {
		return err
	}
	given := slices.Sorted(maps.Keys(values))
	if err := check("OutIn", o.OutIn, given); err != nil {
		return err
	}
	return check("InOut", o.InOut, given)
}

// fit returns a value as its parameter or state takes it.
func (o *LoadOptions) fit(x Tensor, s native.Slot) (Tensor, error) {
	switch {
	case covered(o.InOut, s.Name):
		x = windowFirst(x, 0, 1)
	case covered(o.OutIn, s.Name):
		x = windowFirst(x, 1, 0)
	}
	if o.Cast && x.DType != s.DType && x.DType.IsFloat() && s.DType.IsFloat() {
		var err error
		if x, err = rounded(x, s.DType); err != nil {
			return x, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	err := s.Accept(x)
	if errors.Is(err, ir.ErrShape) && covered(o.Missing, s.Name) {
		err = fmt.Errorf("%w; to keep the program's, cover it by Extra, too", err)
	}
	return x, err
}

// windowFirst returns a tensor with the axes of its window, from the third on, before those of inputs and of outputs. One that is malformed, packed or
// of rank below 2 is returned as it is.
func windowFirst(x Tensor, in, out int) Tensor {
	size := x.DType.Size()
	if len(x.Dims) < 2 || x.DType.IsPacked() || x.Len()*size != len(x.Data) {
		return x
	}
	var order []int
	for axis := range x.Dims[2:] {
		order = append(order, axis+2)
	}
	data := permute.Axes(x.Data, size, x.Dims, append(order, in, out))
	return Tensor{DType: x.DType, Dims: append(slices.Clone(x.Dims[2:]), x.Dims[in], x.Dims[out]), Data: data}
}
