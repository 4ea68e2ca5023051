package sparse

import (
	"slices"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// Pattern is the set of elements of a matrix that may differ from zero. Rows and columns are
// indices of elements in row-major order.
type Pattern struct {
	Columns int
	// Rows holds the columns of the elements of each row, ascending.
	Rows [][]int32
}

// Len returns the number of elements of the pattern.
func (p *Pattern) Len() int {
	n := 0
	for _, r := range p.Rows {
		n += len(r)
	}
	return n
}

// Transposed returns the pattern of the transposed matrix.
func (p *Pattern) Transposed() *Pattern {
	t := &Pattern{Columns: len(p.Rows), Rows: make([][]int32, p.Columns)}
	for i, r := range p.Rows {
		for _, j := range r {
			t.Rows[j] = append(t.Rows[j], int32(i))
		}
	}
	return t
}

// symmetric returns the union of the pattern and its transpose.
func (p *Pattern) symmetric() *Pattern {
	s, t := &Pattern{Columns: p.Columns, Rows: make([][]int32, len(p.Rows))}, p.Transposed()
	for i := range p.Rows {
		s.Rows[i] = union(p.Rows[i], t.Rows[i])
	}
	return s
}

// PatternOf returns which elements of a plain output of g depend on which elements of a port
// through derivatives: dependencies through comparisons and rounding do not count. The pattern is
// conservative. If an index or a branch depends on data, all possible elements count; in the
// results of loops and scans, all elements count. The error is of kind [ir.ErrShape] for symbolic
// sizes, [ir.ErrName] for an unknown output, or one of the errors of [autodiff.JVP].
func PatternOf(g *ir.Graph, output, port string) (*Pattern, error) {
	j, err := autodiff.JVP(g, port)
	if err != nil {
		return nil, err
	}
	k := differentiableIndex(g, output)
	if k < 0 {
		return nil, ir.Errorf(ir.ErrName, "graph %q has no output %q that has derivatives", g.Name(), output)
	}
	// Tangents depend on the tangents of the ports through linear ops only.
	tangent, seed := j.Outputs()[len(g.Outputs())+k].Value, j.Ports()[len(g.Ports())].Value
	t := &tracer{values: map[ir.Value]*traced{}, seed: seed}
	if err := t.graph(j, tangent); err != nil {
		return nil, err
	}
	return newPattern(t.values[tangent], tangent, seed)
}

func newPattern(v *traced, rows, columns ir.Value) (*Pattern, error) {
	m, ok := rows.Shape().Size().Const()
	n, also := columns.Shape().Size().Const()
	if !ok || !also {
		return nil, ir.Shapef("%s by %s has symbolic sizes: bind them first", rows.Type(), columns.Type())
	}
	p := &Pattern{Columns: n, Rows: v.sets}
	if p.Rows == nil {
		p.Rows = make([][]int32, m)
	}
	return p, nil
}

// differentiableIndex returns the index of a plain output among those with derivatives, in the
// order in which transforms add tangents and cotangents; or -1.
func differentiableIndex(g *ir.Graph, output string) int {
	k := 0
	for _, o := range g.Outputs() {
		if o.State || !derive.Differentiable(o.Value.DType()) {
			continue
		}
		if o.Name == output {
			return k
		}
		k++
	}
	return -1
}

// union returns the union of two ascending lists. The result may share memory with an operand.
func union(x, y []int32) []int32 {
	switch {
	case len(x) == 0:
		return y
	case len(y) == 0 || len(x) == len(y) && slices.Equal(x, y):
		return x
	}
	out := make([]int32, 0, len(x)+len(y))
	for len(x) > 0 && len(y) > 0 {
		least := min(x[0], y[0])
		out = append(out, least)
		if x[0] == least {
			x = x[1:]
		}
		if y[0] == least {
			y = y[1:]
		}
	}
	return append(append(out, x...), y...)
}
