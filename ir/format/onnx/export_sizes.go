package onnx

import (
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// dimVector returns a size as a vector of one i64: a constant, or computed from the sizes of inputs.
func (e *modelBuilder) dimVector(d ir.Dim) tensorRef {
	if n, ok := d.Const(); ok {
		return e.ints(n)
	}
	key := "size " + d.String()
	if t, ok := e.consts[key]; ok || e.err != nil {
		return t
	}
	t := e.early(func() tensorRef { return e.polynomial(d) })
	e.consts[key] = t
	return t
}

// early adds the nodes of f to those of the main graph that come before all others, where graphs within
// nodes see their results too.
func (e *modelBuilder) early(f func() tensorRef) tensorRef {
	at, prefix := e.at, e.prefix
	e.at, e.prefix = e.sizes, ""
	t := f()
	e.at, e.prefix = at, prefix
	return t
}

// shape returns the sizes of a tensor as a vector.
func (e *modelBuilder) shape(dims ir.Shape) tensorRef {
	if list, ok := dims.Ints(); ok {
		return e.ints(list...)
	}
	key := "shape " + dims.String()
	if t, ok := e.consts[key]; ok || e.err != nil {
		return t
	}
	parts := make([]tensorRef, len(dims))
	for i, d := range dims {
		parts[i] = e.dimVector(d)
	}
	t := parts[0]
	if len(parts) > 1 {
		t = e.early(func() tensorRef {
			return e.op("Concat", ir.I64, ir.Dims(len(parts)), parts, attrInt("axis", 0))
		})
	}
	e.consts[key] = t
	return t
}

// symbol returns the value of a symbol.
func (e *modelBuilder) symbol(name string) tensorRef {
	if at, ok := e.syms[name]; ok {
		in := tensorRef{at.input, ir.I64, ir.Dims(1)}
		return e.op("Shape", ir.I64, ir.Dims(1), []tensorRef{in}, attrInt("start", at.axis), attrInt("end", at.axis+1))
	}
	e.fail(ir.Errorf(ir.ErrSymbol, "no axis of an input is of size %q alone, for a model to read it from", name))
	return tensorRef{}
}

// polynomial computes a symbolic size, which is a sum of products with fractions: see [ir.Dim.String].
func (e *modelBuilder) polynomial(d ir.Dim) tensorRef {
	var sum tensorRef
	text := d.String()
	common := commonDenominator(text)
	for len(text) > 0 && e.err == nil {
		sign := 1
		if text[0] == '+' || text[0] == '-' {
			if text[0] == '-' {
				sign = -1
			}
			text = text[1:]
		}
		end := strings.IndexAny(text, "+-")
		if end < 0 {
			end = len(text)
		}
		t := e.term(text[:end], sign*common)
		if sum.name == "" {
			sum = t
		} else {
			sum = e.binary("Add", sum, t)
		}
		text = text[end:]
	}
	if common != 1 {
		sum = e.binary("Div", sum, e.ints(common))
	}
	return sum
}

// term computes a product of symbols and a fraction times a number.
func (e *modelBuilder) term(text string, times int) tensorRef {
	var out tensorRef
	for factor := range strings.SplitSeq(text, "*") {
		num, den, _ := strings.Cut(factor, "/")
		if n, err := strconv.Atoi(num); err == nil {
			times *= n
			if d, err := strconv.Atoi(den); err == nil && d > 0 {
				times /= d
			}
			continue
		}
		if s := e.symbol(num); out.name == "" {
			out = s
		} else {
			out = e.binary("Mul", out, s)
		}
	}
	switch {
	case out.name == "":
		return e.ints(times)
	case times == 1:
		return out
	}
	return e.binary("Mul", out, e.ints(times))
}

// commonDenominator returns a number that all denominators of a size divide.
func commonDenominator(text string) int {
	common := 1
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("+-*", r) }) {
		if _, den, ok := strings.Cut(part, "/"); ok {
			if n, err := strconv.Atoi(den); err == nil && n > 0 && common%n != 0 {
				common *= n
			}
		}
	}
	return common
}
