package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scan compiles a scan, inclusive or exclusive: the lanes are the points of the other axes,
// and each lane walks the axis serially.
func (c *compiler) scan(g *fusion.Group) error {
	x := g.Prefix()
	if product(x.Dims) == 0 {
		return nil // a nest would load what does not depend on the place along the axis
	}
	if term, sum := lineTerm(x); term != nil && (product(x.Dims)/max(x.Dims[x.Axis], 1) < scanLanes || product(x.Dims[x.Axis+1:]) == 1) {
		return c.scanLines(g, x, term, sum)
	}
	arrays := newNestArrays(c, product(x.Dims))
	pairs := arrays.scanParts(x)
	results, err := arrays.transposeScan(g, x)
	if err != nil {
		return err
	}
	var others points
	for i, at := range x.At {
		if i != x.Axis {
			others.vars, others.dims = append(others.vars, at), append(others.dims, x.Dims[i])
		}
	}
	// A reverse scan walks the axis from its end.
	place := x.At[x.Axis]
	count := scalar.NewVar("along", place.Type, place.Lo, place.Hi)
	along := scalar.Expr(count)
	if x.Reverse {
		along = scalar.Sub(loop.Int(x.Dims[x.Axis]-1), count)
	}
	here := func(e scalar.Expr) scalar.Expr {
		return scalar.SubstituteVars(e, map[string]scalar.Expr{place.Name: along})
	}
	for i, e := range x.Combined {
		x.Combined[i] = here(e)
	}
	for i, s := range x.Stores {
		x.Stores[i].Value, x.Stores[i].Offset = here(s.Value), here(s.Offset)
	}
	var best *nest
	line := points{[]scalar.Expr{count}, x.Dims[x.Axis : x.Axis+1]}
	for wide := min(1, len(others.dims)); wide <= len(others.dims); wide++ {
		n, err := scanNest(x, newNestBuilder(g.Name(), others, line, blocking{wide: wide}, c.buffers))
		if err != nil {
			return err
		}
		if best == nil || n.cost < best.cost {
			best = n
		}
	}
	c.add(newNestStep(best, c.env, false))
	for _, code := range results {
		var dims []int
		code.Outer, dims = coordinates(x.At, x.Dims)
		if err := c.nest(g.Name(), code, dims, nil, nil); err != nil {
			return err
		}
	}
	for _, pair := range pairs {
		c.add(pair)
	}
	return nil
}

// scanParts makes a scan of complex numbers one of their parts, which it reads from arrays and writes to arrays. It adds
// the steps that split the operands, and returns those that make the results, for after the scan.
func (p *nestArrays) scanParts(x *fusion.Prefix) (after []step) {
	if !slices.ContainsFunc(x.Running, func(v scalar.Expr) bool { return v.Type.IsComplex() }) {
		return nil
	}
	values, split := map[string]scalar.Expr{}, complexParts{}
	var accumulators []ir.Accumulator
	var running, combined []scalar.Expr
	for i, v := range x.Running {
		if !v.Type.IsComplex() {
			accumulators, running = append(accumulators, x.Accumulators[i]), append(running, v)
			continue
		}
		parts := newParts(v)
		values[v.Name], running = scalar.MakeComplex(parts[0], parts[1]), append(running, parts...)
		for _, init := range split.of(x.Accumulators[i].Init) {
			accumulators = append(accumulators, ir.Accumulator{DType: init.Type, Init: init})
		}
	}
	byParts := func(e scalar.Expr) scalar.Expr { return p.partsOf(scalar.Substitute(e, split.partOf)) }
	for _, e := range x.Combined {
		if e = scalar.SubstituteVars(e, values); !e.Type.IsComplex() {
			combined = append(combined, byParts(e))
			continue
		}
		for _, part := range split.of(e) {
			combined = append(combined, byParts(part))
		}
	}
	x.Accumulators, x.Running, x.Combined = accumulators, running, combined
	at, dims := coordinates(x.At, x.Dims)
	code := &fusion.Code{Outer: at, Rows: x.Stores}
	replaceVars(code, values)
	realArithmetic(code)
	rewriteExprs(code, p.partsOf, unchanged)
	after = p.storeParts(code, dims)
	x.Stores = code.Rows
	return after
}

// scanNest makes the nest of a scan, whose inner points are those of a line.
func scanNest(x *fusion.Prefix, m *nestBuilder) (*nest, error) {
	m.enterLoop()
	for i, a := range x.Accumulators {
		init, err := constantValue(a.Init)
		if err != nil {
			return nil, err
		}
		acc := m.n.sizes.add(classOf(a.DType), m.width())
		m.p.accumulators = append(m.p.accumulators, accumulator{acc, init})
		m.named[x.Running[i].Name] = value{reg: acc, level: perElement, wide: true}
	}
	step := func() {
		next := make([]value, len(x.Combined))
		for i, e := range x.Combined {
			next[i] = m.splat(m.expr(e))
		}
		next = m.copyAliased(next, x.Running)
		for i, v := range next {
			m.move(m.named[x.Running[i].Name].reg, v, perElement)
		}
		m.invalidate(x.Running)
	}
	if !x.Exclusive {
		step()
	}
	m.stores(x.Stores)
	if x.Exclusive {
		step()
	}
	m.n.cost = m.n.estimate()
	return m.n, m.err
}

// copyAliased copies values that are accumulators themselves, as these change before the
// values are moved.
func (m *nestBuilder) copyAliased(values []value, vars []scalar.Expr) []value {
	for i, v := range values {
		for k, x := range vars {
			if k != i && v.reg == m.named[x.Name].reg {
				copied := m.n.sizes.add(v.reg.class, m.width())
				m.move(copied, v, perElement)
				values[i].reg = copied
				break
			}
		}
	}
	return values
}

// invalidate drops the compiled values of expressions with variables whose registers have
// changed.
func (m *nestBuilder) invalidate(vars []scalar.Expr) {
	clear(m.made)
	for s := range m.same {
		for _, v := range vars {
			if slices.Contains(s.args[:], m.named[v.Name].reg) {
				delete(m.same, s)
			}
		}
	}
}
