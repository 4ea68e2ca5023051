package clike

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// quadWidth is the number of accumulators in a vector.
const quadWidth = 4

// quads are groups of four adjacent accumulators that become vectors: every statement
// that changes them adds a scalar times a vector that is loaded as a whole, in four
// consecutive assignments. The key is the first of four statements; the value has the
// terms of an assignment and is nil for definitions.
type quads map[loop.Stmt][]quadTerm

// quadTerm is scalar·vector. A vector has the name of its first member.
type quadTerm struct{ number, vector string }

// quadRow is four assignments to four accumulators.
type quadRow struct {
	first loop.Stmt
	sums  [quadWidth]string
	terms []quadTerm
}

// findQuads returns the quads of a kernel whose loops are unrolled.
func findQuads(k *loop.Kernel) quads {
	f := &quadFinder{
		k: k, defined: map[string][]loop.Stmt{}, vectors: map[string][]string{},
		quadOf: map[string]string{}, scalarUse: map[string]bool{},
	}
	f.block(k.Body)
	q := quads{}
	for _, r := range f.rows {
		if !slices.ContainsFunc(r.sums[:], func(name string) bool { return f.scalarUse[name] }) {
			q[f.defined[r.sums[0]][0]] = nil
			q[r.first] = r.terms
		}
	}
	return q
}

// quadFinder collects the rows of a kernel.
type quadFinder struct {
	k         *loop.Kernel
	defined   map[string][]loop.Stmt // by variable: the statements from its definition on
	vectors   map[string][]string    // the members of f32 vectors, by the first
	quadOf    map[string]string      // by variable: the first accumulator of its quad
	scalarUse map[string]bool        // variables that are also assigned otherwise
	rows      []quadRow
}

func (f *quadFinder) block(body []loop.Stmt) {
	for i := 0; i < len(body); i++ {
		if r, ok := f.row(body[i:]); ok {
			f.addRow(r)
			i += quadWidth - 1
			continue
		}
		for _, name := range loop.Assigns(body[i]) {
			f.scalarUse[name] = true
		}
		for _, name := range loop.Defines(body[i]) {
			delete(f.vectors, name) // it may be of a closed block
		}
		switch s := body[i].(type) {
		case *loop.Var:
			f.scalarUse[s.Name] = f.scalarUse[s.Name] || f.defined[s.Name] != nil // two variables of one name
			f.defined[s.Name] = body[i:]
		case *loop.LoadVec:
			if a := f.k.Arrays[s.Array]; a.Width == quadWidth && a.DType == dtype.F32 {
				f.vectors[s.Names[0]] = s.Names
			}
		case *loop.For:
			f.block(s.Body)
		case *loop.If:
			f.block(s.Then)
			f.block(s.Else)
		}
	}
}

// addRow records a row, and marks accumulators that are also in rows of other quads.
func (f *quadFinder) addRow(r quadRow) {
	f.rows = append(f.rows, r)
	for _, name := range r.sums {
		if first, ok := f.quadOf[name]; ok && first != r.sums[0] {
			f.scalarUse[name], f.scalarUse[first] = true, true
		}
		f.quadOf[name] = r.sums[0]
	}
}

// row reports whether a body begins with a row: q0 = q0 + a·v0 + …, and so on to q3, with
// accumulators that are defined consecutively.
func (f *quadFinder) row(body []loop.Stmt) (r quadRow, ok bool) {
	if len(body) < quadWidth {
		return r, false
	}
	r.first = body[0]
	var values [quadWidth]scalar.Expr
	for i, s := range body[:quadWidth] {
		s, is := s.(*loop.Assign)
		if !is {
			return r, false
		}
		r.sums[i], values[i] = s.Name, s.Value
	}
	for !areVariables(values, r.sums) {
		var t quadTerm
		if t, values, ok = f.lastTerm(values); !ok || slices.Contains(r.sums[:], t.number) {
			return r, false
		}
		r.terms = append(r.terms, t)
	}
	slices.Reverse(r.terms) // the last one was found first
	return r, len(r.terms) > 0 && f.adjacent(r.sums)
}

// lastTerm splits the last term off four sums.
func (f *quadFinder) lastTerm(values [quadWidth]scalar.Expr) (t quadTerm, rest [quadWidth]scalar.Expr, ok bool) {
	var factors [2][quadWidth]string
	for i, x := range values {
		var a, b scalar.Expr
		switch {
		case x.Op == scalar.OpFma:
			a, b, rest[i] = x.Args[0], x.Args[1], x.Args[2]
		case x.Op == scalar.OpAdd && x.Args[1].Op == scalar.OpMul:
			a, b, rest[i] = x.Args[1].Args[0], x.Args[1].Args[1], x.Args[0]
		default:
			return t, rest, false
		}
		if a.Op != scalar.OpVar || b.Op != scalar.OpVar {
			return t, rest, false
		}
		factors[0][i], factors[1][i] = a.Name, b.Name
	}
	for i, of := range factors {
		number := factors[1-i]
		same := !slices.ContainsFunc(number[:], func(name string) bool { return name != number[0] })
		if same && slices.Equal(of[:], f.vectors[of[0]]) {
			return quadTerm{number[0], of[0]}, rest, true
		}
	}
	return t, rest, false
}

// adjacent reports whether variables of f32 are defined consecutively, as constants.
func (f *quadFinder) adjacent(names [quadWidth]string) bool {
	defined := f.defined[names[0]]
	if len(defined) < quadWidth {
		return false
	}
	for i, name := range names {
		v, is := defined[i].(*loop.Var)
		if !is || v.Name != name || v.Init.Op != scalar.OpConst || v.Init.Type != dtype.F32 {
			return false
		}
	}
	return true
}

func areVariables(list [quadWidth]scalar.Expr, names [quadWidth]string) bool {
	for i, x := range list {
		if x.Op != scalar.OpVar || x.Name != names[i] {
			return false
		}
	}
	return true
}

// quad writes the four definitions or the row at the start of a body, if there is one.
func (w statements) quad(body []loop.Stmt) bool {
	terms, ok := w.quads[body[0]]
	switch {
	case !ok:
		return false
	case terms == nil:
		w.defineQuad(body[:quadWidth])
		return true
	}
	name := w.name(body[0].(*loop.Assign).Name)
	sum := ""
	for _, t := range terms {
		sum += " + " + w.variable(scalar.FreeVar(t.number, dtype.F32)).s + " * " + strings.TrimSuffix(w.alias[t.vector].s, members[0])
	}
	if len(terms) == 1 {
		w.line(name + " += " + strings.TrimPrefix(sum, " + ") + ";")
	} else {
		w.line(name + " = " + name + sum + ";") // in order: a separate sum would be rounded differently
	}
	return true
}

// defineQuad defines a vector by the name of its first accumulator.
func (w statements) defineQuad(vars []loop.Stmt) {
	vector := w.name(vars[0].(*loop.Var).Name)
	var elems []string
	for i, s := range vars {
		v := s.(*loop.Var)
		elems = append(elems, w.expr(v.Init).s)
		w.alias[v.Name] = atom(vector + members[i])
	}
	w.useType(dtype.F32)
	w.width[vector] = quadWidth
	w.line(w.d.Var(dtype.F32, vector, w.d.Vector(dtype.F32, elems)))
}
