// Package cpu runs modules on the processor: the backend "cpu", which is always
// there. Importing the package registers it.
//
// Groups of a [fusion.Partition] run in turn, each on all cores: maps and
// reductions block by block through their scalar expressions, contractions
// through the matrix products of package simd, with factors used where they lie
// if they are plain matrices. All memory is set aside when a module is compiled, and a
// bound run allocates nothing.
package cpu

import (
	"context"
	"fmt"
	"runtime"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/executor/synchronous"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
)

// Name is the name of the backend.
const Name = "cpu"

// Backend returns the backend.
func Backend() native.Backend { return backend{loop.LongElements} }

func init() {
	// The name can only be taken by another package that calls itself cpu,
	// which then serves in its place.
	_ = native.Register(Backend())
}

// backend is the processor.
type backend struct {
	long int // from how many elements on positions are counted in 64 bits, see [loop.Caps]
}

func (backend) Name() string { return Name }
func (backend) Probe() error { return nil }

func (backend) Info() native.Info {
	cores := runtime.GOMAXPROCS(0)
	return native.Info{
		Description: fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, cores),
		Software:    true, Memory: native.HostMemory().Bytes, Speed: 16 * float64(cores),
	}
}

func (backend) Support(n *ir.Node) native.Support {
	for _, t := range n.Types() {
		if t.DType.On(dtype.CPU) == dtype.Unsupported || t.DType.IsPacked() {
			return native.Support{Level: native.Unsupported, Reason: fmt.Sprintf("the CPU does not compute with %s", t.DType)}
		}
	}
	switch {
	case claims(n):
		return native.Support{Level: native.Claimed}
	case n.Def().IsComposite():
		return native.Support{Level: native.Decomposed}
	}
	return native.Support{Level: native.Native}
}

func (b backend) Compile(ctx context.Context, m *ir.Module, o native.Options) (native.Program, error) {
	budget, err := o.Budget(native.HostMemory())
	var p *program
	if err == nil {
		p, err = compile(ctx, b, m, budget)
	}
	if err != nil {
		return nil, &native.Error{Backend: Name, Call: "compile", Kind: native.KindOf(err), Err: err}
	}
	return synchronous.NewProgram(p.signature(), p), nil
}

// supported returns an error for the first node that cannot run here.
func (b backend) supported(g *ir.Graph) error {
	for _, n := range g.Nodes() {
		if s := b.Support(n); s.Level == native.Unsupported {
			return n.Fail(ir.Errorf(ir.ErrUnsupported, "%s", s.Reason))
		}
		for _, sub := range n.Subgraphs() {
			if err := b.supported(sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstCode is the status code of the first check of a program.
const firstCode = 1

// options let a group touch any number of tensors: there are no bindings here. A
// choice costs next to nothing; branches of a few elements are computed both to
// fuse with what is around.
func (b backend) options() fusion.Options {
	return fusion.Options{Tensors: 1 << 20, FirstCode: firstCode, Branch: 256, Long: b.long, Policy: hardware.Serial{Profile: hardware.Unknown()}}
}
