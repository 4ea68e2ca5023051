package ops

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Order along an axis.
const (
	OpArgSort ir.Op = "argsort"
	OpSort    ir.Op = "sort"
	OpTopK    ir.Op = "top_k"
)

// SortAttrs say along which axis to sort, and whether the largest comes first.
type SortAttrs struct {
	Axis       int
	Descending bool
}

// Visit shows the attributes.
func (a *SortAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.Bool("descending", &a.Descending)
}

// Complete makes the last axis the default.
func (a *SortAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if !given("axis") && len(in) > 0 {
		a.Axis = max(len(in[0].Shape)-1, 0)
	}
}

// TopKAttrs say how many elements along which axis are wanted, and whether it is
// the smallest ones.
type TopKAttrs struct {
	K, Axis  int
	Smallest bool
}

// Visit shows the attributes.
func (a *TopKAttrs) Visit(v ir.AttrVisitor) {
	v.Int("k", &a.K)
	v.Int("axis", &a.Axis)
	v.Bool("smallest", &a.Smallest)
}

// Complete makes the last axis the default.
func (a *TopKAttrs) Complete(in []ir.Type, given func(name string) bool) {
	if !given("axis") && len(in) > 0 {
		a.Axis = max(len(in[0].Shape)-1, 0)
	}
}

const sortOrder = " Equal elements, such as 0 and -0, stay in their order; NaNs come last."

func init() {
	sortAttrs := func(n *ir.Node) *SortAttrs { return n.Attrs().(*SortAttrs) }
	const integerResult = "integer result"
	define(&ir.Def{
		Op: OpArgSort, Operands: []string{"x"}, NewAttrs: func() ir.Attrs { return &SortAttrs{} },
		Doc:         "The positions along an axis, as i32, of the elements in ascending or descending order." + sortOrder,
		Constraints: numbered("x is of a real type or bool", "axis is an axis of x"),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			x := n.Input(0).Type()
			if err := (reals | bools).check(x.DType); err != nil {
				return nil, err
			}
			return []ir.Type{{DType: ir.I32, Shape: x.Shape}}, checkAxes([]int{sortAttrs(n).Axis}, len(x.Shape))
		},
		Eval:   evalArgSort,
		NoGrad: integerResult, NoTranspose: integerResult,
		Batch: func(b *ir.Builder, n *ir.Node, in []ir.Value, axes []int, _ ir.Dim) ([]ir.Value, []int) {
			a := *sortAttrs(n)
			a.Axis = shifted([]int{a.Axis}, axes[0])[0]
			return []ir.Value{ArgSort(b, in[0], a)}, axes
		},
		Lower: &ir.SortLowering{
			Axis: func(n *ir.Node) int { return sortAttrs(n).Axis },
			Key:  func(n *ir.Node, x scalar.Expr) scalar.Expr { return sortKey(x, sortAttrs(n).Descending) },
			Bits: func(n *ir.Node) int { return sortBits(n.Input(0).DType()) },
		},
		Samples: argSortSamples,
	})
	define(&ir.Def{
		Op: OpSort, Operands: []string{"x", "payloads..."}, NewAttrs: func() ir.Attrs { return &SortAttrs{} },
		Doc: "The elements of x along an axis in ascending or descending order, and those of each payload in the order of x." + sortOrder,
		Constraints: numbered("x is of a real type or bool", "axis is an axis of x",
			"payloads are of any element type and of the shape of x"),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			x := n.Input(0).Type()
			if err := (reals | bools).check(x.DType); err != nil {
				return nil, err
			}
			for _, p := range n.InTypes()[1:] {
				if !p.Shape.Equal(x.Shape) {
					return nil, ir.Shapef("a payload is %s, x %s", p, x)
				}
			}
			return n.InTypes(), checkAxes([]int{sortAttrs(n).Axis}, len(x.Shape))
		},
		NoTranspose: "taken of its body",
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			order := ArgSort(b, in[0], *sortAttrs(n))
			out := make([]ir.Value, len(in))
			for i, x := range in {
				out[i] = takeOrder(b, x, order, sortAttrs(n).Axis)
			}
			return out
		},
		Samples: sortSamples,
	})
	define(&ir.Def{
		Op: OpTopK, Operands: []string{"x"}, NewAttrs: func() ir.Attrs { return &TopKAttrs{} },
		Doc:         "The k largest, or smallest, elements along an axis, best first, and their positions as i32." + sortOrder,
		Constraints: numbered("x is of a real type or bool", "axis is an axis of x", "k is from 0 to the size of that axis"),
		Infer:       inferTopK,
		NoTranspose: "taken of its body",
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a := n.Attrs().(*TopKAttrs)
			order := ArgSort(b, in[0], SortAttrs{a.Axis, !a.Smallest})
			order = SliceAxis(b, order, a.Axis, ir.N(0), ir.N(a.K))
			return []ir.Value{takeOrder(b, in[0], order, a.Axis), order}
		},
		Samples: topKSamples,
	})
}

// ArgSort returns the positions, i32, of the elements of x along an axis in
// order; a negative axis counts from the last.
func ArgSort(b *ir.Builder, x ir.Value, a SortAttrs) ir.Value {
	a.Axis = fromFront([]int{a.Axis}, x.Rank())[0]
	return b.Add1(OpArgSort, &a, x)
}

// Sort returns x in order along an axis, and each payload in the order of x; a
// negative axis counts from the last.
func Sort(b *ir.Builder, a SortAttrs, x ir.Value, payloads ...ir.Value) []ir.Value {
	a.Axis = fromFront([]int{a.Axis}, x.Rank())[0]
	return several(1+len(payloads), b.Add(OpSort, &a, slices.Concat([]ir.Value{x}, payloads)...))
}

// TopK returns the a.K largest elements of x along an axis, or smallest, and
// their positions, i32; a negative axis counts from the last.
func TopK(b *ir.Builder, x ir.Value, a TopKAttrs) (values, indices ir.Value) {
	a.Axis = fromFront([]int{a.Axis}, x.Rank())[0]
	out := several(2, b.Add(OpTopK, &a, x))
	return out[0], out[1]
}

// several returns the n results of a node, invalid ones after an error.
func several(n int, results []ir.Value) []ir.Value {
	if len(results) != n {
		return make([]ir.Value, n)
	}
	return results
}

// takeOrder returns elements of x along an axis at places of which no two are
// one.
func takeOrder(b *ir.Builder, x, places ir.Value, axis int) ir.Value {
	batch := otherAxes(x.Rank(), []int{axis})
	return Gather(b, x, ExpandDims(b, places, -1), GatherAttrs{IndexedAxes: IndexedAxes{
		Axes: []int{axis}, OperandBatch: batch, IndexBatch: batch, Outside: OutsideClip, Unique: true,
	}})
}

func inferTopK(n *ir.Node) ([]ir.Type, error) {
	a, x := n.Attrs().(*TopKAttrs), n.Input(0).Type()
	if err := (reals | bools).check(x.DType); err != nil {
		return nil, err
	}
	if err := checkAxes([]int{a.Axis}, len(x.Shape)); err != nil {
		return nil, err
	}
	if size, ok := x.Shape[a.Axis].Const(); a.K < 0 || ok && a.K > size {
		return nil, ir.Attrf("k is %d, and axis %d of %s has %s elements", a.K, a.Axis, x, x.Shape[a.Axis])
	}
	shape := x.Shape.Clone()
	shape[a.Axis] = ir.N(a.K)
	return []ir.Type{{DType: x.DType, Shape: shape}, {DType: ir.I32, Shape: shape}}, nil
}

func evalArgSort(c *ir.EvalContext, n *ir.Node, in []*ir.Array) ([]*ir.Array, error) {
	a, x := n.Attrs().(*SortAttrs), in[0]
	out, err := resultArray(n, 0)
	if err != nil {
		return nil, err
	}
	step, length := strides(x.Dims)[a.Axis], x.Dims[a.Axis]
	for _, base := range offsets(x.Dims, otherAxes(len(x.Dims), []int{a.Axis})) {
		places := counting(0, length)
		slices.SortStableFunc(places, func(i, j int) int { return comparePlaces(x, base+i*step, base+j*step, a.Descending) })
		for i, from := range places {
			out.I[base+i*step] = int64(from)
		}
	}
	return []*ir.Array{c.Round(out)}, nil
}

// comparePlaces returns -1, 0 or 1 as element i comes before, with or after
// element j.
func comparePlaces(x *ir.Array, i, j int, descending bool) int {
	var c int
	if x.F != nil {
		a, b := x.F[i], x.F[j]
		if math.IsNaN(a) || math.IsNaN(b) {
			return boolInt(math.IsNaN(a)) - boolInt(math.IsNaN(b))
		}
		c = boolInt(a > b) - boolInt(a < b)
	} else {
		c = compareInts(x.DType, x.I[i], x.I[j])
	}
	if descending {
		return -c
	}
	return c
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sortBits is how many bits the sort keys of a type have.
func sortBits(d ir.DType) int {
	switch {
	case d.IsBool():
		return 1
	case d.IsFloat():
		return max(32, 8*d.Size())
	}
	return 8 * d.Size()
}

// sortKey returns an unsigned integer that is in order where elements are.
// Signed numbers get their sign turned over, floats all of their bits if they
// are negative: then the bits of an ordinary number are in its order.
func sortKey(x scalar.Expr, descending bool) scalar.Expr {
	d := x.Type
	if d.IsFloat() {
		return floatKey(x, descending)
	}
	wide, width := ir.U32, sortBits(d)
	if d.Size() == 8 {
		wide = ir.U64
	}
	key := scalar.Convert(x, wide)
	if d.IsSigned() {
		key = scalar.Xor(key, scalar.ConstI(wide, wide.Wrap(1<<(width-1))))
	}
	all := scalar.ConstI(wide, wide.Wrap(int64(uint64(1)<<width-1)))
	if descending {
		key = scalar.Not(key)
	}
	return scalar.And(key, all)
}

// floatKey is sortKey of a float, by its bits alone: devices may take tiny
// numbers for 0 in comparisons.
func floatKey(x scalar.Expr, descending bool) scalar.Expr {
	wide, infinite := ir.U32, int64(0x7f800000)
	if x.Type == ir.F64 {
		wide, infinite = ir.U64, 0x7ff<<52
	} else {
		x = scalar.Convert(x, ir.F32)
	}
	constant := func(c int64) scalar.Expr { return scalar.ConstI(wide, wide.Wrap(c)) }
	sign, all := constant(-1<<(8*wide.Size()-1)), constant(-1)
	bits := scalar.Bitcast(x, wide)
	size := scalar.And(bits, scalar.Not(sign))
	negative := scalar.And(scalar.Ge(bits, sign), scalar.Ne(size, constant(0)))
	key := scalar.Select(negative, scalar.Not(bits), scalar.Or(size, sign))
	if descending {
		key = scalar.Not(key)
	}
	return scalar.Select(scalar.Gt(size, constant(infinite)), all, key)
}

func sortInputs() map[string]*ir.Array {
	inf, nan := math.Inf(1), math.NaN()
	row := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	return map[string]*ir.Array{
		"one":        distinct(-1, 1, 1),
		"row":        distinct(-1, 1, 7),
		"ties":       row(1, 3, -1, 3, -1, 1, 1),
		"zeros":      row(0, math.Copysign(0, -1), 0, -1, math.Copysign(0, -1)),
		"nan":        row(1, nan, inf, nan, -inf, -1),
		"tiny":       row(1e-40, -1e-40, 0, 2e-40, -1e-39),
		"beyond 512": distinct(-2, 2, 611),
	}
}

func argSortSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	var out []ir.Sample
	add := func(name string, a SortAttrs, x *ir.Array) {
		out = append(out, ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}})
	}
	inputs := sortInputs()
	for _, name := range []string{"one", "row", "ties", "zeros", "nan", "tiny", "beyond 512"} {
		add(name, SortAttrs{}, inputs[name])
		add(name+" descending", SortAttrs{Descending: true}, inputs[name])
	}
	add("columns", SortAttrs{Axis: 0}, distinct(-1, 1, 67, 3))
	add("middle axis", SortAttrs{Axis: 1, Descending: true}, distinct(-1, 1, 2, 5, 3))
	add("many short rows", SortAttrs{Axis: 1}, distinct(-1, 1, 131, 3))
	add("empty rows", SortAttrs{Axis: 1}, ir.NewArray(ir.F32, 2, 0))
	add("no rows", SortAttrs{Axis: 1}, ir.NewArray(ir.F32, 0, 2))
	for _, d := range typesIn(reals)[1:] {
		add(d.String(), SortAttrs{}, draw(2, d, -3, 3, 17))
		add(d.String()+" descending", SortAttrs{Descending: true}, draw(3, d, -3, 3, 17))
	}
	add("bool", SortAttrs{Descending: true}, ir.Ints(ir.Bool, []int64{0, 1, 1, 0, 1}, 5))
	return out
}

func sortSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	inputs := sortInputs()
	const ties = "ties share no slope"
	return []ir.Sample{
		{Name: "row", Attrs: &SortAttrs{}, In: []*ir.Array{inputs["row"]}},
		{Name: "ties", Attrs: &SortAttrs{Descending: true}, In: []*ir.Array{inputs["ties"]}, NoGrad: ties},
		{Name: "nan", Attrs: &SortAttrs{}, In: []*ir.Array{inputs["nan"]}, NoGrad: "NaN elements"},
		{Name: "columns with a payload", Attrs: &SortAttrs{}, In: []*ir.Array{distinct(-1, 1, 5, 3), distinct(-1, 1, 5, 3)}},
		{Name: "integers with payloads", Attrs: &SortAttrs{Axis: 1, Descending: true}, In: []*ir.Array{
			draw(4, ir.I32, -3, 3, 2, 9), distinct(-1, 1, 2, 9), draw(5, ir.I32, -9, 9, 2, 9),
		}},
		{Name: "empty", Attrs: &SortAttrs{}, In: []*ir.Array{ir.NewArray(ir.F32, 0)}},
	}
}

func topKSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	inputs := sortInputs()
	sample := func(name string, a TopKAttrs, x *ir.Array, noGrad string) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, In: []*ir.Array{x}, NoGrad: noGrad}
	}
	return []ir.Sample{
		sample("three", TopKAttrs{K: 3}, inputs["row"], ""),
		sample("smallest", TopKAttrs{K: 2, Axis: 0, Smallest: true}, distinct(-1, 1, 5, 3), ""),
		sample("all of each row", TopKAttrs{K: 4, Axis: 1}, distinct(-1, 1, 3, 4), ""),
		sample("none", TopKAttrs{}, inputs["row"], ""),
		sample("ties", TopKAttrs{K: 3}, inputs["ties"], "ties share no slope"),
		sample("nan", TopKAttrs{K: 5}, inputs["nan"], "NaN elements"),
	}
}
