package passes

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// scanHoistSums hoists sums out of scans. If every step adds a product or a sum of other values to
// a carry that nothing else reads, the carry becomes one product or sum over the stacked values
// after the scan. An example is the weight gradient of a recurrent network.
func scanHoistSums(s site) []ir.Value {
	k := newSumHoister(s)
	for _, only := range []ir.Op{ops.OpDotGeneral, ops.OpReduceSum} { // sums may use values stacked for products
		for i := range k.a.Carries {
			if added := k.addend(i); added.Valid() && k.profitable(added, only) {
				k.hoisted[i] = added
				k.stack(added, only)
			}
		}
	}
	if len(k.hoisted) == 0 {
		return nil
	}
	return k.rewrite()
}

// sumHoister hoists the sums of one scan.
type sumHoister struct {
	site
	a              *ops.ScanAttrs
	body           *ir.Graph
	port           map[ir.Value]int // by value of the body
	readers        []int            // by node of the body
	rematerializes bool             // the body has rematerialize ops
	hoisted        map[int]ir.Value // the addend of each hoisted carry
	stacked        []ir.Value       // values of the body that are stacked in addition
	outside        map[ir.Value]ir.Value
	totals         map[ir.Value]ir.Value // the sums over all steps
}

func newSumHoister(s site) *sumHoister {
	a, body := scanOf(s.n)
	k := &sumHoister{site: s, a: a, body: body, port: map[ir.Value]int{}, readers: countUsers(body), hoisted: map[int]ir.Value{}, totals: map[ir.Value]ir.Value{}}
	for i, p := range body.Ports() {
		k.port[p.Value] = i
	}
	k.rematerializes = slices.ContainsFunc(body.Nodes(), func(n *ir.Node) bool { return n.Op() == ops.OpRematerialize })
	return k
}

// addend returns the value that each step adds to a carry, if the carry is only summed.
func (k *sumHoister) addend(i int) ir.Value {
	carry, next := k.body.Ports()[k.a.Consts+i].Value, k.body.Outputs()[i].Value
	n := next.Node()
	if _, done := k.hoisted[i]; done || n.Op() != ops.OpAdd || k.readers[n.ID()] != 1 || k.readers[carry.Node().ID()] != 1 {
		return ir.Value{}
	}
	for side := range 2 {
		if n.Input(side) == carry {
			return n.Input(1 - side)
		}
	}
	return ir.Value{}
}

// operands returns the values to stack so that v can be summed over all steps: the
// operands of the products or sums (op only) that v is a linear function of. It returns
// false if v is anything else. seen are values that were looked at before, whose operands it leaves out.
func (k *sumHoister) operands(v ir.Value, only ir.Op, seen map[ir.Value]bool) ([]ir.Value, bool) {
	if seen[v] { // if it was anything else, the sum is no linear function already
		return nil, true
	}
	seen[v] = true
	n := v.Node()
	switch n.Op() {
	case ops.OpTranspose, ops.OpReshape, ops.OpNeg:
		return k.operands(n.Input(0), only, seen)
	case ops.OpAdd, ops.OpSub:
		x, okX := k.operands(n.Input(0), only, seen)
		y, okY := k.operands(n.Input(1), only, seen)
		return slices.Concat(x, y), okX && okY
	case only:
		if n.Op() == ops.OpReduceSum && isLiftable(k, n.Input(0), map[ir.Value]bool{}) {
			return nil, true
		}
		operands := slices.Clone(n.Inputs())
		for i, x := range operands {
			operands[i] = origin(x)
		}
		return operands, true
	}
	return nil, false
}

// isLiftable reports whether a value of the body can be computed for all steps after the scan, by elementwise ops and
// changes of shape, from stacked values and constants. seen are values that were looked at before: one that is not
// liftable ends it.
func isLiftable(k *sumHoister, v ir.Value, seen map[ir.Value]bool) bool {
	v = origin(v)
	if at, isPort := k.port[v]; isPort && at < k.a.Consts || seen[v] || k.isStacked(v) {
		return true
	}
	seen[v] = true
	n := v.Node()
	if _, moves := n.Def().Lower.(*ir.MapLowering); !moves && n.Def().Scalar == nil || n.Def().Batch == nil {
		return false
	}
	for _, x := range n.Inputs() {
		if !isLiftable(k, x, seen) {
			return false
		}
	}
	return true
}

// lifted returns a liftable value for all steps, along its first axis.
func lifted(k *sumHoister, v ir.Value) ir.Value {
	v = origin(v)
	x, done := k.outside[v]
	if done {
		return x
	}
	at := -1
	if port, isPort := k.port[v]; isPort {
		x = k.in[port]
	} else if n := v.Node(); len(n.Inputs()) == 0 {
		x = k.b.Copy(n, nil)[0]
	} else {
		in := make([]ir.Value, len(n.Inputs()))
		for i, operand := range n.Inputs() {
			in[i] = lifted(k, operand)
		}
		out, axes := n.Def().Batch(k.b, n, in, make([]int, len(in)), k.a.Length)
		x, at = out[v.Index()], axes[v.Index()]
	}
	k.outside[v] = ops.BatchAt(k.b, x, at, 0, k.a.Length)
	return k.outside[v]
}

// origin returns the value that a chain of rematerialize ops computes again.
func origin(v ir.Value) ir.Value {
	for v.Node().Op() == ops.OpRematerialize {
		v = v.Node().Input(0)
	}
	return v
}

// profitable reports whether a value can be summed over all steps at once without
// stacking more additional elements per step than it has; in a body that rematerializes
// nothing may be stacked in addition.
func (k *sumHoister) profitable(v ir.Value, only ir.Op) bool {
	operands, ok := k.operands(v, only, map[ir.Value]bool{})
	if !ok {
		return false
	}
	fresh, limit := 0, elements(v)
	if k.rematerializes {
		limit = 0
	}
	for _, x := range operands {
		if at, isPort := k.port[x]; isPort && at < k.a.Consts { // the same in every step: nothing has stacked it
			return false
		}
		if !k.isStacked(x) {
			fresh += elements(x)
		}
	}
	return fresh <= limit
}

func elements(v ir.Value) int {
	n, ok := v.Type().Shape.Size().Const()
	if !ok {
		return 1 << 30 // a symbolic size
	}
	return n
}

// isStacked reports whether a value of the body is stacked already.
func (k *sumHoister) isStacked(v ir.Value) bool {
	at, isPort := k.port[v]
	kept := func(o ir.Output) bool { return o.Value == v }
	return isPort && at >= k.a.Consts+k.a.Carries || slices.Contains(k.stacked, v) ||
		slices.ContainsFunc(k.body.Outputs()[k.a.Carries:], kept)
}

// stack marks the operands of a sum for stacking.
func (k *sumHoister) stack(v ir.Value, only ir.Op) {
	operands, _ := k.operands(v, only, map[ir.Value]bool{})
	for _, x := range operands {
		if !k.isStacked(x) {
			k.stacked = append(k.stacked, x)
		}
	}
}

// rewrite replaces the scan by one without the hoisted carries and returns all results,
// those carries as sums after the scan.
func (k *sumHoister) rewrite() []ir.Value {
	var operands []ir.Value
	for i, v := range k.in {
		if _, gone := k.hoisted[i-k.a.Consts]; !gone {
			operands = append(operands, v)
		}
	}
	attrs := *k.a
	attrs.Carries -= len(k.hoisted)
	var results []ir.Value // none for sums of slices alone
	if len(k.body.Outputs())+len(k.stacked) > len(k.hoisted) {
		results = k.b.AddNode(ops.OpScan, &attrs, []*ir.Graph{k.step()}, operands...)
	}
	if k.b.Err() != nil {
		return nil
	}
	k.outside = map[ir.Value]ir.Value{}
	for v, at := range k.port {
		if at >= k.a.Consts+k.a.Carries {
			k.outside[v] = k.in[at]
		}
	}
	out := make([]ir.Value, len(k.body.Outputs()))
	for i, o := range k.body.Outputs() {
		if _, gone := k.hoisted[i]; !gone {
			out[i], results = results[0], results[1:]
		}
		if i >= k.a.Carries {
			k.outside[o.Value] = out[i]
		}
	}
	for i, v := range k.stacked {
		k.outside[v] = results[i]
	}
	for i := range k.a.Carries {
		if v, gone := k.hoisted[i]; gone {
			out[i] = ops.Add(k.b, k.in[k.a.Consts+i], k.total(v))
		}
	}
	return out
}

// step returns the body without the hoisted sums, with the stacked values as results.
func (k *sumHoister) step() *ir.Graph {
	return k.b.Subgraph(k.body.Name(), func(b *ir.Builder) {
		m := ir.NewMapping(k.body)
		for i, p := range k.body.Ports() {
			if _, gone := k.hoisted[i-k.a.Consts]; !gone {
				m.Set(p.Value, b.Port(p.Kind, p.Name, p.Value.Type()))
			}
		}
		for _, n := range k.body.Nodes() {
			if n.Op() != ir.OpPort && !k.isHoistedAdd(n) {
				b.CopyNode(n, m)
			}
		}
		for i, o := range k.body.Outputs() {
			if _, gone := k.hoisted[i]; !gone {
				b.CopyOutput(o, m.Get(o.Value))
			}
		}
		for i, v := range k.stacked {
			b.Output(freeName(k.body, "stacked", i), m.Get(v))
		}
	})
}

// isHoistedAdd reports whether a node adds to a hoisted carry.
func (k *sumHoister) isHoistedAdd(n *ir.Node) bool {
	for i := range k.hoisted {
		if k.body.Outputs()[i].Value.Node() == n {
			return true
		}
	}
	return false
}

// total returns the sum of a value of the body over all steps.
func (k *sumHoister) total(v ir.Value) ir.Value {
	if _, done := k.totals[v]; !done {
		k.totals[v] = k.addUp(v)
	}
	return k.totals[v]
}

func (k *sumHoister) addUp(v ir.Value) ir.Value {
	n := v.Node()
	in := make([]ir.Value, len(n.Inputs()))
	switch n.Op() {
	case ops.OpDotGeneral:
		a := dotOf(n)
		return ops.DotGeneral(k.b, k.outside[origin(n.Input(0))], k.outside[origin(n.Input(1))], ops.DotAttrs{
			LhsContract: append([]int{0}, shiftAxes(a.LhsContract)...), RhsContract: append([]int{0}, shiftAxes(a.RhsContract)...),
			LhsBatch: shiftAxes(a.LhsBatch), RhsBatch: shiftAxes(a.RhsBatch),
		})
	case ops.OpReduceSum:
		axes := n.Attrs().(*ops.AxesAttrs).Axes
		return ops.ReduceSum(k.b, lifted(k, n.Input(0)), append([]int{0}, shiftAxes(axes)...)...)
	}
	for i, x := range n.Inputs() {
		in[i] = k.total(x)
	}
	return k.b.Copy(n, in)[0]
}

// shiftAxes returns axes after a new first axis is added.
func shiftAxes(axes []int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = a + 1
	}
	return out
}
