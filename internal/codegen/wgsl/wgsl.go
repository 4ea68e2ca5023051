// Package wgsl is the code generator for WebGPU. Its input is a kernel of the loop IR,
// its output WGSL. Package clike writes the body of the kernel; this package adds the
// dialect (dialect.go). Read this file first.
//
// Bindings are explicit: group 0 holds the storage arrays, in the order of the
// kernel, group 1 the entry's uniform block (binding 0) and one counter for
// each depth of enclosing repeats (binding 1 and on). The entry point is main.
// All sizes are literals. A Bool is a u32 in memory.
//
// WGSL may evaluate a·b + c with one rounding or two, may flush subnormal
// numbers to zero, and may assume that no infinity or NaN occurs. The portable
// expansions of package scalar handle those by inspecting bits; plain arithmetic on
// infinities and NaN depends on the device.
//
// WGSL does not define which threads of a workgroup form a subgroup. A kernel with a
// fixed subgroup size requires it of the device, which then has full subgroups, and
// numbers its threads by subgroups: subgroup index · size + lane.
// That needs the features subgroups and subgroup-size-control, and the language
// extension subgroup_id, which is older than the latter.
package wgsl

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
)

// Printer prints WGSL; it is the printer that package plan takes.
type Printer struct{}

// Dialect returns dtype.WGSL.
func (Printer) Dialect() dtype.Dialect { return dtype.WGSL }

// Print returns the WGSL source of a kernel, see the function [Print].
func (Printer) Print(k *loop.Kernel) (string, error) { return Print(k) }

// Print returns the WGSL source of a kernel. The error is a *loop.CheckError,
// or a *clike.UnsupportedError for a type that WGSL lacks: 64-bit and complex
// types, and 8- and 16-bit types but f16.
func Print(k *loop.Kernel) (string, error) {
	src, err := clike.Write(k, &dialect)
	if err != nil {
		return "", err
	}
	for i, t := range k.Scalars {
		if t != dtype.Invalid && (t.On(dialect.Target) != dtype.Arithmetic || t == dtype.F16) {
			return "", &clike.UnsupportedError{Dialect: dialect.Name, Kernel: k.Name, What: format.Sprintf("scalar %d of type %s", i, t)}
		}
	}
	p := printer{src: src, k: src.Kernel}
	p.features()
	p.line("// %s", k.Name)
	p.bindings()
	p.uniforms()
	p.arrays(loop.Shared)
	for _, f := range src.Functions {
		p.line("\n%s", strings.TrimSuffix(f, "\n"))
	}
	p.entry()
	return p.sb.String(), nil
}

// printer writes the declarations around a kernel's body.
type printer struct {
	src *clike.Source
	k   *loop.Kernel
	sb  strings.Builder
}

func (p *printer) line(text string, args ...any) {
	p.sb.WriteString(format.Sprintf(text+"\n", args...))
}

// features enables the language extensions that the kernel needs.
func (p *printer) features() {
	if slices.Contains(p.src.Types, dtype.F16) {
		p.line("enable f16;")
	}
	if p.k.Subgroup != [2]int{} {
		p.line("enable subgroups;")
	}
	if p.fixedSubgroups() {
		p.line("enable subgroup_size_control;")
	}
	if p.k.HasFragments() {
		p.line("enable chromium_experimental_subgroup_matrix;")
	}
	if p.fixedSubgroups() {
		p.line("requires subgroup_id;")
	}
}

func (p *printer) bindings() {
	binding := 0
	for i, a := range p.k.Arrays {
		if a.Space != loop.Storage {
			continue
		}
		access := "read_write"
		if a.Access == loop.Read {
			access = "read"
		}
		p.line("@group(0) @binding(%d) var<storage, %s> %s: %s;", binding, access, p.src.Names[i], arrayType(a))
		binding++
	}
}

// arrays declares workgroup memory, or private memory.
func (p *printer) arrays(space loop.Space) {
	for i, a := range p.k.Arrays {
		switch {
		case a.Space != space:
		case space == loop.Shared:
			p.line("var<workgroup> %s: %s;", p.src.Names[i], arrayType(a))
		default:
			p.line("  var %s: %s;", p.src.Names[i], arrayType(a))
		}
	}
}

func arrayType(a loop.Array) string {
	elem := elementType(a.DType)
	switch {
	case a.Access == loop.Atomic && a.DType.IsFloat():
		elem = "atomic<u32>"
	case a.Access == loop.Atomic:
		elem = "atomic<" + elem + ">"
	case a.Width > 1:
		elem = vectorType(a.DType, a.Width)
	}
	if a.Len == 0 {
		return "array<" + elem + ">"
	}
	return format.Sprintf("array<%s, %d>", elem, a.Len)
}

// uniforms declares the run's scalars and counters.
func (p *printer) uniforms() {
	if len(p.k.Scalars) > 0 {
		p.line("\nstruct Run {")
		for i, t := range p.k.Scalars {
			if t == dtype.Invalid {
				t = dtype.U32
			}
			p.line("  scalar%d: %s,", i, elementType(t))
		}
		p.line("}")
		p.line("@group(1) @binding(0) var<uniform> run: Run;")
	}
	for d := range p.k.Counters {
		p.line("@group(1) @binding(%d) var<uniform> repeat%d: u32;", 1+d, d)
	}
}

// fixedSubgroups reports whether threads are numbered by subgroups of a fixed size.
func (p *printer) fixedSubgroups() bool { return p.k.Subgroups() > 0 }

// entry writes the entry point: its parameters are the built-in values that
// the body uses, as unsigned numbers.
func (p *printer) entry() {
	var params []string
	for _, v := range builtinValues {
		if p.usesParam(v.kind) {
			params = append(params, format.Sprintf("@builtin(%s) %s: %s", v.builtin, v.param, v.typ))
		}
	}
	size := format.Sprintf("%d", p.k.Workgroup[0])
	if w := p.k.Workgroup; p.fixedSubgroups() {
		size = format.Sprintf("%d) @subgroup_size(%d", p.k.Threads(), p.k.Subgroup[0])
	} else if w[1] > 1 || w[2] > 1 {
		size = format.Sprintf("%d, %d, %d", w[0], w[1], w[2])
	}
	p.line("\n@compute @workgroup_size(%s)", size)
	p.line("fn main(%s) {", strings.Join(params, ", "))
	if p.fixedSubgroups() {
		p.line("  let local_number = min(subgroup_number * %du + subgroup_lane, %du);", p.k.Subgroup[0], p.k.Threads()-1)
	}
	slices.Sort(p.src.Builtins)
	for _, name := range p.src.Builtins {
		p.line("  let %s = %s;", name, p.builtin(name))
	}
	p.arrays(loop.Private)
	p.sb.WriteString(p.src.Body)
	p.line("}")
}

// usesParam reports whether the entry point has a built-in value as a parameter.
func (p *printer) usesParam(kind loop.Builtin) bool {
	if p.fixedSubgroups() {
		switch kind {
		case loop.BuiltinLocalID, loop.BuiltinLocalIndex:
			return false
		case loop.BuiltinLane, loop.BuiltinSubgroupIndex:
			return true
		}
	}
	return p.src.Uses(kind)
}

// builtinValues are WGSL's names for the sources of built-in variables.
var builtinValues = []struct {
	kind                loop.Builtin
	builtin, param, typ string
}{
	{loop.BuiltinLocalID, "local_invocation_id", "local_id", "vec3<u32>"},
	{loop.BuiltinLocalIndex, "local_invocation_index", "local_number", "u32"},
	{loop.BuiltinGroupID, "workgroup_id", "group_id", "vec3<u32>"},
	{loop.BuiltinSubgroupIndex, "subgroup_id", "subgroup_number", "u32"},
	{loop.BuiltinLane, "subgroup_invocation_id", "subgroup_lane", "u32"},
}

// builtin returns the value of a built-in variable.
func (p *printer) builtin(name string) string {
	kind, i := loop.BuiltinOf(name)
	switch kind {
	case loop.BuiltinScalar:
		if p.k.Scalars[i].IsBool() {
			return format.Sprintf("run.scalar%d != 0u", i)
		}
		return format.Sprintf("run.scalar%d", i)
	case loop.BuiltinCounter:
		return format.Sprintf("i32(repeat%d)", i)
	case loop.BuiltinLocalID:
		if p.fixedSubgroups() {
			return p.localID(i)
		}
	}
	for _, v := range builtinValues {
		if v.kind == kind && v.typ == "u32" {
			return "i32(" + v.param + ")"
		}
		if v.kind == kind {
			return "i32(" + v.param + "." + "xyz"[i:i+1] + ")"
		}
	}
	return name
}

// localID returns a thread's local ID along an axis, if threads are numbered by subgroups.
func (p *printer) localID(axis int) string {
	before := 1
	for _, n := range p.k.Workgroup[:axis] {
		before *= n
	}
	number := "local_number"
	if before > 1 {
		number += format.Sprintf(" / %du", before)
	}
	if n := p.k.Workgroup[axis]; before*n < p.k.Threads() {
		number += format.Sprintf(" %% %du", n)
	}
	return "i32(" + number + ")"
}
