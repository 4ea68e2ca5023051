// Package clike is the code generator shared by the C-like languages: WGSL, CUDA C++ and
// MSL. Its input is a kernel of the loop IR and a [Dialect], its output a [Source]: the
// body of the kernel with its functions, which the printers (packages wgsl, cudacpp, msl)
// wrap in declarations. Read this file first, then stmt.go and expr.go.
//
// The expressions of a statement become one line: common subexpressions, and
// parts too long for a line, are bound to variables before it. Operations that
// the dialect lacks (see scalar.Expand) become calls of
// functions written before the kernel, or are expanded in place if short.
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

// Dialect describes a language.
type Dialect struct {
	Name      string
	Expansion scalar.Expansion
	// Target is the column of the support table ([dtype.DType.On]) with
	// the supported types.
	Target dtype.Dialect
	// Reserved reports whether a name is reserved in the language; such a
	// name gets an underscore.
	Reserved func(name string) bool
	// Type returns the name of the type of a variable, or "" for an unsupported
	// type.
	Type func(t dtype.DType) string
	// Literal returns a constant other than a bool.
	Literal func(w *Writer, n scalar.Expr) string
	// Form returns the form of an operation on operands of type t, if it differs from
	// the common one.
	Form func(op scalar.Op, t dtype.DType) (Form, bool)
	// Convert returns x, a complete expression of type from, converted to type to;
	// Bitcast reinterprets its bits.
	Convert, Bitcast func(w *Writer, x string, from, to dtype.DType) string
	// Let and Var return the statements that define a constant and a variable.
	Let, Var func(t dtype.DType, name, value string) string
	// Vector returns a vector of elements in their memory type, and LetVector
	// the statement that defines a vector loaded from an array.
	Vector    func(t dtype.DType, elems []string) string
	LetVector func(a loop.Array, name, value string) string
	// VectorMath says that the language has vector variables of f32 and adds a scalar
	// times a vector to them: four adjacent accumulators become one vector.
	VectorMath bool
	// UnsignedShift says that shift counts are u32 for all operand types.
	UnsignedShift bool
	// LowBits returns x & mask for an i32 that is not negative and a mask of the form
	// 2ⁿ−1. Nil means x & mask.
	LowBits func(x string, mask int64) string
	// UndefinedOverflow says that the overflow of signed integers is undefined:
	// operations that may overflow are computed unsigned.
	UndefinedOverflow bool
	// OpaqueLoops says that the language has no pragma against unrolling: the trip count of
	// a loop that must stay rolled is hidden from the driver.
	OpaqueLoops bool
	// LazyLogic writes && and || rather than & and |. In WGSL each && becomes a
	// branch, and drivers compile long conditions slowly.
	LazyLogic bool
	// Native reports whether Form has an operation on a type that package scalar would
	// expand; nil means none.
	Native func(op scalar.Op, t dtype.DType) bool
	// PowerOfTwo is the helper for 2ˣ of an f32, "" for the general [scalar.OpPow].
	PowerOfTwo string
	// Masked is the helper for x & mask ^ bits of u32 with constants, which compilers make two
	// operations of; "" for none.
	Masked string
	// AtomicLoad returns the load of an atomic element of type t.
	AtomicLoad func(t dtype.DType, element string) string
	// Atomic returns the atomic read-modify-write of an element, an expression for the
	// old value; nil means atomicAdd(&element, value) and the like.
	Atomic func(op scalar.Op, element, value string) string
	// AddFloat returns the lines that add value, a name or a literal, to an atomic f32.
	// They define old as the old value, unless it is "". It is nil if the language has no
	// such additions.
	AddFloat func(element, value, old string) []string
	// KernelBarrier is the statement that waits for the kernels before this one, "" for targets without it.
	KernelBarrier string
	// Barrier returns the statements of a workgroup barrier. storage says
	// that it also orders accesses of storage arrays.
	Barrier func(storage bool) []string
	// Subgroup returns the name of the function of a subgroup reduction.
	Subgroup func(w *Writer, op scalar.Op, t dtype.DType) string
	// Function returns the first line of the definition of a function whose
	// parameters have the given names and types.
	Function func(name string, params []scalar.Expr, result dtype.DType) string
	// Shuffle returns the value of a [loop.Shuffle]; nil if the language has none.
	Shuffle func(value string, xor int) string
	// Async writes asynchronous copies and MMA; nil if the language has none.
	Async *Async
	// Fragments writes the MMA of subgroups; nil if the language has none.
	Fragments *Fragments
	// Helpers are functions by name, for forms and literals.
	Helpers map[string]string
}

// Form is the syntax of an operation: one of Call, Prefix, Infix and Text is set.
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

// Source is the generated code of a kernel: its body and the declarations it needs.
type Source struct {
	// Kernel is the kernel of the body, with its loops unrolled.
	Kernel *loop.Kernel
	// Body has the statements, indented by one step.
	Body string
	// Functions are the definitions that the body needs, in order.
	Functions []string
	// Builtins are the names of the built-in variables that the body uses.
	Builtins []string
	// Types are the element types that occur.
	Types []dtype.DType
	// Names has the name of each array in the body, Mbarriers that of each mbarrier.
	Names, Mbarriers []string
	// KernelBarrier says that the body waits for other kernels.
	KernelBarrier bool
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
		w.useType(a.DType)
	}
	statements{w}.block(w.k.Body)
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
	// alias has the text of variables without a name of their own: members of
	// vectors and bound subexpressions. renamed has the new names of
	// variables whose name is reserved.
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

// Fail records a feature that the dialect lacks.
func (w *Writer) Fail(text string, args ...any) {
	if w.err == nil {
		w.err = &UnsupportedError{w.d.Name, w.k.Name, format.Sprintf(text, args...)}
	}
}

// Need adds a helper to the functions before the kernel.
func (w *Writer) Need(helper string) {
	if helper != "" {
		w.Define(helper, w.d.Helpers[helper])
	}
}

// Define adds a function of the given name before the kernel, unless it is there.
func (w *Writer) Define(name, text string) {
	if !w.functions[name] {
		w.functions[name] = true
		w.out.Functions = append(w.out.Functions, text)
	}
}

// useType records that t occurs. It fails for a type that the dialect has no name for.
func (w *Writer) useType(t dtype.DType) {
	if t.On(w.d.Target) == dtype.Unsupported || w.d.Type(t) == "" {
		w.Fail("type %s", t)
	}
	if !slices.Contains(w.out.Types, t) {
		w.out.Types = append(w.out.Types, t)
	}
}

// FloatLiteral returns the shortest literal of x, a finite float of 32
// or 64 bits, that rounds back to x, with a point or an exponent.
func FloatLiteral(x float64, bits int) string {
	s := strconv.FormatFloat(x, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// names collects the names of the kernel and renames reserved ones.
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

// fresh returns an unused name: prefix and the number n, which it increments.
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
