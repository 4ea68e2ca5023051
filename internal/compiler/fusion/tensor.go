package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Tensor is a value stored in memory, dense and row-major unless Layout is set.
type Tensor struct {
	ID     int
	Name   string
	DType  ir.DType
	Dims   []int
	Layout *Layout
	// Port is set for inputs, parameters and states.
	Port *ir.Port
	// Constant is set for literals.
	Constant []byte
	// Outer is set in a loop body for a tensor of the surrounding partition. With
	// PerStep, t is the slice of Outer for the current step, counted from the end with
	// Reverse.
	Outer            *Tensor
	PerStep, Reverse bool
	// carried says that t is a carry, whose Outer is set after the body of its loop is built.
	carried bool
	// View says that Outer is a tensor of the same partition and t a reshape of it, or a window with
	// a layout.
	View bool
}

// Layout is where the elements of a tensor lie: Strides are the distances of neighbours along each axis, and Base is
// the offset of the first element, both in elements of Outer, or of the tensor itself.
type Layout struct {
	Strides []int
	Base    int
}

// Root returns the tensor that owns the memory of t.
func (t *Tensor) Root() *Tensor {
	for t.Outer != nil {
		t = t.Outer
	}
	return t
}

// viewed returns the tensor that a view shows, or t if it is no view.
func (t *Tensor) viewed() *Tensor {
	for t != nil && t.View {
		t = t.Outer
	}
	return t
}

// IsSlice reports whether t is a slice that moves with the steps of a loop.
func (t *Tensor) IsSlice() bool {
	for ; t.Outer != nil; t = t.Outer {
		if t.PerStep {
			return true
		}
	}
	return false
}

// Persistent reports whether the tensor keeps its value between runs.
func (t *Tensor) Persistent() bool { return t.Port != nil && t.Port.Kind != ir.InputPort }

// IsFixed reports whether a tensor keeps its value during a run and between runs.
func (p *Partition) IsFixed(t *Tensor) bool {
	if p.parent != nil || !t.Persistent() {
		return false
	}
	return !slices.ContainsFunc(p.states.pairs, func(s newValue) bool { return s.name == t.Port.Name })
}

// Type returns the type of the values.
func (t *Tensor) Type() ir.Type { return ir.Type{DType: t.DType, Shape: ir.Dims(t.Dims...)} }

// Len returns the number of elements.
func (t *Tensor) Len() int { return Product(t.Dims) }

// Bytes returns the size of the tensor on a device, where booleans are 32-bit words.
func (t *Tensor) Bytes() int { return t.Len() * loop.DeviceSize(t.DType) }

// Load returns the load of a tensor's element at a position. Its slot is the ID of the
// root tensor.
func (p *Partition) Load(s *scalar.Simplifier, t *Tensor, at ir.Index) scalar.Expr {
	root, offset := p.Place(t, at)
	return scalar.LoadAt(root.ID, t.DType, s.Simplify(offset))
}

// Place returns the root tensor of t and the offset there of the element at a position,
// not simplified.
func (p *Partition) Place(t *Tensor, at ir.Index) (root *Tensor, offset scalar.Expr) {
	if l := t.Layout; withTensorCores && l != nil {
		return p.resolve(t, scalar.Add(strided(l.Strides, at, p.Long(t.Root().Len())), loop.Int(l.Base)))
	}
	return p.resolve(t, linear(t.Dims, at, p.Long(t.Len())))
}

// resolve converts an offset in t to the offset in its root tensor, through the
// surrounding loops.
func (p *Partition) resolve(t *Tensor, offset scalar.Expr) (*Tensor, scalar.Expr) {
	for depth := p.Depth(); t.Outer != nil; t = t.Outer {
		if t.View {
			continue
		}
		depth--
		if !t.PerStep {
			continue
		}
		count := loop.Counter(depth)
		if t.Reverse {
			count = scalar.Sub(loop.Int(t.Outer.Dims[0]-1), count)
		}
		if p.Long(t.Outer.Len()) {
			count = loop.Long(count)
		}
		step := loop.Int(t.Len())
		offset = scalar.Add(scalar.Mul(count, step), offset)
	}
	return t, offset
}

// Tensor returns the tensor with an ID, of this partition or of one around or inside it;
// nil if there is none.
func (p *Partition) Tensor(id int) *Tensor { return p.byID[id] }

// TensorOf returns the tensor of a value, or nil if the value is not stored.
func (p *Partition) TensorOf(v ir.Value) *Tensor {
	if _, literal := p.decided.literals[v]; literal || !p.decided.stored(v.Node()) {
		return nil
	}
	return p.tensors[v]
}

// whole returns the tensor of an operand of a control-flow node, nil for a literal. The
// tensor of a reshape is a view.
func (p *Partition) whole(v ir.Value) *Tensor {
	n := v.Node()
	if p.tensors[v] == nil && p.decided.virtual[n.ID()] && isReshape(n) {
		if t := p.whole(n.Input(0)); t != nil {
			p.tensors[v] = p.alias(resultName(v), v.Type(), t)
			p.tensors[v].View = true
		}
	}
	return p.tensors[v]
}

// newTensor adds a tensor for values of type t.
func (p *Partition) newTensor(name string, t ir.Type) *Tensor {
	dims, _ := t.Shape.Ints()
	x := p.numbered(&Tensor{Name: name, DType: t.DType, Dims: dims})
	p.Tensors = append(p.Tensors, x)
	return x
}

// numbered assigns a tensor its ID.
func (p *Partition) numbered(t *Tensor) *Tensor {
	t.ID = len(p.byID)
	p.byID[t.ID] = t
	return t
}

// alias returns a tensor by which a loop body refers to outer, which may be set later.
func (p *Partition) alias(name string, t ir.Type, outer *Tensor) *Tensor {
	dims, _ := t.Shape.Ints()
	return p.numbered(&Tensor{Name: name, DType: t.DType, Dims: dims, Outer: outer, carried: outer == nil})
}

// Scratch adds a tensor for intermediate results between the kernels of a group.
func (p *Partition) Scratch(name string, d ir.DType, dims ...int) *Tensor {
	return p.newTensor(name, ir.Type{DType: d, Shape: ir.Dims(dims...)})
}

// IsGuarded reports whether a tensor must stay unchanged once an index check has failed: it
// is persistent, and the outermost partition has checks.
func (p *Partition) IsGuarded(t *Tensor) bool {
	for p.parent != nil {
		p = p.parent
	}
	return t.Persistent() && len(p.Checks) > 0
}
