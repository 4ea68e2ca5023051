// Package msl prints kernels of the loop IR in the Metal Shading Language, in what
// versions 2.3 (macOS 11) to 3.1 have in common; fragments of bf16 are of 3.1.
//
// The parameters of a kernel are its storage arrays, in order, as buffers 0, 1, …;
// then, if it reads scalars of the run, a struct of them, see [Scalars]; then, if it
// reads the counts of enclosing repeats, an array of int with them, the outermost
// first. A Bool is a uint in memory, a BF16 its bits.
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

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/clike"
	"github.com/rlx-go/rlx/ir/kernel/loop"
)

// simdgroup is the number of threads of a SIMD-group on all of Apple's GPUs.
const simdgroup = 32

// StorageBuffers is how many storage arrays a kernel may have: of the 31 entries of
// the buffer argument table (Metal Feature Set Tables), two are kept for scalars and
// counts.
const StorageBuffers = 31 - 2

// Printer prints MSL; it is the printer that package plan takes.
type Printer struct{}

// Dialect returns dtype.MSL.
func (Printer) Dialect() dtype.Dialect { return dtype.MSL }

// Print returns the MSL source of a kernel, see the function [Print].
func (Printer) Print(k *loop.Kernel) (string, error) { return Print(k) }

// Prefix comes before a kernel's name in that of its function.
const Prefix = "k_"

// EntryPoint returns the name of a kernel's function.
func EntryPoint(k *loop.Kernel) string { return Prefix + k.Name }

// Print returns the MSL source of a kernel. The error is a *loop.CheckError, or a
// *clike.UnsupportedError for types that the support table does not promise, for
// more than [StorageBuffers] arrays, and for kernels that are not right for subgroups of 32.
func Print(k *loop.Kernel) (string, error) {
	src, err := clike.Write(k, &dialect)
	if err != nil {
		return "", err
	}
	p := printer{src: src, k: src.Kernel}
	if what := p.missing(); what != "" {
		return "", &clike.UnsupportedError{Dialect: dialect.Name, Kernel: k.Name, What: what}
	}
	p.line("// %s", k.Name)
	p.line("#include <metal_stdlib>\nusing namespace metal;")
	p.scalars()
	for _, f := range src.Functions {
		p.line("\n%s", strings.TrimSuffix(f, "\n"))
	}
	p.entry()
	return p.sb.String(), nil
}

// printer puts what MSL wants around a kernel's body.
type printer struct {
	src     *clike.Source
	k       *loop.Kernel
	buffers int // so far
	sb      strings.Builder
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(&p.sb, format+"\n", args...)
}

// missing returns what the kernel needs that Metal lacks, "" where it has all.
func (p *printer) missing() string {
	for i, t := range p.k.Scalars {
		if t != dtype.Invalid && t.On(dialect.Target) == dtype.Unsupported {
			return fmt.Sprintf("scalar %d of type %s", i, t)
		}
	}
	if s := p.k.Subgroup; s != [2]int{} && (s[0] > simdgroup || s[1] < simdgroup) {
		return fmt.Sprintf("subgroups of %d to %d threads", s[0], s[1])
	}
	storage := slices.DeleteFunc(slices.Clone(p.k.Arrays), func(a loop.Array) bool { return a.Space != loop.Storage })
	if len(storage) > StorageBuffers {
		return fmt.Sprintf("%d storage arrays in a kernel", len(storage))
	}
	return ""
}

// scalars declares the struct of scalars.
func (p *printer) scalars() {
	if len(p.k.Scalars) == 0 {
		return
	}
	p.line("\nstruct Run {")
	for i, t := range p.k.Scalars {
		if t == dtype.Invalid {
			t = dtype.U32
		}
		p.line("  %s scalar%d;", elementType(t), i)
	}
	p.line("};")
}

// buffer returns a parameter in the next place of the buffer argument table.
func (p *printer) buffer(declaration string) string {
	p.buffers++
	return fmt.Sprintf("%s [[buffer(%d)]]", declaration, p.buffers-1)
}

// parameters are the kernel's buffers, and the built-in values that its body uses.
func (p *printer) parameters() []string {
	var params []string
	for i, a := range p.k.Arrays {
		switch {
		case a.Space != loop.Storage:
		case a.Access == loop.Read:
			params = append(params, p.buffer("device const "+memoryType(a)+" *"+p.src.Names[i]))
		default:
			params = append(params, p.buffer("device "+memoryType(a)+" *"+p.src.Names[i]))
		}
	}
	if len(p.k.Scalars) > 0 {
		params = append(params, p.buffer("constant Run &run"))
	}
	if p.k.Counters > 0 {
		params = append(params, p.buffer("constant int *repeat"))
	}
	for _, v := range builtinValues {
		if p.src.Uses(v.kind) {
			params = append(params, fmt.Sprintf("%s %s [[%s]]", v.typ, v.param, v.attribute))
		}
	}
	return params
}

func (p *printer) entry() {
	p.line("\n[[max_total_threads_per_threadgroup(%d)]]", p.k.Threads())
	p.line("kernel void %s(", EntryPoint(p.k))
	p.line("    %s) {", strings.Join(p.parameters(), ",\n    "))
	for i, a := range p.k.Arrays {
		switch a.Space {
		case loop.Shared:
			p.line("  threadgroup %s %s[%d];", memoryType(a), p.src.Names[i], a.Len)
		case loop.Private:
			p.line("  %s %s[%d];", memoryType(a), p.src.Names[i], a.Len)
		}
	}
	slices.Sort(p.src.Builtins)
	for _, name := range p.src.Builtins {
		value, typ := p.builtin(name)
		p.line("  const %s %s = %s;", typ, name, value)
	}
	p.sb.WriteString(p.src.Body)
	p.line("}")
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
	{loop.BuiltinSubgroupSize, "threads_per_simdgroup", "simd_lanes", "uint"},
	{loop.BuiltinSubgroupIndex, "simdgroup_index_in_threadgroup", "simd_number", "uint"},
}

// builtin returns the value and type of a built-in variable.
func (p *printer) builtin(name string) (value, typ string) {
	kind, i := loop.BuiltinOf(name)
	switch kind {
	case loop.BuiltinScalar:
		if p.k.Scalars[i].IsBool() {
			return fmt.Sprintf("run.scalar%d != 0u", i), "bool"
		}
		return fmt.Sprintf("run.scalar%d", i), typeNames[p.k.Scalars[i]]
	case loop.BuiltinCounter:
		return fmt.Sprintf("repeat[%d]", i), "int"
	}
	for _, v := range builtinValues {
		if v.kind == kind && v.typ == "uint" {
			return "int(" + v.param + ")", "int"
		}
		if v.kind == kind {
			return "int(" + v.param + "." + "xyz"[i:i+1] + ")", "int"
		}
	}
	return name, "int"
}
