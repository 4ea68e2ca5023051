package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// matrixProduct is a batch of matrix products c[i] = a[i]·b[i], each m×k by k×n.
type matrixProduct struct {
	batch   []int
	count   int // product of batch
	m, n, k int
	a, b    matrix
	c       *buffer
	env     *environment
	double  bool
	pairs   bool    // elements of the factors are pairs of bf16
	cost    float64 // nanoseconds
}

// matrix is a factor in memory: element (i, j) is at base + i·row + j·col, where row or col is
// 1, or at base + rowAt[i] + colAt[j] where there are tables of offsets.
type matrix struct {
	buf      *buffer
	base     int
	counters []counterTerm
	batch    []int // strides of the batch axes
	row, col int
	// rowAt and colAt, if not nil, are the offsets of all rows and columns and replace
	// row and col.
	rowAt, colAt []int32
}

// counterTerm is a multiple of a loop counter.
type counterTerm struct{ depth, coef int }

// sumID is the tensor ID of the product in the loads of an epilogue, packedA and packedB are
// those of materialised factors.
const (
	sumID   = -1
	packedA = -2
	packedB = -3
)

// contract compiles a contraction. Factors that are strided matrices are read in place, others
// are materialised first. The epilogue runs over the product in scratch memory, unless the
// product is the result itself.
func (c *compiler) contract(g *fusion.Group) error {
	code := g.Code()
	k := code.Stages[0].Contraction
	name := g.Name()
	if multiplies := k.Sum.Type == ir.F32 || k.Sum.Type == ir.F64; !multiplies || readsOnce(k) || isElementwise(k) {
		r := g.Reduction()
		code := r.Code()
		if multiplies {
			if err := widenShared(c, name, code, r.Outer, r.Inner); err != nil {
				return err
			}
		}
		return c.nest(name, code, r.Outer, r.Inner, nil)
	}
	for form, to := formsOf(g); form < to; form++ {
		code := g.CodeOf(form)
		compile := contractPart
		if product(code.Stages[0].Contraction.K) == 0 {
			compile = withoutTerms
		}
		if err := compile(c, g, code); err != nil {
			return err
		}
	}
	return nil
}

// formsOf returns the numbers [from, to) of the phases of a contraction: not those of stencils, for which zeros among the
// elements cost less than several results that are copied to their places.
func formsOf(g *fusion.Group) (from, to int) {
	const minSide = 4
	n := g.Members[0].Node
	if of := n.Def().Lower.(*ir.ContractLowering).Phase; of != nil {
		if u, _ := of(n, ir.Undivided); product(u.Batch) > 1 && min(product(u.M), product(u.N)) < minSide {
			return ir.Undivided, ir.Undivided + 1
		}
	}
	return g.Phases()
}

// withoutTerms compiles a contraction whose sums have no terms.
func withoutTerms(c *compiler, g *fusion.Group, code *fusion.Code) error {
	k := code.Stages[0].Contraction
	_, dims := inProductAxes(g, code, k, false)
	setSum(code, k, scalar.Const(k.Sum.Type, 0))
	return c.nest(g.Name(), code, dims, nil, nil)
}

// setSum makes the epilogue of a contraction a map of a value of the sums.
func setSum(code *fusion.Code, k *fusion.ContractionCode, value scalar.Expr) {
	replaceVars(code, map[string]scalar.Expr{k.Sum.Name: value})
	code.Stages = nil
}

// contractPart compiles a contraction, or a phase of one.
func contractPart(c *compiler, g *fusion.Group, code *fusion.Code) error {
	name, k := g.Name(), code.Stages[0].Contraction
	list, pairs := channelFactors(c, k), false
	if list == nil {
		pairs = pairFactors(c, k)
		orientResult(code, k)
		orderSumAxes(k)
	}
	x := &matrixProduct{
		batch: k.Batch, count: product(k.Batch), m: product(k.M), n: product(k.N), k: product(k.K),
		env: c.env, double: k.Sum.Type == ir.F64, pairs: pairs,
	}
	x.cost = x.estimate()
	if err := x.setFactors(c, name, k, list); err != nil {
		return err
	}
	s := newStencil(c, x)
	whole := code
	if place := x.placeOf(c, g, code); place != nil {
		code = place
	}
	at, dims := inProductAxes(g, code, k, s != nil)
	emit := func() {
		if s != nil {
			c.add(s)
		} else {
			c.addProduct(x)
		}
	}
	if direct := directResult(code, k, at); direct != nil {
		x.c = c.buffers[direct.Tensor.ID]
		emit()
		return nil
	}
	x.c = c.scratch(k.Sum.Type, x.count*x.m*x.n)
	emit()
	setSum(code, k, scalar.LoadAt(sumID, k.Sum.Type, at))
	if err := c.nest(name, code, dims, nil, map[int]*buffer{sumID: x.c}); err != nil || code == whole {
		return err
	}
	place := code.Rows[0].Tensor.ID
	setSum(whole, k, scalar.LoadAt(place, k.Sum.Type, scalar.Simplify(linear(g.Outer, whole.Outer))))
	return c.nest(name, whole, g.Outer, nil, nil)
}

// placeOf returns code that copies sums to the places of their results in scratch memory, where the epilogue would visit both
// in rows that fill no vector, as those of the phases of an image are. The epilogue is then a map over the array. It
// returns nil for other products.
func (x *matrixProduct) placeOf(c *compiler, g *fusion.Group, code *fusion.Code) *fusion.Code {
	at := scalar.Simplify(linear(g.Outer, code.Outer))
	isApart := func(s fusion.ElementStore) bool { return s.Guarded || !scalar.Equal(scalar.Simplify(s.Offset), at) }
	computes := func(s fusion.ElementStore) bool { return s.Value.Op != scalar.OpVar }
	k := code.Stages[0].Contraction
	_, all := k.Stored.IntConst()
	in := inProduct(code, k, at)
	isShort := x.n >= minCopy && x.n < shortCopy && stepIn(affineOf(in), k.NAt) == 1 && !scalar.Equal(in, scalar.Simplify(linear(inOrder(k))))
	if !isShort || !all || x.results() != product(g.Outer) || slices.ContainsFunc(code.Rows, isApart) || !slices.ContainsFunc(code.Rows, computes) {
		return nil
	}
	place, sum := cloneOf(code), k.Sum
	buf := c.scratch(sum.Type, product(g.Outer))
	place.Rows = []fusion.ElementStore{{Tensor: &fusion.Tensor{ID: c.bufferID(buf), Name: g.Name(), DType: sum.Type}, Offset: at, Value: sum}}
	return place
}

// isElementwise reports whether a product sums nothing, as that of a column and a row in memory, or has one result for
// each element of a batch: maps and reductions then need no copies of factors, and no call for each element.
func isElementwise(k *fusion.ContractionCode) bool {
	inMemory := func(e scalar.Expr) bool { return isLoad(e) || e.Op == scalar.OpConvert && isLoad(e.Args[0]) }
	isMap := product(k.K) == 1 && inMemory(k.A) && inMemory(k.B)
	return jit.Available() && (isMap || product(k.M)*product(k.N) == 1 && product(k.Batch) > 1)
}

// readsOnce reports whether a product reads each element of a large factor once or twice and would have to
// convert it before, as the weights of a layer in bf16 for one row of inputs.
func readsOnce(k *fusion.ContractionCode) bool {
	const rows, large = 2, 1 << 12
	converts := func(e scalar.Expr) bool {
		return e.Op == scalar.OpConvert && e.Args[0].Op == scalar.OpLoad && jit.Available() && jit.Stored(e.Args[0].Type)
	}
	m, n := product(k.M), product(k.N)
	return k.Sum.Type == ir.F32 && product(k.K)*max(m, n) >= large && (m <= rows && converts(k.B) || n <= rows && converts(k.A))
}

// widenShared makes a reduction read the small factor of [readsOnce], which many outer points share, from an array
// in f32, for which it adds a step: kernels load only words for all lanes at once.
func widenShared(c *compiler, name string, code *fusion.Code, outer, inner []int) (err error) {
	const shares = 16 // the least number of outer points for each element
	dims, at := slices.Concat(outer, inner), slices.Concat(code.Outer, code.Inner)
	widen := func(x scalar.Expr) (scalar.Expr, bool) {
		if err != nil || x.Op != scalar.OpConvert || x.Type != ir.F32 || !isLoad(x.Args[0]) {
			return x, false
		}
		var e fusion.Elements
		for i, v := range at {
			if scalar.Any(x, isOneOf([]scalar.Expr{v})) {
				e.Dims, e.At = append(e.Dims, dims[i]), append(e.At, v)
			}
		}
		if shares*product(e.Dims) > product(dims) {
			return x, false
		}
		e.Value = x
		buf, failed := c.materialize(name+" shared", e)
		err = failed
		return scalar.LoadAt(c.bufferID(buf), ir.F32, scalar.Simplify(linear(e.Dims, e.At))), true
	}
	for _, s := range code.Stages {
		for _, r := range s.Reductions {
			for i, x := range r.Elements {
				r.Elements[i] = scalar.Substitute(x, widen)
			}
		}
	}
	return err
}

// setFactors sets the factors of a product: those of a stencil, if not nil, or matrices.
func (x *matrixProduct) setFactors(c *compiler, name string, k *fusion.ContractionCode, list []channelFactor) (err error) {
	if list != nil {
		axes := factorAxes{k.Batch, k.M, k.K, k.BatchAt, k.MAt, k.KAt}
		if x.a, err = list[0].matrix(c, name+" a", axes, packedA, k.A.Type); err != nil {
			return err
		}
		axes = factorAxes{k.Batch, k.K, nil, k.BatchAt, k.KAt, nil}
		x.b, err = list[1].matrix(c, name+" b", axes, packedB, k.B.Type)
		return err
	}
	a := factor{name: name + " a", value: k.A, factorAxes: factorAxes{k.Batch, k.M, k.K, k.BatchAt, k.MAt, k.KAt}, id: packedA}
	if x.a, err = a.matrix(c); err != nil {
		return err
	}
	// The rows of a narrow right factor are too short to vectorise: it is stored by column.
	b := factor{name: name + " b", value: k.B, factorAxes: factorAxes{k.Batch, k.K, k.N, k.BatchAt, k.KAt, k.NAt}, id: packedB}
	b.byColumn = x.n < narrow && x.m >= narrow
	if x.b, err = b.matrix(c); err != nil {
		return err
	}
	if x.prefersTransposed() {
		x.transpose(k)
	}
	return nil
}

// addProduct emits the step of a product. It fuses the step before where that writes the
// right factor.
func (c *compiler) addProduct(x *matrixProduct) {
	if x.isTiny() {
		c.add(&tinyStep{x})
		return
	}
	p := newProduct(c, x)
	own := x.b.buf == c.buffers[packedB] // has no other reader
	if last := len(c.steps) - 1; last >= 0 && own && p.fuseWindows(c.steps[last]) {
		c.steps = c.steps[:last]
	}
	c.add(p)
}

// narrow is the least number of columns for which a right factor is stored by row.
const narrow = 24

// inProductAxes rewrites the epilogue to the coordinates of batch, rows and columns, with
// batchLast the batch after the others. It returns the offset of the sum and the sizes of the
// coordinates. Where some sums are no results, the epilogue keeps the coordinates of the group.
func inProductAxes(g *fusion.Group, code *fusion.Code, k *fusion.ContractionCode, batchLast bool) (scalar.Expr, []int) {
	dims, vars := inOrder(k)
	if n := len(k.Batch); batchLast {
		dims, vars = slices.Concat(dims[n:], dims[:n]), slices.Concat(vars[n:], vars[:n])
	}
	at := scalar.Simplify(linear(dims, vars))
	if _, all := k.Stored.IntConst(); !all {
		return scalar.Simplify(scalar.SubstituteVars(at, fusion.DigitsOf(g, code.Outer))), g.Outer
	}
	as := map[string]scalar.Expr{}
	for i, v := range code.Outer {
		as[v.Name] = k.Outer[i]
	}
	replaceVars(code, as)
	code.Outer, dims = coordinates(vars, dims)
	return at, dims
}

// replaceVars substitutes expressions for variables.
func replaceVars(code *fusion.Code, as map[string]scalar.Expr) {
	replace := func(e scalar.Expr) scalar.Expr { return scalar.SubstituteVars(e, as) }
	rewriteExprs(code, replace, replace)
}

// coordinates returns the axes that have a variable, with their sizes.
func coordinates(vars ir.Index, dims []int) ([]scalar.Expr, []int) {
	var at []scalar.Expr
	var sizes []int
	for i, v := range vars {
		if v.Op == scalar.OpVar {
			at, sizes = append(at, v), append(sizes, dims[i])
		}
	}
	return at, sizes
}

// directResult returns the store of a contraction without an epilogue, which keeps the sums in
// their own order and is not guarded; nil for any other.
func directResult(code *fusion.Code, k *fusion.ContractionCode, at scalar.Expr) *fusion.ElementStore {
	if len(code.Rows) != 1 {
		return nil
	}
	s := &code.Rows[0]
	if s.Guarded || s.Value.Op != scalar.OpVar || s.Value.Name != k.Sum.Name || s.Tensor.DType != k.Sum.Type || !scalar.Equal(scalar.Simplify(s.Offset), at) {
		return nil
	}
	return s
}

// factorAxes are the axes of a factor: batch, rows and columns.
type factorAxes struct {
	batch, rows, cols       []int
	batchAt, rowsAt, colsAt ir.Index
}

// factor is an operand of a contraction.
type factor struct {
	factorAxes
	name     string
	value    scalar.Expr
	id       int  // of the tensor in which it is materialised
	byColumn bool // it is stored by column then
}

// matrix returns a factor as a matrix, materialised where it is not strided.
func (f factor) matrix(c *compiler) (matrix, error) {
	if m, ok := f.strided(c.buffers); ok && !(f.byColumn && m.col == 1 && m.row != 1) {
		return m, nil
	}
	if f.sameForAll(f.value) { // materialised once, not packed by each product
		n := len(f.batch)
		f.batch, f.batchAt = nil, nil
		m, err := f.pack(c)
		m.batch = make([]int, n)
		return m, err
	}
	if m, ok, err := f.gathered(c); ok || err != nil {
		return m, err
	}
	return f.pack(c)
}

// sameForAll reports whether a factor is a permutation of memory that all products of a batch
// share.
func (x *factorAxes) sameForAll(e scalar.Expr) bool {
	if e.Op != scalar.OpLoad || product(x.batch) == 1 {
		return false
	}
	batch := (&factorAxes{batch: x.batch, batchAt: x.batchAt}).dims()
	return !slices.ContainsFunc(affineOf(e.Args[0]).terms, func(t affineTerm) bool { return t.of.Op != scalar.OpVar || batch[t.of.Name] > 0 })
}

// pack materialises a factor as a matrix.
func (f factor) pack(c *compiler) (matrix, error) {
	rows, cols := product(f.rows), product(f.cols)
	m := matrix{row: cols, col: 1}
	order := f.factorAxes
	if f.byColumn {
		m = matrix{row: 1, col: rows}
		order = factorAxes{f.batch, f.cols, f.rows, f.batchAt, f.colsAt, f.rowsAt}
	}
	vars := slices.Concat(order.batchAt, order.rowsAt, order.colsAt)
	dims := slices.Concat(order.batch, order.rows, order.cols)
	m.buf = c.scratch(f.value.Type, product(dims))
	m.batch = rowMajor(f.batch, rows*cols)
	code := &fusion.Code{Rows: []fusion.ElementStore{{
		Tensor: &fusion.Tensor{ID: f.id, Name: f.name, DType: f.value.Type}, Offset: scalar.Simplify(linear(dims, vars)), Value: f.value,
	}}}
	code.Outer, dims = coordinates(vars, dims)
	m.fitStrides(rows, cols)
	return m, c.nest(f.name, code, dims, nil, map[int]*buffer{f.id: m.buf})
}

// strided returns a factor that is a strided matrix in memory; false for any other.
func (f factor) strided(buffers map[int]*buffer) (matrix, bool) {
	if f.value.Op != scalar.OpLoad {
		return matrix{}, false
	}
	sum := affineOf(f.value.Args[0])
	m := matrix{buf: buffers[f.value.Ref], base: sum.constant}
	known := 0
	stride := func(dims []int, at ir.Index) (int, bool) {
		s, next := 0, 0
		for i := len(dims) - 1; i >= 0; i-- {
			if at[i].Op != scalar.OpVar {
				continue
			}
			coef := sum.coef(at[i].Name)
			if coef != 0 {
				known++
			}
			if next == 0 {
				s, next = coef, coef*dims[i]
				if coef == 0 {
					return 0, false
				}
				continue
			}
			if coef != next {
				return 0, false
			}
			next *= dims[i]
		}
		return s, true
	}
	var ok1, ok2 bool
	m.row, ok1 = stride(f.rows, f.rowsAt)
	m.col, ok2 = stride(f.cols, f.colsAt)
	if !ok1 || !ok2 || m.buf == nil || m.row < 0 || m.col < 0 {
		return m, false
	}
	for i := range f.batch {
		coef := 0
		if v := f.batchAt[i]; v.Op == scalar.OpVar {
			if coef = sum.coef(v.Name); coef != 0 {
				known++
			}
		}
		m.batch = append(m.batch, coef)
	}
	for _, t := range sum.terms {
		if kind, depth := loop.BuiltinOf(t.of.Name); t.of.Op == scalar.OpVar && kind == loop.BuiltinCounter {
			m.counters = append(m.counters, counterTerm{depth, t.coef})
			known++
		}
	}
	rows, cols := product(f.rows), product(f.cols)
	return m, known == len(sum.terms) && m.fitStrides(rows, cols)
}

// fitStrides sets the strides of axes of size 1 to values that suit a matrix, and reports
// whether the elements of rows or of columns are contiguous.
func (m *matrix) fitStrides(rows, cols int) bool {
	switch {
	case rows == 1 && cols == 1:
		m.row, m.col = 1, 1
	case rows == 1 && m.col == 1:
		m.row = cols
	case rows == 1:
		m.row = 1
	case cols == 1 && m.row == 1:
		m.col = rows
	case cols == 1:
		m.col = 1
	}
	return m.col == 1 && m.row >= cols || m.row == 1 && m.col >= rows
}

// first returns the first element of a matrix of the batch.
func (m *matrix) first(batch []int, item int, env *environment) int {
	at := m.base
	for i := len(batch) - 1; i >= 0; i-- {
		at += item % batch[i] * m.batch[i]
		item /= batch[i]
	}
	for _, t := range m.counters {
		at += t.coef * int(env.counters[t.depth])
	}
	return at
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// rowMajor returns the row-major strides of axes whose innermost stride is size.
func rowMajor(dims []int, size int) []int {
	out := make([]int, len(dims))
	for i := len(dims) - 1; i >= 0; i-- {
		out[i], size = size, size*dims[i]
	}
	return out
}

// linear returns the row-major offset of a position, as I64 where the array needs it.
func linear(dims []int, at ir.Index) scalar.Expr {
	sum, long := loop.Int(0), product(dims) > loop.MaxElements
	for i, size := range rowMajor(dims, 1) {
		x := at[i]
		if long {
			x = loop.Long(x)
		}
		sum = scalar.Add(sum, scalar.Mul(x, loop.Int(size)))
	}
	return sum
}

// shortRow is the least number of columns of a product that is worth splitting off as a batch.
const shortRow = 64

// orientResult makes the products come out in the layout of the result where it can: it
// exchanges rows and columns, and turns an axis of the columns that the result stores outside
// the rows, as images are outside channels, into a batch axis.
func orientResult(code *fusion.Code, k *fusion.ContractionCode) {
	if len(code.Rows) == 0 {
		return
	}
	offset := inProduct(code, k, code.Rows[0].Offset)
	step := affineOf(offset)
	if stepIn(step, k.MAt) == unitOf(k) && stepIn(step, k.NAt) != 1 {
		k.A, k.B, k.M, k.N, k.MAt, k.NAt = k.B, k.A, k.N, k.M, k.NAt, k.MAt
	}
	fits := func() bool { return scalar.Equal(scalar.Simplify(linear(inOrder(k))), offset) }
	if len(k.N) < 2 || product(k.N[1:]) < shortRow || fits() {
		return
	}
	batch, batchAt, n, nAt := k.Batch, k.BatchAt, k.N, k.NAt
	k.Batch, k.BatchAt = append(slices.Clone(batch), n[0]), append(slices.Clone(batchAt), nAt[0])
	k.N, k.NAt = n[1:], nAt[1:]
	if !fits() {
		k.Batch, k.BatchAt, k.N, k.NAt = batch, batchAt, n, nAt
	}
}

// inProduct returns an offset of the epilogue in the coordinates of batch, rows and columns.
func inProduct(code *fusion.Code, k *fusion.ContractionCode, offset scalar.Expr) scalar.Expr {
	as := map[string]scalar.Expr{}
	for i, v := range code.Outer {
		as[v.Name] = k.Outer[i]
	}
	return scalar.Simplify(scalar.SubstituteVars(offset, as))
}

// unitOf returns how far results of neighbouring rows are apart in the result: 1 but for phases.
func unitOf(k *fusion.ContractionCode) int {
	unit := 1
	for _, e := range k.Outer {
		unit = max(unit, stepIn(affineOf(e), k.MAt))
	}
	return unit
}

// inOrder returns the sizes and coordinates of batch, rows and columns.
func inOrder(k *fusion.ContractionCode) ([]int, ir.Index) {
	return slices.Concat(k.Batch, k.M, k.N), slices.Concat(k.BatchAt, k.MAt, k.NAt)
}

// stepIn returns the coefficient of an offset in the last coordinate of a space, 0 without one.
func stepIn(offset affine, at ir.Index) int {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i].Op == scalar.OpVar {
			return offset.coef(at[i].Name)
		}
	}
	return 0
}

// prefersTransposed reports whether the transposed product packs less. Left factors are read
// in place even through tables of offsets, but right factors are packed unless their columns
// form long contiguous runs. In the gradient of a convolution's filters the right factor is
// the windows of all images. The transposed result is copied once more, so that sums must be
// longer than it is wide.
func (x *matrixProduct) prefersTransposed() bool {
	if x.n < x.m && x.n <= fewColumns && x.sumsRows() {
		return x.k >= 4*x.m
	}
	return x.b.colAt != nil && simd.ReadsGathered() && !x.b.hasLongRuns() && x.m <= x.n && x.k >= 4*x.n
}

// fewColumns is the maximum number of columns for which products of transposed matrices take their own transposed factors: a
// tile has at most as many rows, and those of the other factor are read in place.
const fewColumns = 48

// sumsRows reports whether both factors have contiguous elements across the summed axis, as in the gradient of a layer's
// weights, or of those of a convolution over long rows.
func (x *matrixProduct) sumsRows() bool {
	t := x.a.transposed()
	return x.b.rowAt == nil && x.b.col == 1 && (t.colAt == nil && t.col == 1 || t.colAt != nil && simd.ReadsTabled() && t.hasLongRuns())
}

// hasLongRuns reports whether the columns of a matrix with tables form contiguous runs long
// enough to be read in place.
func (m *matrix) hasLongRuns() bool { return simd.Runs(m.colAt)*narrow <= len(m.colAt) }

// transpose replaces the product by its transposed product, whose left factor is the right
// one.
func (x *matrixProduct) transpose(k *fusion.ContractionCode) {
	x.m, x.n = x.n, x.m
	x.a, x.b = x.b.transposed(), x.a.transposed()
	k.M, k.N, k.MAt, k.NAt = k.N, k.M, k.NAt, k.MAt
}

func (m matrix) transposed() matrix {
	m.row, m.col, m.rowAt, m.colAt = m.col, m.row, m.colAt, m.rowAt
	return m
}
