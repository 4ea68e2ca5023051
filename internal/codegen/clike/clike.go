// Package clike writes kernels of the loop IR in languages whose statements are
// those of C: WGSL, CUDA C++, MSL. What such a language does its own way is a
// Dialect; the rest is written once, here.
//
// A statement's expressions become one line: parts used more than once, and
// parts too long for a line, are bound to variables before it. Operations that
// the dialect has no good form for (scalar.Expand tells) become calls of
// functions that are written before the kernel, or, where short, their
// expansion.
package clike

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Dialect is what a language does its own way.
type Dialect struct {
	Name      string
	Expansion scalar.Expansion
	// Target is the column of the support table ([dtype.DType.On]) that says
	// which types kernels have.
	Target dtype.Dialect
	// Reserved reports whether a name means something in the language; such a
	// name gets an underscore.
	Reserved func(name string) bool
	// Type returns the name of the type of a variable: there is one for each
	// type that the support table promises, but for those that are stored as
	// words; "" for any other.
	Type func(t dtype.DType) string
	// Literal returns a constant other than a bool.
	Literal func(w *Writer, n scalar.Expr) string
	// Form returns how an operation on operands of type t is written where
	// that is not the common form.
	Form func(op scalar.Op, t dtype.DType) (Form, bool)
	// Convert returns x, of type from and standing alone, as type to; Bitcast
	// its bits as type to.
	Convert, Bitcast func(w *Writer, x string, from, to dtype.DType) string
	// Let and Var return the statements that define a constant and a variable.
	Let, Var func(t dtype.DType, name, value string) string
	// Vector returns a vector of elements, as memory holds them, and LetVector
	// the statement that names one of an array.
	Vector    func(t dtype.DType, elems []string) string
	LetVector func(a loop.Array, name, value string) string
	// VectorMath says that a vector of f32 can be a variable, and that a number times a
	// vector can be added to it: four neighbouring sums then are one, a quarter of the text.
	VectorMath bool
	// UnsignedShift says that shifts count in u32 whatever they shift.
	UnsignedShift bool
	// LowBits returns those of the bits of x, an i32 that is not negative, that mask has:
	// mask is a power of two less one. It is nil where that is x & mask.
	LowBits func(x string, mask int64) string
	// UndefinedOverflow says that the language leaves the overflow of signed
	// integers undefined: what may overflow is computed unsigned.
	UndefinedOverflow bool
	// OpaqueLoops says that a driver cannot be asked to leave a loop as it is: of one that is
	// to stay it is not shown how many turns it has.
	OpaqueLoops bool
	// LazyLogic writes && and || rather than & and |. Where each && becomes a
	// branch, as in WGSL, long conditions take drivers long to compile.
	LazyLogic bool
	// Native reports whether Form has an operation on a type that package scalar would
	// expand; nil where it has none.
	Native func(op scalar.Op, t dtype.DType) bool
	// PowerOfTwo is the helper that raises 2 to an f32, "" where that is a [scalar.OpPow]
	// like others.
	PowerOfTwo string
	// AtomicLoad returns the load of an atomic element of type t.
	AtomicLoad func(t dtype.DType, element string) string
	// Atomic returns the call that combines a value into an element and gives what was
	// there; nil where it is atomicAdd(&element, value) and the like.
	Atomic func(op scalar.Op, element, value string) string
	// AddFloat returns the lines that add to an atomic f32 a value that is a name or a
	// number; old, unless it is "", becomes the name of what was there. It is nil where the
	// language has no such additions.
	AddFloat func(element, value, old string) []string
	// Barrier returns the statements that make a workgroup meet. storage says
	// that it exchanges values through storage arrays too.
	Barrier func(storage bool) []string
	// Subgroup returns the name of the function that combines a value.
	Subgroup func(w *Writer, op scalar.Op, t dtype.DType) string
	// Function returns the first line of the definition of a function whose
	// parameters have the given names and types.
	Function func(name string, params []scalar.Expr, result dtype.DType) string
	// Shuffle returns the value of a [loop.Shuffle], nil where the language has none.
	Shuffle func(value string, xor int) string
	// Async writes asynchronous copies and multiply-adds, nil where the language
	// has none.
	Async *Async
	// Fragments writes multiply-adds of subgroups, nil where the language has none.
	Fragments *Fragments
	// Helpers are functions by name, which a form or a literal may need.
	Helpers map[string]string
}

// Form is how an operation is written: one of the fields is set.
type Form struct {
	Call   string // Call(a, b)
	Prefix string // Prefix a
	Infix  string // a Infix b
	// Text has $0, $1 and $2, each once, where the operands go. It must be safe
	// to use as an operand: a call, or something in parentheses.
	Text string
	// Helper names the function that the form needs.
	Helper string
}

// UnsupportedError names a type or an operation that a dialect lacks. It is of
// the kind [ir.ErrUnsupported].
type UnsupportedError struct {
	Dialect, Kernel string
	What            string
}

// Error returns "wgsl: kernel k: no type f64".
func (e *UnsupportedError) Error() string {
	return e.Dialect + ": kernel " + e.Kernel + ": no " + e.What
}

// Unwrap returns [ir.ErrUnsupported].
func (e *UnsupportedError) Unwrap() error { return ir.ErrUnsupported }

// Source is a kernel in the making: its body, and what has to stand around it.
type Source struct {
	// Kernel is the kernel that the body is of: with its loops unrolled.
	Kernel *loop.Kernel
	// Body has the statements, indented by one step.
	Body string
	// Functions are the definitions that the body needs, in order.
	Functions []string
	// Builtins are the names of the built-in variables that the body uses.
	Builtins []string
	// Types are the element types that occur.
	Types []dtype.DType
	// Names gives each array the name that the body uses, Mbarriers each mbarrier.
	Names, Mbarriers []string
}

// Uses reports whether the body uses a built-in variable of the given kind.
func (s *Source) Uses(kind loop.Builtin) bool {
	return slices.ContainsFunc(s.Builtins, func(name string) bool {
		k, _ := loop.BuiltinOf(name)
		return k == kind
	})
}

// Write writes the body of a kernel. The error is a *loop.CheckError or an
// *UnsupportedError.
func Write(k *loop.Kernel, d *Dialect) (*Source, error) {
	if err := loop.Check(k); err != nil {
		return nil, err
	}
	w := &Writer{
		d: d, out: &Source{Kernel: loop.Unroll(k)}, depth: 1, ranges: scalar.NewSimplifier(),
		taken: map[string]bool{}, alias: map[string]text{}, functions: map[string]bool{}, outlined: map[operation]bool{},
		renamed: map[string]string{}, mutable: map[string]dtype.DType{}, width: map[string]int{},
	}
	w.k = w.out.Kernel
	w.names()
	w.storageBarrier = sharesStorage(w.k)
	if d.VectorMath {
		w.quads = findQuads(w.k)
	}
	for _, a := range w.k.Arrays {
		w.typeName(a.DType)
	}
	w.block(w.k.Body)
	w.out.Body = w.sb.String()
	return w.out, w.err
}

// Writer writes one kernel.
type Writer struct {
	d   *Dialect
	k   *loop.Kernel
	out *Source
	err error

	sb    strings.Builder
	depth int
	taken map[string]bool
	// alias says how a variable is written that has no name of its own: the
	// member of a vector, or a part of a statement. renamed holds the names of
	// those whose name is reserved.
	alias          map[string]text
	renamed        map[string]string
	lets           int
	vectors        int
	functions      map[string]bool        // by name, those in out.Functions
	outlined       map[operation]bool     // whether an operation is the call of one of them
	inFunction     bool                   // one of them is being written
	width          map[string]int         // of the vectors by name
	mutable        map[string]dtype.DType // variables that change
	quads          quads                  // sums that are written as vectors
	storageBarrier bool                   // threads may exchange values through storage arrays
	ranges         *scalar.Simplifier
	roleBarrier    string // the barrier of the role that is written, "" outside of roles
}

// Fail records what the dialect lacks.
func (w *Writer) Fail(text string, args ...any) {
	if w.err == nil {
		w.err = &UnsupportedError{w.d.Name, w.k.Name, format.Sprintf(text, args...)}
	}
}

// Need has a helper written before the kernel.
func (w *Writer) Need(helper string) {
	if helper != "" {
		w.Define(helper, w.d.Helpers[helper])
	}
}

// Define has a function of the given name written before the kernel.
func (w *Writer) Define(name, text string) {
	if !w.functions[name] {
		w.functions[name] = true
		w.out.Functions = append(w.out.Functions, text)
	}
}

// typeName returns the dialect's name of t and notes that t occurs.
func (w *Writer) typeName(t dtype.DType) string {
	name := w.d.Type(t)
	if t.On(w.d.Target) == dtype.Unsupported || name == "" {
		w.Fail("type %s", t)
	}
	if !slices.Contains(w.out.Types, t) {
		w.out.Types = append(w.out.Types, t)
	}
	return name
}

// FloatLiteral returns the fewest digits that give back x, a finite float of 32
// or 64 bits, with a point or an exponent.
func FloatLiteral(x float64, bits int) string {
	s := strconv.FormatFloat(x, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// names finds out which names the kernel takes and renames reserved ones.
func (w *Writer) names() {
	define := func(name string) string {
		w.taken[name] = true
		if !w.d.Reserved(name) && !isFunctionName(name) {
			return name
		}
		w.renamed[name] = name + "_"
		return name + "_"
	}
	for _, a := range w.k.Arrays {
		w.out.Names = append(w.out.Names, define(a.Name))
	}
	for _, m := range w.k.Mbarriers {
		w.out.Mbarriers = append(w.out.Mbarriers, define(m.Name))
	}
	loop.Walk(w.k.Body, func(s loop.Stmt) {
		for _, name := range loop.Defines(s) {
			define(name)
		}
		if s, ok := s.(*loop.Var); ok {
			w.mutable[s.Name] = s.Init.Type
		}
	})
}

// fresh returns a new name: prefix and a number counted by n.
func (w *Writer) fresh(prefix string, n *int) string {
	for {
		name := prefix + strconv.Itoa(*n)
		*n++
		if !w.taken[name] {
			return name
		}
	}
}

func (w *Writer) line(s string) {
	w.sb.WriteString(strings.Repeat("  ", w.depth))
	w.sb.WriteString(s)
	w.sb.WriteByte('\n')
}
