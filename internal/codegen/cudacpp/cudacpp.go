// Package cudacpp prints kernels of the loop IR as CUDA C++ that needs no
// header: NVRTC compiles it as it is.
//
// The parameters of a kernel are pointers to its storage arrays, in order; if it
// reads scalars of the run, a pointer to a struct of them, see [Scalars]; one int for
// the count of each enclosing repeat; and a tensor map of CUDA for each of its boxes. Scalars are in memory so that a
// CUDA graph of launches can be replayed with other values. A Bool is an unsigned
// int in memory.
//
// Arithmetic is that of CUDA: a product and a sum may be contracted to one
// rounding. Signed integers wrap: what may overflow, by the ranges of what it is
// made of, is computed unsigned, since C++ leaves overflow undefined. Positions
// are proven not to, and stay signed.
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

// residentThreads are to fit on a multiprocessor at once: each then has 128 of
// its 65,536 registers, no more. Left alone, the compiler gives some kernels a
// few more than that, and half the threads stay away.
const residentThreads = 512

// Printer prints CUDA C++; it is the printer that package plan takes.
type Printer struct {
	// Warps says that multiply-adds are those of warps, for compute capability 8.0 and
	// later, and not those of warp groups, which 9.0 alone has.
	Warps bool
}

// Dialect returns dtype.CUDA.
func (Printer) Dialect() dtype.Dialect { return dtype.CUDA }

// Print returns the CUDA C++ source of a kernel. The error is a *loop.CheckError, or a
// *clike.UnsupportedError for types that the support table does not promise, for kernels
// that are not right for subgroups of 32, and for multiply-adds of warps in workgroups of
// several dimensions.
func (p Printer) Print(k *loop.Kernel) (string, error) {
	if !p.Warps {
		return printBy(k, &dialect)
	}
	if k.HasMma() && k.Workgroup[0] != k.Threads() {
		return "", &clike.UnsupportedError{Dialect: dialect.Name, Kernel: k.Name, What: "multiply-adds of warps that are not numbered along x"}
	}
	d := dialect
	d.Async = &warpAsync
	return printBy(k, &d)
}

// Prefix comes before a kernel's name in that of its function.
const Prefix = "k_"

// EntryPoint returns the name of a kernel's function.
func EntryPoint(k *loop.Kernel) string { return Prefix + k.Name }

// Options returns what NVRTC is to be called with for an architecture, "sm_90".
func Options(architecture string) []string {
	return []string{"--gpu-architecture=" + architecture, "--std=c++17"}
}

// Print is [Printer.Print] with multiply-adds of warp groups.
func Print(k *loop.Kernel) (string, error) { return Printer{}.Print(k) }

func printBy(k *loop.Kernel, dialect *clike.Dialect) (string, error) {
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
	p := printer{src: src, k: src.Kernel, tiles: tilesOf(src.Kernel)}
	for i := range p.tiles {
		if a := p.k.Arrays[i]; a.Bytes()%loop.MmaBytes != 0 {
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

// printer puts what CUDA wants around a kernel's body.
type printer struct {
	src *clike.Source
	k   *loop.Kernel
	// tiles are the arrays that multiply-adds read.
	tiles map[int]bool
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
	if len(p.k.Boxes) > 0 {
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
	for i, a := range p.k.Arrays {
		switch {
		case a.Space != loop.Storage:
		case a.Access == loop.Read:
			params = append(params, fmt.Sprintf("const %s *__restrict__ %s", memoryType(a), p.src.Names[i]))
		default:
			params = append(params, fmt.Sprintf("%s *%s", memoryType(a), p.src.Names[i]))
		}
	}
	if len(p.k.Scalars) > 0 {
		params = append(params, "const Run *__restrict__ run")
	}
	for d := range p.k.Counters {
		params = append(params, fmt.Sprintf("int repeat%d", d))
	}
	for i := range p.k.Boxes {
		params = append(params, "const __grid_constant__ TensorMap "+boxName(i))
	}
	threads := p.k.Threads()
	resident := max(1, residentThreads/threads)
	switch {
	case p.k.Resident > 0:
		resident = p.k.Resident
	case len(p.tiles) > 0:
		resident = 1 // sums take most of the registers
	}
	p.line("\nextern \"C\" __global__ void __launch_bounds__(%d, %d) %s(", threads, resident, EntryPoint(p.k))
	p.line("    %s) {", strings.Join(params, ",\n    "))
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
	p.sb.WriteString(p.src.Body)
	p.line("}")
}

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
// size. There must be as many as k declares.
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
