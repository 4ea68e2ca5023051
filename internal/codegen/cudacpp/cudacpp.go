// Package cudacpp is the code generator for CUDA. Its input is a kernel of the loop IR,
// its output CUDA C++ without headers, for NVRTC. Package clike writes the body of the
// kernel; this package adds the dialect (dialect.go), asynchronous copies and MMA
// (async.go, warps.go) and warp specialisation (roles.go). Read this file first.
//
// The parameters of a kernel are pointers to its storage arrays, in order; if it
// reads scalars of the run, a pointer to a struct of them, see [Scalars]; one int for
// the counter of each enclosing repeat; and its CUDA tensor maps.
// Scalars are in memory so that a CUDA graph can be replayed with other values. A Bool is
// an unsigned int in memory.
//
// Arithmetic is that of CUDA: a product and a sum may be contracted to an FMA, unless the
// kernel is uncontracted. Signed integers wrap: operations that may overflow, by range
// analysis, are computed unsigned, since C++ leaves overflow undefined. Index arithmetic is
// proven not to overflow and stays signed.
package cudacpp

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/codegen/clike"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// warp is the subgroup size of all CUDA devices.
const warp = 32

// residentThreads is the number of threads that must fit on a multiprocessor: each then
// has at most 128 of its 65,536 registers. Without this bound the compiler gives some
// kernels slightly more registers, which halves their occupancy.
const residentThreads = 512

// Printer prints CUDA C++; it is the printer that package plan takes.
type Printer struct {
	// Warps selects mma.sync of warps, for compute capability 8.0 and later, instead of
	// wgmma of warp groups, which only 9.0 has.
	WarpMMA bool
	// Waits has kernels wait for the kernel before them where they were launched before it ended
	// (programmatic dependent launch, compute capability 9.0).
	Waits bool
}

// Dialect returns dtype.CUDA.
func (Printer) Dialect() dtype.Dialect { return dtype.CUDA }

// Print returns the CUDA C++ source of a kernel. The error is a *loop.CheckError, or a
// *clike.UnsupportedError for unsupported types, for kernels that do not support subgroups
// of 32, and for MMA of warps in workgroups of several dimensions.
func (p Printer) Print(k *loop.Kernel) (string, error) {
	if !p.WarpMMA {
		return p.printBy(k, &dialect)
	}
	if k.HasMma() && k.Workgroup[0] != k.Threads() {
		return "", &clike.UnsupportedError{Dialect: dialect.Name, Kernel: k.Name, What: "multiply-adds of warps that are not numbered along x"}
	}
	d := dialect
	d.Async = &warpAsync
	return p.printBy(k, &d)
}

// Prefix is prepended to a kernel's name to form that of its function.
const Prefix = "k_"

// EntryPoint returns the name of a kernel's function.
func EntryPoint(k *loop.Kernel) string { return Prefix + k.Name }

// Options returns the NVRTC options for an architecture such as "sm_90".
func Options(architecture string) []string {
	return []string{"--gpu-architecture=" + architecture, "--std=c++17"}
}

// Print is [Printer.Print] with wgmma.
func Print(k *loop.Kernel) (string, error) { return Printer{}.Print(k) }

func (by Printer) printBy(k *loop.Kernel, dialect *clike.Dialect) (string, error) {
	if by.Waits {
		d := *dialect
		d.KernelBarrier = kernelBarrier
		dialect = &d
	}
	if k.Uncontracted {
		d := *dialect
		d.Form = uncontracted
		dialect = &d
	}
	src, err := clike.Write(k, dialect)
	if err != nil {
		return "", err
	}
	unsupported := func(format string, args ...any) (string, error) {
		return "", &clike.UnsupportedError{Dialect: dialect.Name, Kernel: k.Name, What: fmt.Sprintf(format, args...)}
	}
	for i, t := range k.Scalars {
		if t != dtype.Invalid && t.On(dialect.Target) == dtype.Unsupported {
			return unsupported("scalar %d of type %s", i, t)
		}
	}
	if s := k.Subgroup; s != [2]int{} && (s[0] > warp || s[1] < warp) {
		return unsupported("subgroups of %d to %d threads", s[0], s[1])
	}
	p := printer{src: src, k: src.Kernel, tiles: tilesOf(src.Kernel), waits: by.Waits}
	for i := range p.tiles {
		if a := p.k.Arrays[i]; a.Bytes()%loop.TileAlign != 0 {
			return unsupported("tiles in an array of %d bytes", a.Bytes())
		}
	}
	p.line("// %s", k.Name)
	p.types()
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
	// tiles are the arrays that MMA reads.
	tiles map[int]bool
	waits bool
	sb    strings.Builder
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(&p.sb, format+"\n", args...)
}

// types declares short names for long types, and the struct of scalars.
func (p *printer) types() {
	uses := func(t dtype.DType) bool {
		return slices.Contains(p.src.Types, t) || slices.Contains(p.k.Scalars, t)
	}
	if uses(dtype.I64) {
		p.line("typedef long long i64;")
	}
	if uses(dtype.U64) {
		p.line("typedef unsigned long long u64;")
	}
	if len(p.k.TensorMaps) > 0 {
		p.line("%s", tensorMap)
	}
	if len(p.k.Mbarriers) > 0 {
		p.line("%s", beginBarrier)
	}
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

func (p *printer) entry() {
	var params []string
	storage := 0
	for i, a := range p.k.Arrays {
		switch {
		case a.Space != loop.Storage:
			continue
		case a.Access == loop.Read:
			params = append(params, fmt.Sprintf("const %s *%s %s", memoryType(a), p.unwritten(storage), p.src.Names[i]))
		default:
			params = append(params, fmt.Sprintf("%s *%s", memoryType(a), p.src.Names[i]))
		}
		storage++
	}
	if len(p.k.Scalars) > 0 {
		params = append(params, "const Run *__restrict__ run")
	}
	for d := range p.k.Counters {
		params = append(params, fmt.Sprintf("int repeat%d", d))
	}
	for i := range p.k.TensorMaps {
		params = append(params, "const __grid_constant__ TensorMap "+tensorMapName(i))
	}
	threads := p.k.Threads()
	resident := max(1, residentThreads/threads)
	switch {
	case p.k.Resident > 0:
		resident = p.k.Resident
	case len(p.tiles) > 0:
		resident = 1 // accumulators take most of the registers
	}
	p.line("\nextern \"C\" __global__ void __launch_bounds__(%d, %d) %s(", threads, resident, EntryPoint(p.k))
	p.line("    %s) {", strings.Join(params, ",\n    "))
	if p.waits {
		p.line("%s", kernelsBegin)
	}
	p.shared()
	p.beginBarriers()
	for i, a := range p.k.Arrays {
		if a.Space == loop.Private {
			p.line("  %s %s[%d];", memoryType(a), p.src.Names[i], a.Len)
		}
	}
	slices.Sort(p.src.Builtins)
	for _, name := range p.src.Builtins {
		value, typ := p.builtin(name)
		p.line("  const %s %s = %s;", typ, name, value)
	}
	if p.waits && !p.src.KernelBarrier {
		p.line("%s", kernelBarrier)
	}
	p.sb.WriteString(p.src.Body)
	p.line("}")
}

// unwritten returns the qualifier of a pointer to an array that the kernel does not write. The compiler
// moves loads by restricted pointers before a wait for other kernels, as it takes their memory for
// unwritten, so that a kernel which waits has a macro instead, empty without the option of [Constant].
func (p *printer) unwritten(storage int) string {
	if !p.waits {
		return "__restrict__"
	}
	name := constantName(storage)
	p.line("#ifndef %s\n#define %[1]s\n#endif", name)
	return name
}

func constantName(storage int) string { return fmt.Sprintf("CONSTANT%d", storage) }

// Constant returns the compiler's option for a kernel whose storage array of the given number, among
// those of the kernel, is not written while the kernel or one that it waits for runs.
func Constant(storage int) string { return "-D" + constantName(storage) + "=__restrict__" }

// Programmatic dependent launch, where kernels are launched so: the kernel after this one may take the processors
// that are free, and this one waits until what those before it write is visible.
const (
	kernelsBegin = `#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif`
	kernelBarrier = `#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif`
)

// Waits reports whether the kernel of a source waits for those before it: see [Printer].
func Waits(source string) bool { return strings.Contains(source, "griddepcontrol.wait") }

// builtin returns the value and type of a built-in variable.
func (p *printer) builtin(name string) (value, typ string) {
	kind, i := loop.BuiltinOf(name)
	w := p.k.Workgroup
	index := fmt.Sprintf("int(threadIdx.x + %du * (threadIdx.y + %du * threadIdx.z))", w[0], w[1])
	if w[1] == 1 && w[2] == 1 {
		index = "int(threadIdx.x)"
	}
	switch kind {
	case loop.BuiltinLocalID:
		return "int(threadIdx." + "xyz"[i:i+1] + ")", "int"
	case loop.BuiltinGroupID:
		return "int(blockIdx." + "xyz"[i:i+1] + ")", "int"
	case loop.BuiltinLocalIndex:
		return index, "int"
	case loop.BuiltinLane:
		return fmt.Sprintf("%s %% %d", index, warp), "int"
	case loop.BuiltinScalar:
		if p.k.Scalars[i].IsBool() {
			return fmt.Sprintf("run->scalar%d != 0u", i), "bool"
		}
		return fmt.Sprintf("run->scalar%d", i), typeNames[p.k.Scalars[i]]
	}
	return fmt.Sprintf("repeat%d", i), "int"
}

// Scalars returns the bytes of a kernel's struct of scalars, each aligned to its
// size. It needs a value for each scalar that k declares.
func Scalars(k *loop.Kernel, scalars []scalar.Value) []byte {
	var out []byte
	add := func(bits uint64, size int) {
		out = append(out, make([]byte, -len(out)&(size-1))...)
		out = append(out, binary.LittleEndian.AppendUint64(nil, bits)[:size]...)
	}
	for i, t := range k.Scalars {
		switch {
		case t == dtype.Invalid:
			add(0, 4)
		case t.IsFloat():
			add(t.FloatBits(scalars[i].F), t.Size())
		default:
			add(uint64(scalars[i].I), loop.DeviceSize(t))
		}
	}
	return out
}
