package ir

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Def is all that is known of an op, in one place. A field that does not apply
// is empty for a stated reason ([Def.NoGrad], [Def.NoBatch]) and never in
// silence; a test walks all definitions.
//
// Exactly one of Scalar, Lower and Body is set, but an [*AttendLowering], a
// [*TotalLowering] or a [*RoutineLowering] stands beside a Body, and a
// [*KernelsLowering] may. An op with Body is a composite: derivatives, batching and
// every backend come through its body, and a backend may claim it, by name or for
// its lowering. Any other op is a primitive.
type Def struct {
	Op  Op
	Doc string
	// Constraints are numbered C1, C2, ... in the documentation.
	Constraints []string
	// Operands are their names, as documentation and TypeScript show them. A
	// last name that ends in "..." stands for any number, none included.
	Operands []string
	// Optional is how many of the last operands may be left out.
	Optional int
	// Ones names the operands that do nothing at 1 and would undo the op at 0, such
	// as the scale of a norm: what is trained in their place begins as ones, see
	// [Graph.BeginAsOnes].
	Ones []string
	// NewAttrs returns the zero attributes; nil where the op has none.
	NewAttrs func() Attrs
	// Subgraphs is how many graphs a node owns.
	Subgraphs int

	// Infer is the shape rule: the types of the results, or an error of kind
	// ErrShape, ErrDType or ErrAttr. It sees a node whose results are not set.
	Infer func(n *Node) ([]Type, error)
	// Reduces returns the axes of the first operand that the result lacks. Nil
	// for an op that is no reduction. Hosts offer to keep them with size 1.
	Reduces func(n *Node) []int
	// Eval is the plain meaning, written for trust and not for speed, and
	// without the lowering.
	Eval func(c *EvalContext, n *Node, in []*Array) ([]*Array, error)

	// JVP returns a tangent for each result, given the operands, the results
	// and the tangents of the operands. An invalid Value is a tangent known to
	// be zero, in both directions. A rule that has to compute the results anew,
	// as that of a loop does, may put its own into out: they are used from then
	// on.
	JVP func(b *Builder, n *Node, in, out, t []Value) []Value
	// Transpose returns a cotangent for each operand marked linear, given the
	// cotangents of the results (an invalid Value is zero) and the values of
	// the operands not marked linear.
	Transpose func(b *Builder, n *Node, linear []bool, in, ct []Value) []Value
	// Batch returns the results of the op applied along a batch axis, and the
	// position of that axis in each result (-1: not batched). axes tell where
	// each operand has it (-1: not at all); at least one operand has it. It
	// has length size.
	Batch func(b *Builder, n *Node, in []Value, axes []int, size Dim) (out []Value, outAxes []int)
	// Partial splits a node with subgraphs of whose operands only some are
	// known: it adds to b a node for what the known ones determine and a node
	// linear in the unknown ones (residuals pass from one to the other), and
	// returns the results and which of them are unknown. keep, where it is not nil,
	// chooses the residuals within the subgraphs. Nil for ops without subgraphs.
	Partial func(b *Builder, n *Node, in []Value, unknown []bool, keep Keeper) (out []Value, outUnknown []bool)
	// Prune adds a node that computes the results marked used, at least one of
	// them, and leaves out what it can of the others and of the operands: it
	// returns all results, invalid Values for those that are gone, or nil where
	// there is nothing to leave out. Dead code in its subgraphs is removed by
	// the caller. Nil for ops without subgraphs.
	Prune func(b *Builder, n *Node, in []Value, used []bool) []Value
	// NoGrad says why there is no JVP, NoTranspose why there is no Transpose,
	// NoBatch why there is no Batch.
	NoGrad, NoTranspose, NoBatch string

	// Scalar is the body of an elementwise op: one result element from the
	// elements of the operands, all of one shape.
	Scalar func(n *Node, x []scalar.Expr) scalar.Expr
	// Lower is the loop structure of any other primitive, or what a composite is
	// to backends that claim it.
	Lower Lowering
	// Body builds the composite from primitives and returns its results.
	Body func(b *Builder, n *Node, in []Value) []Value

	// Samples drive the generated tests. They are left out of the wasm module.
	Samples func() []Sample
}

// Sample is one case of the generated tests of an op: operands and attributes.
type Sample struct {
	Name  string
	Attrs Attrs
	Subs  []*Graph
	In    []*Array
	// NoGrad leaves the case out of the gradient checks, for the reason it
	// gives: a point where the function has no derivative, say.
	NoGrad string
	// Tol, where not zero, is a relative tolerance that this case needs in
	// place of the one of the table, because of its conditioning.
	Tol float64
}

// Keeper chooses what is kept of the way forward for the way back, by node ID of the
// graph forward; nil keeps all that is needed there. The graph runs steps times, as the
// body of a loop does. That there is a Keeper says that memory counts for more than time.
type Keeper func(forward *Graph, needed []Value, steps Dim) (keep []bool, err error)

// IsComposite reports whether the op is made of other ops.
func (d *Def) IsComposite() bool { return d.Body != nil }

// LowersBody reports whether Lower is what the composite is to backends that claim
// it, and not a form of its own.
func (d *Def) LowersBody() bool {
	switch d.Lower.(type) {
	case *AttendLowering, *TotalLowering, *RoutineLowering:
		return true
	case *KernelsLowering:
		return d.Body != nil
	}
	return false
}

// Variadic reports whether the op takes any number of operands.
func (d *Def) Variadic() bool {
	n := len(d.Operands)
	return n > 0 && strings.HasSuffix(d.Operands[n-1], "...")
}

// arity returns the least and the greatest number of operands, -1 for any.
func (d *Def) arity() (least, most int) {
	least, most = len(d.Operands)-d.Optional, len(d.Operands)
	if d.Variadic() {
		return least - 1, -1
	}
	return least, most
}

// registry holds what is registered. Programs may register ops while others
// build graphs.
var registry = struct {
	sync.RWMutex
	defs map[Op]*Def
}{defs: map[Op]*Def{}}

// Register adds an op. It is called from init functions of package ops and of
// packages that bring ops of their own. From then on d must not change. The
// error names the op. It is of kind [ErrName] where the name is taken or is not
// made of letters, digits, underscores and dots: the text form could not hold
// it; and of kind [ErrDef] where there is no Infer, not exactly one of Scalar,
// Lower and Body (but see [Def]), or not exactly one of JVP and NoGrad (a composite may have
// neither: its body is differentiated).
func Register(d *Def) error {
	if d == nil {
		return Errorf(ErrDef, "no definition given")
	}
	if !isOpName(d.Op) {
		return Errorf(ErrName, "%q cannot be the name of an op", string(d.Op))
	}
	if fault := d.fault(); fault != "" {
		return Errorf(ErrDef, "op %q: %s", string(d.Op), fault)
	}
	return register(d)
}

func register(d *Def) error {
	registry.Lock()
	defer registry.Unlock()
	if registry.defs[d.Op] != nil {
		return Errorf(ErrName, "op %q is defined twice", string(d.Op))
	}
	registry.defs[d.Op] = d
	return nil
}

// fault says what a definition lacks or has too much of, "" where it is whole.
func (d *Def) fault() string {
	forms := 0
	for _, has := range []bool{d.Scalar != nil, d.Lower != nil && !d.LowersBody(), d.Body != nil} {
		if has {
			forms++
		}
	}
	switch {
	case d.Infer == nil:
		return "it has no Infer"
	case forms != 1:
		return "it has " + itoa(forms) + " of Scalar, Lower and Body, and must have one"
	case d.JVP == nil && d.NoGrad == "" && d.Body == nil:
		return "it has neither JVP nor NoGrad, which says why there is no derivative"
	case d.JVP != nil && d.NoGrad != "":
		return "it has a JVP, and NoGrad says that it has none"
	case d.Optional < 0 || d.Optional > len(d.Operands):
		return itoa(d.Optional) + " of " + itoa(len(d.Operands)) + " operands are optional"
	}
	return ""
}

func isOpName(op Op) bool {
	switch op {
	case "", "input", "param", "state": // the text form's words for a port
		return false
	}
	for _, c := range []byte(op) {
		if !isWordByte(c) {
			return false
		}
	}
	return true
}

// Lookup returns the definition of an op.
func Lookup(op Op) (*Def, bool) {
	registry.RLock()
	defer registry.RUnlock()
	d, ok := registry.defs[op]
	return d, ok
}

// Ops returns the names of all registered ops, sorted.
func Ops() []Op {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.defs))
}

// mustDef is for the ops of this package.
func mustDef(op Op) *Def {
	d, _ := Lookup(op)
	return d
}
