package sparse

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// machine computes the dependencies of each element of a node's results, from the Scalar rule or
// the lowering of the op.
type machine struct {
	n   *ir.Node
	in  []*traced
	out [][][]int32 // by result, then by element; nil for a result without derivatives
	at  int         // the current element of a Scalar rule
	pos map[string]int64
}

func (m *machine) run() {
	m.pos = map[string]int64{}
	d := m.n.Def()
	if d.Scalar != nil {
		m.elementwise(d)
		return
	}
	switch l := d.Lower.(type) {
	case *ir.MapLowering:
		m.mapped(l)
	case *ir.ReduceLowering:
		m.reduced(l)
	case *ir.ContractLowering:
		m.contracted(l.Spec(m.n))
	case *ir.PrefixLowering:
		m.scanned(l)
	case *ir.ScatterLowering:
		m.scattered(l)
	default:
		m.dense()
	}
}

// dense makes every element depend on all operands.
func (m *machine) dense() {
	var all []int32
	for _, v := range m.in {
		all = union(all, v.all())
	}
	for _, sets := range m.out {
		for i := range sets {
			sets[i] = all
		}
	}
}

func (m *machine) elementwise(d *ir.Def) {
	args := make([]scalar.Expr, len(m.in))
	for i, v := range m.n.Inputs() {
		args[i] = scalar.Arg(i, v.DType())
	}
	p := compile(d.Scalar(m.n, args))
	for i := range m.out[0] {
		m.at = i
		m.out[0][i] = p.run(m)[0].deps
	}
}

func (m *machine) mapped(l *ir.MapLowering) {
	for k, sets := range m.out {
		if sets == nil {
			continue
		}
		s := m.space("i", m.dims(k))
		p := compile(l.Element(m.n, k, s.vars, m.load))
		for i := range sets {
			s.enter(i)
			sets[i] = p.run(m)[0].deps
		}
	}
}

func (m *machine) reduced(l *ir.ReduceLowering) {
	outer, inner := m.space("i", m.dims(0)), m.space("r", l.Space(m.n))
	p := compile(l.Element(m.n, outer.vars, inner.vars, m.load)...)
	for i := range outer.size() {
		outer.enter(i)
		var all []int32
		for r := range inner.size() {
			inner.enter(r)
			for _, v := range p.run(m) {
				all = union(all, v.deps)
			}
		}
		m.addDeps(i, all)
	}
}

// addDeps adds the set of dependencies of element i to each result with derivatives.
func (m *machine) addDeps(i int, set []int32) {
	for _, sets := range m.out {
		if sets != nil {
			sets[i] = set
		}
	}
}

func (m *machine) contracted(c ir.Contraction) {
	batch, rows, columns, k := m.space("b", c.Batch), m.space("m", c.M), m.space("n", c.N), m.space("k", c.K)
	factor := func(operand int, at ir.Index, valid scalar.Expr) scalar.Expr {
		x := m.load(operand, at)
		if valid == nil {
			return x
		}
		return scalar.Select(valid, x, scalar.Const(x.Type, 0))
	}
	a, validA := c.A(batch.vars, rows.vars, k.vars)
	b, validB := c.B(batch.vars, columns.vars, k.vars)
	factors := compile(factor(0, a, validA), factor(1, b, validB))
	out, stored := c.Out(batch.vars, rows.vars, columns.vars), c.Stored(batch.vars, rows.vars, columns.vars)
	place := compile(m.place(m.dims(0), out), stored)
	for i := range batch.size() * rows.size() * columns.size() {
		columns.enter(i % columns.size())
		rows.enter(i / columns.size() % rows.size())
		batch.enter(i / columns.size() / rows.size())
		var all []int32
		for r := range k.size() {
			k.enter(r)
			v := factors.run(m)
			x, y := v[0], v[1]
			if !x.isZero() && !y.isZero() {
				all = union(all, union(x.deps, y.deps))
			}
		}
		if v := place.run(m); v[1].v.I != 0 {
			m.addDeps(int(v[0].v.I), all)
		}
	}
}

// scanned makes elements depend on their whole line along the axis.
func (m *machine) scanned(l *ir.PrefixLowering) {
	s := m.space("i", m.dims(0))
	p := compile(l.Element(m.n, s.vars, m.load)...)
	inner := product(s.dims[l.Axis(m.n)+1:])
	length := s.dims[l.Axis(m.n)]
	lines := make([][]int32, max(s.size()/max(length, 1), 1))
	line := func(i int) int { return i/(inner*length)*inner + i%inner }
	for i := range s.size() {
		s.enter(i)
		for _, v := range p.run(m) {
			lines[line(i)] = union(lines[line(i)], v.deps)
		}
	}
	for i := range s.size() {
		m.addDeps(i, lines[line(i)])
	}
}

// scattered makes elements depend on the updates written to them, or on all updates if the
// positions are unknown.
func (m *machine) scattered(l *ir.ScatterLowering) {
	positions, window := l.Space(m.n)
	p, w := m.space("p", positions), m.space("w", window)
	at, inside := l.Target(m.n, p.vars, w.vars, m.load)
	if inside == nil {
		inside = scalar.ConstBool(true)
	}
	c := compile(inside, m.place(m.dims(0), at), m.load(2, l.Update(m.n, p.vars, w.vars)))
	copy(m.out[0], m.in[0].sets)
	var anywhere []int32
	for i := range p.size() * w.size() {
		w.enter(i % w.size())
		p.enter(i / w.size())
		v := c.run(m)
		switch falls, place, u := v[0], v[1], v[2]; {
		case !falls.known || !place.known:
			anywhere = union(anywhere, u.deps)
		case falls.v.I != 0:
			m.out[0][place.v.I] = union(m.out[0][place.v.I], u.deps)
		}
	}
	for i := range m.out[0] {
		m.out[0][i] = union(m.out[0][i], anywhere)
	}
}

func (m *machine) dims(result int) []int {
	dims, _ := m.n.Types()[result].Shape.Ints()
	return dims
}

// load returns an element of an operand, for lowerings.
func (m *machine) load(operand int, at ir.Index) scalar.Expr {
	t := m.n.Input(operand).Type()
	dims, _ := t.Shape.Ints()
	return scalar.LoadAt(operand, t.DType, m.place(dims, at))
}

// place returns the row-major offset of the element at a position.
func (m *machine) place(dims []int, at ir.Index) scalar.Expr {
	place := scalar.ConstI(ir.I32, 0)
	for i, d := range dims {
		place = scalar.Add(scalar.Mul(place, scalar.ConstI(ir.I32, int64(d))), at[i])
	}
	return place
}

// space is a set of positions and the variables that index it.
type space struct {
	dims []int
	vars ir.Index
	pos  map[string]int64
}

func (m *machine) space(prefix string, dims []int) *space {
	s := &space{dims: dims, pos: m.pos}
	for i, d := range dims {
		s.vars = append(s.vars, scalar.NewVar(prefix+strconv.Itoa(i), ir.I32, 0, int64(max(d-1, 0))))
	}
	return s
}

func (s *space) size() int { return product(s.dims) }

// enter sets the variables to position i in row-major order.
func (s *space) enter(i int) {
	for a := len(s.dims) - 1; a >= 0; a-- {
		s.pos[s.vars[a].Name] = int64(i % s.dims[a])
		i /= s.dims[a]
	}
}

// number is the value of an expression, if known, and its differentiable dependencies.
type number struct {
	v     scalar.Value
	known bool
	deps  []int32
}

// isZero reports whether x is known to be zero.
func (x number) isZero() bool { return x.known && x.v == scalar.Value{} }

// sequence is a list of expressions, each once and after its operands.
type sequence struct {
	code  []operation
	roots []int
	out   []number
}

type operation struct {
	e    scalar.Expr
	args [3]int
	x    number
}

func compile(roots ...scalar.Expr) *sequence {
	p := &sequence{out: make([]number, len(roots))}
	at := map[scalar.Expr]int{}
	for _, r := range roots {
		scalar.Walk(r, func(e scalar.Expr) {
			if _, done := at[e]; done {
				return
			}
			s := operation{e: e}
			for i, a := range e.Args {
				s.args[i] = at[a]
			}
			at[e] = len(p.code)
			p.code = append(p.code, s)
		})
		p.roots = append(p.roots, at[r])
	}
	return p
}

// run returns the numbers of the roots. The next run overwrites them.
func (p *sequence) run(m *machine) []number {
	for i := range p.code {
		s := &p.code[i]
		s.x = m.step(s.e, func(k int) number { return p.code[s.args[k]].x })
	}
	for i, r := range p.roots {
		p.out[i] = p.code[r].x
	}
	return p.out
}

// step evaluates one node of an expression from its operands.
func (m *machine) step(e scalar.Expr, arg func(k int) number) number {
	if v, ok := e.Value(); ok {
		return number{v: v, known: true}
	}
	switch e.Op {
	case scalar.OpVar:
		return number{v: scalar.Value{I: m.pos[e.Name]}, known: true}
	case scalar.OpArg:
		return m.in[e.Ref].element(m.at)
	case scalar.OpLoad:
		if at := arg(0); at.known {
			return m.in[e.Ref].element(int(at.v.I))
		}
		return number{deps: m.in[e.Ref].all()}
	case scalar.OpSelect:
		if c := arg(0); c.known {
			return arg(2 - int(c.v.I))
		}
		return number{deps: union(arg(1).deps, arg(2).deps)}
	case scalar.OpMul, scalar.OpMulZero:
		if arg(0).isZero() || arg(1).isZero() {
			return number{known: true}
		}
	}
	return combine(e, arg)
}

// combine evaluates any operation: its dependencies are the union of those of its operands.
func combine(e scalar.Expr, arg func(k int) number) number {
	x := number{known: true}
	var v [3]scalar.Value
	for k := range e.Args {
		a := arg(k)
		v[k] = a.v
		x.known = x.known && a.known
		x.deps = union(x.deps, a.deps)
	}
	if x.known {
		x.v = scalar.Apply(e, v)
	}
	if !derive.Differentiable(e.Type) {
		x.deps = nil
	}
	return x
}

// element returns element i. It returns an empty number for an index out of range, which an
// enclosing select discards.
func (v *traced) element(i int) number {
	switch {
	case v.known != nil && i >= 0 && i < v.known.Len():
		return number{v: v.known.Element(i), known: true}
	case i >= 0 && i < len(v.sets):
		return number{deps: v.sets[i]}
	}
	return number{}
}
