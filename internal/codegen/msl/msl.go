// Package msl prints kernels of the loop IR in the Metal Shading Language, in what
// versions 2.3 (macOS 11) to 3.1 have in common; the type bfloat alone is of 3.1.
//
// The parameters of a kernel are its storage arrays, in order, as buffers 0, 1, …;
// then, if it reads scalars of the run, a struct of them, each aligned to its size; then, if it
// reads the counts of enclosing repeats, an array of int with them, the outermost
// first. A Bool is a uint in memory, a BF16 its bits
// or, with bfloat, that.
//
// Metal's mathematical functions are loose by default, and its compiler may assume
// that no infinity or NaN occurs. So they are not used: what is printed is made of
// operations that are exact or, like division and precise::sqrt, rounded as IEEE 754
// says ([scalar.Portable]). A product and a sum may be contracted to one rounding.
// Signed integers wrap: what may overflow, by the ranges of what it is made of, is
// computed unsigned, since C++ leaves overflow undefined.
//
// Nothing that this package printed has been seen by Apple's compiler yet. What is
// known of it: clang takes it as C++ for OpenCL, which has the same address spaces,
// and run on a CPU it computes what it should (package software).
package msl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// simdgroup is the number of threads of a SIMD-group on all of Apple's GPUs.
const simdgroup = 32

// StorageBuffers is how many storage arrays a kernel may have: of the 31 entries of
// the buffer argument table (Metal Feature Set Tables), two are kept for scalars and
// counts, and two for what a piece of a grid is told ([Printer].Cut).
const StorageBuffers = 31 - 4

// Printer prints MSL; it is the printer that package plan takes.
type Printer struct {
	// BFloat has bf16 be the type bfloat, which takes MSL 3.1.
	BFloat bool
	// Cut, where it is set, reports whether a kernel is printed for pieces of its grid. It
	// then has two more buffers behind the others: three uint, the workgroup that the
	// piece begins with, and one uint that is 0 where nothing is to be done.
	Cut func(*loop.Kernel) bool
}

// Dialect returns dtype.MSL.
func (Printer) Dialect() dtype.Dialect { return dtype.MSL }

// Prefix comes before a kernel's name in that of its function.
const Prefix = "k_"

// EntryPoint returns the name of a kernel's function.
func EntryPoint(k *loop.Kernel) string { return Prefix + k.Name }

// Print returns the MSL source of a kernel. The error is a *loop.CheckError, or a
// *clike.UnsupportedError for types that the support table does not promise, for
// more than [StorageBuffers] arrays, for kernels that are not right for subgroups of 32,
// and without BFloat for fragments of bf16.
func (p Printer) Print(k *loop.Kernel) (string, error) {
	src, err := clike.Write(k, dialects[p.BFloat])
	if err != nil {
		return "", err
	}
	w := writer{src: src, k: src.Kernel, names: types{bfloat: p.BFloat}, tiled: p.Cut != nil && p.Cut(k)}
	if what := w.missing(); what != "" {
		return "", &clike.UnsupportedError{Dialect: dialectName, Kernel: k.Name, What: what}
	}
	w.line("// %s", k.Name)
	w.line("#include <metal_stdlib>\nusing namespace metal;")
	w.scalars()
	for _, f := range src.Functions {
		w.line("\n%s", strings.TrimSuffix(f, "\n"))
	}
	w.entry()
	return w.sb.String(), nil
}

// writer puts what MSL wants around a kernel's body.
type writer struct {
	src     *clike.Source
	k       *loop.Kernel
	names   types
	buffers int  // so far
	tiled   bool // the kernel runs by pieces of its grid
	sb      strings.Builder
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.sb, format+"\n", args...)
}

// missing returns what the kernel needs that Metal lacks, "" where it has all.
func (w *writer) missing() string {
	for i, t := range w.k.Scalars {
		if t != dtype.Invalid && t.On(dtype.MSL) == dtype.Unsupported {
			return fmt.Sprintf("scalar %d of type %s", i, t)
		}
	}
	if s := w.k.Subgroup; s != [2]int{} && (s[0] > simdgroup || s[1] < simdgroup) {
		return fmt.Sprintf("subgroups of %d to %d threads", s[0], s[1])
	}
	if !w.names.bfloat && w.k.HasFragments() && slices.ContainsFunc(w.k.Arrays, func(a loop.Array) bool { return a.Space == loop.Shared && a.DType == dtype.BF16 }) {
		return "fragments of bf16"
	}
	storage := slices.DeleteFunc(slices.Clone(w.k.Arrays), func(a loop.Array) bool { return a.Space != loop.Storage })
	if len(storage) > StorageBuffers {
		return fmt.Sprintf("%d storage arrays in a kernel", len(storage))
	}
	return ""
}

// scalars declares the struct of scalars.
func (w *writer) scalars() {
	if len(w.k.Scalars) == 0 {
		return
	}
	w.line("\nstruct Run {")
	for i, t := range w.k.Scalars {
		if t == dtype.Invalid {
			t = dtype.U32
		}
		w.line("  %s scalar%d;", w.names.element(t), i)
	}
	w.line("};")
}

// buffer returns a parameter in the next place of the buffer argument table.
func (w *writer) buffer(declaration string) string {
	w.buffers++
	return fmt.Sprintf("%s [[buffer(%d)]]", declaration, w.buffers-1)
}

// parameters are the kernel's buffers, and the built-in values that its body uses.
func (w *writer) parameters() []string {
	var params []string
	for i, a := range w.k.Arrays {
		switch {
		case a.Space != loop.Storage:
		case a.Access == loop.Read:
			params = append(params, w.buffer("device const "+w.names.memory(a)+" *"+w.src.Names[i]))
		default:
			params = append(params, w.buffer("device "+w.names.memory(a)+" *"+w.src.Names[i]))
		}
	}
	if len(w.k.Scalars) > 0 {
		params = append(params, w.buffer("constant Run &run"))
	}
	if w.k.Counters > 0 {
		params = append(params, w.buffer("constant int *repeat"))
	}
	if w.tiled {
		params = append(params, w.buffer("constant uint *first_group"), w.buffer("device const uint *wanted"))
	}
	for _, v := range builtinValues {
		if w.src.Uses(v.kind) {
			params = append(params, fmt.Sprintf("%s %s [[%s]]", v.typ, v.param, v.attribute))
		}
	}
	return params
}

func (w *writer) entry() {
	w.line("\n[[max_total_threads_per_threadgroup(%d)]]", w.k.Threads())
	w.line("kernel void %s(", EntryPoint(w.k))
	w.line("    %s) {", strings.Join(w.parameters(), ",\n    "))
	for i, a := range w.k.Arrays {
		switch a.Space {
		case loop.Shared:
			w.line("  threadgroup %s %s[%d];", w.names.memory(a), w.src.Names[i], a.Len)
		case loop.Private:
			w.line("  %s %s[%d];", w.names.memory(a), w.src.Names[i], a.Len)
		}
	}
	if w.tiled {
		w.line("  if (wanted[0] == 0u) return;")
	}
	slices.Sort(w.src.Builtins)
	for _, name := range w.src.Builtins {
		value, typ := w.builtin(name)
		w.line("  const %s %s = %s;", typ, name, value)
	}
	w.sb.WriteString(w.src.Body)
	w.line("}")
}

// builtinValues are Metal's names for what the built-in variables come from (Metal
// Shading Language Specification, table "Attributes for kernel function input
// arguments").
var builtinValues = []struct {
	kind                  loop.Builtin
	attribute, param, typ string
}{
	{loop.BuiltinLocalID, "thread_position_in_threadgroup", "local_id", "uint3"},
	{loop.BuiltinLocalIndex, "thread_index_in_threadgroup", "local_number", "uint"},
	{loop.BuiltinGroupID, "threadgroup_position_in_grid", "group_id", "uint3"},
	{loop.BuiltinLane, "thread_index_in_simdgroup", "simd_lane", "uint"},
	{loop.BuiltinSubgroupIndex, "simdgroup_index_in_threadgroup", "simd_number", "uint"},
}

// builtin returns the value and type of a built-in variable.
func (w *writer) builtin(name string) (value, typ string) {
	kind, i := loop.BuiltinOf(name)
	switch kind {
	case loop.BuiltinScalar:
		if w.k.Scalars[i].IsBool() {
			return fmt.Sprintf("run.scalar%d != 0u", i), "bool"
		}
		return fmt.Sprintf("run.scalar%d", i), w.names.of(w.k.Scalars[i])
	case loop.BuiltinCounter:
		return fmt.Sprintf("repeat[%d]", i), "int"
	}
	for _, v := range builtinValues {
		if v.kind == kind && v.typ == "uint" {
			return "int(" + v.param + ")", "int"
		}
		if v.kind == kind && kind == loop.BuiltinGroupID && w.tiled {
			return fmt.Sprintf("int(%s.%s + first_group[%d])", v.param, "xyz"[i:i+1], i), "int"
		}
		if v.kind == kind {
			return "int(" + v.param + "." + "xyz"[i:i+1] + ")", "int"
		}
	}
	return name, "int"
}
