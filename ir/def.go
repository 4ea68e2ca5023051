package ir

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rlx-go/rlx/ir/scalar"
)

// Def is the complete definition of an op. A missing rule needs a reason ([Def.NoGrad],
// [Def.NoBatch]); a test checks all definitions.
//
// Exactly one of Scalar, Lower and Body is set, with two exceptions: an [*AttendLowering], a
// [*TotalLowering] or a [*RoutineLowering] comes with a Body, and a [*KernelsLowering] may. An op
// with Body is a composite: derivatives, batching and every backend use its body, unless a backend
// claims the op by name or by its lowering. Any other op is a primitive.
type Def struct {
	Op  Op
	Doc string
	// Constraints document conditions on operands and attributes, numbered C1, C2, ... in the
	// documentation.
	Constraints []string
	// Operands are the names of the operands in documentation and TypeScript. A last name that ends
	// in "..." means any number of operands, including none.
	Operands []string
	// Optional is the number of trailing operands that may be omitted.
	Optional int
	// Ones names the operands whose neutral value is 1, such as the scale of a norm. A parameter
	// used as such an operand starts as ones: see [Graph.InitAsOnes].
	Ones []string
	// NewAttrs returns the zero attributes; nil if the op has none.
	NewAttrs func() Attrs
	// Subgraphs is the number of graphs that a node owns.
	Subgraphs int

	// Infer is the shape rule. It returns the types of the results, or an error of kind ErrShape,
	// ErrDType or ErrAttr. The results of n are not set yet.
	Infer func(n *Node) ([]Type, error)
	// Reduces returns the axes of the first operand that a reduction removes; nil for other ops.
	// Hosts offer to keep these axes with size 1.
	Reduces func(n *Node) []int
	// Eval is the reference implementation, written for clarity and not for speed, and independent
	// of the lowering.
	Eval func(c *EvalContext, n *Node, in []*Array) ([]*Array, error)

	// JVP returns the tangent of each result, given the operands, the results and the tangents of
	// the operands, not all of which are zero. An invalid Value is a zero tangent, in both
	// directions. A rule that recomputes the results, such as that of a loop, may store them into
	// out; they then replace the original results.
	JVP func(b *Builder, n *Node, in, out, t []Value) []Value
	// Transpose returns the cotangent of each operand marked linear, given the cotangents of the
	// results (an invalid Value is zero) and the values of the other operands.
	Transpose func(b *Builder, n *Node, linear []bool, in, ct []Value) []Value
	// Batch returns the results of the op applied along a batch axis of the given size, and the
	// position of that axis in each result (-1: not batched). axes holds its position in each
	// operand (-1: not batched); at least one operand is batched.
	Batch func(b *Builder, n *Node, in []Value, axes []int, size Dim) (out []Value, outAxes []int)
	// Partial splits a node with subgraphs if only some of its operands are known (partial
	// evaluation). It adds to b a node for the results that depend on known operands only and a
	// node linear in the unknown ones; residuals pass from the first to the second. It returns the
	// results and which of them are unknown. keep, if not nil, chooses the residuals within the
	// subgraphs. Nil for ops without subgraphs.
	Partial func(b *Builder, n *Node, in []Value, unknown []bool, keep Keeper) (out []Value, outUnknown []bool)
	// Prune adds a node that computes at least the results marked used, without unneeded results
	// and operands. It returns all results, with invalid Values for removed ones, or nil if nothing
	// can be removed. The caller runs dead code elimination on the subgraphs. Nil for ops without
	// subgraphs.
	Prune func(b *Builder, n *Node, in []Value, used []bool) []Value
	// NoGrad, NoTranspose and NoBatch are the reasons for a missing JVP, Transpose or Batch.
	NoGrad, NoTranspose, NoBatch string

	// Scalar is the body of an elementwise op: it returns an element of the result given the
	// corresponding elements of the operands, which all have the same shape.
	Scalar func(n *Node, x []scalar.Expr) scalar.Expr
	// Lower is the loop structure of any other primitive, or an alternative to Body for backends
	// that claim the composite.
	Lower Lowering
	// Body builds the composite from primitives and returns its results.
	Body func(b *Builder, n *Node, in []Value) []Value

	// Pad is the padding rule of the op, for graphs compiled for sizes larger than the true ones:
	// which padding must hold what value, and where results have padding. An error, of kind
	// [ErrUnsupported], means that the true sizes are required. Nil means the rule of elementwise
	// ops if Scalar is set, and the rules of the body for a composite; any other op without a rule
	// requires true sizes. The rules of package ops are in internal/compiler/padding.
	Pad func(p *Padding) error

	// Samples returns cases for the generated tests. Those of package ops are in ops/samples, which
	// only tests import: see [AddSamples].
	Samples func() []Sample
}

// Sample is a case of the generated tests of an op: operands and attributes.
type Sample struct {
	Name  string
	Attrs Attrs
	Subs  []*Graph
	In    []*Array
	// NoGrad excludes the case from gradient checks and is the reason, for example a point where
	// the function is not differentiable.
	NoGrad string
	// Tol, if not zero, is the relative tolerance of this case, because of its conditioning. It
	// overrides the default.
	Tol float64
}

// Keeper chooses the residuals of reverse mode: it returns for each node of the forward graph, by
// ID, whether its results are stored. A nil result stores all needed values. The graph runs steps
// times, as a loop body does. A Keeper, even one that returns nil, indicates that memory matters
// more than time.
type Keeper func(forward *Graph, needed []Value, steps Dim) (keep []bool, err error)

// IsComposite reports whether the op is defined by a body of other ops.
func (d *Def) IsComposite() bool { return d.Body != nil }

// LowersBody reports whether Lower is only an alternative to Body, for backends that claim the
// composite.
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

// arity returns the minimum and maximum number of operands; the maximum is -1 for any number.
func (d *Def) arity() (minArgs, maxArgs int) {
	minArgs, maxArgs = len(d.Operands)-d.Optional, len(d.Operands)
	if d.Variadic() {
		return minArgs - 1, -1
	}
	return minArgs, maxArgs
}

// registry holds the registered ops. Programs may register ops while others build graphs.
var registry = struct {
	sync.RWMutex
	defs map[Op]*Def
}{defs: map[Op]*Def{}}

// Register adds an op. It is called by init functions of package ops and of packages with their own
// ops. d must not change afterwards. The error names the op. It is of kind [ErrName] if the name is
// taken or contains anything but letters, digits, underscores and dots, which the text form
// requires. It is of kind [ErrDef] if Infer is missing, or if not exactly one of Scalar, Lower and
// Body is set (but see [Def]). The same holds for JVP and NoGrad, except that a composite may have
// neither, since its body is differentiated.
func Register(d *Def) error {
	if d == nil {
		return Errorf(ErrDef, "no definition given")
	}
	if !isOpName(d.Op) {
		return Errorf(ErrName, "invalid op name %q", string(d.Op))
	}
	if fault := d.check(); fault != "" {
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

// AddSamples sets the samples of a registered op without any, so that they can be in a package that
// programs do not import. It is called by init functions. The error, of kind [ErrName], names an op
// that is not registered, or that has samples already.
func AddSamples(op Op, samples func() []Sample) error {
	registry.Lock()
	defer registry.Unlock()
	d := registry.defs[op]
	if d == nil {
		return Errorf(ErrName, "there is no op %q", string(op))
	}
	if d.Samples != nil {
		return Errorf(ErrName, "op %q has samples already", string(op))
	}
	d.Samples = samples
	return nil
}

// check returns the fault of a definition, or "".
func (d *Def) check() string {
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
	case "", "input", "param", "state": // keywords of the text form for ports
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

// mustDef returns the definition of an op of this package.
func mustDef(op Op) *Def {
	d, _ := Lookup(op)
	return d
}
