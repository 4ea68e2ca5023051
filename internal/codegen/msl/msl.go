// Package msl is the code generator for Metal. Its input is a kernel of the loop IR, its
// output the Metal Shading Language, in the common subset of versions 2.3 (macOS 11) to
// 3.1; only the type bfloat needs 3.1. Package clike writes the body of the kernel; this
// package adds the dialect (dialect.go, types.go). Read this file first.
//
// The parameters of a kernel are its storage arrays, in order, as buffers 0, 1, …;
// then, if it reads scalars of the run, a struct of them, each aligned to its size; then, if it
// reads the counters of enclosing repeats, an array of int with them, the outermost
// first. A Bool is a uint in memory, a BF16 its bits
// or, with bfloat, a bfloat.
//
// Metal's mathematical functions are fast and inaccurate by default, and its compiler may
// assume that no infinity or NaN occurs. So they are not used: the code consists of
// operations that are exact or, like division and precise::sqrt, correctly rounded
// ([scalar.Portable]). A product and a sum may be contracted to an FMA.
// Signed integers wrap: operations that may overflow, by range analysis, are
// computed unsigned, since C++ leaves overflow undefined.
//
// Apple's compiler has not compiled the output yet. Clang compiles it as C++ for OpenCL,
// which has the same address spaces, and it computes the right results on a CPU (package
// software).
package msl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// simdgroup is the size of a SIMD-group on all of Apple's GPUs.
const simdgroup = 32

// StorageBuffers is the maximum number of storage arrays of a kernel: of the 31 entries of
// the buffer argument table (Metal Feature Set Tables), two are reserved for scalars and
// counters, and two for the tiles of a grid ([Printer].Cut).
const StorageBuffers = 31 - 4

// Printer prints MSL; it is the printer that package plan takes.
type Printer struct {
	// BFloat prints bf16 as the type bfloat, which needs MSL 3.1.
	BFloat bool
	// Cut, if it is set, reports whether a kernel's grid is launched in tiles. The kernel
	// then has two more buffers after the others: three uint, the first workgroup of the
	// tile, and one uint, 0 if the kernel must do nothing.
	Tiled func(*loop.Kernel) bool
}

// Dialect returns dtype.MSL.
func (Printer) Dialect() dtype.Dialect { return dtype.MSL }

// Prefix is prepended to a kernel's name to form that of its function.
const Prefix = "k_"

// EntryPoint returns the name of a kernel's function.
func EntryPoint(k *loop.Kernel) string { return Prefix + k.Name }

// Print returns the MSL source of a kernel. The error is a *loop.CheckError, or a
// *clike.UnsupportedError for unsupported types, for more than [StorageBuffers] arrays,
// for kernels that do not support subgroups of 32, and without BFloat for fragments of
// bf16.
func (p Printer) Print(k *loop.Kernel) (string, error) {
	src, err := clike.Write(k, dialects[p.BFloat])
	if err != nil {
		return "", err
	}
	w := writer{src: src, k: src.Kernel, names: types{bfloat: p.BFloat}, tiled: p.Tiled != nil && p.Tiled(k)}
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

// writer writes the declarations around a kernel's body.
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

// missing returns a feature of the kernel that Metal lacks, or "".
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

// buffer returns a parameter at the next index of the buffer argument table.
func (w *writer) buffer(declaration string) string {
	w.buffers++
	return fmt.Sprintf("%s [[buffer(%d)]]", declaration, w.buffers-1)
}

// parameters returns the kernel's buffers and the built-in values that its body uses.
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
