package rlx

import (
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
)

// Precision says in which type the products of a program are computed: matrix
// products, convolutions and attention. All else, and what is kept from run to
// run, has the types that the graphs say.
type Precision uint8

// The precisions.
const (
	// AsWritten computes products in the type of their operands.
	AsWritten Precision = iota
	// MixedBF16 computes products of f32 in bf16, with sums in f32.
	MixedBF16
	// MixedF16 computes products of f32 in f16, with sums in f32. Its numbers end
	// at 65504 and thin out below 6·10⁻⁵, so that a training step wants a loss
	// scale, which [Session.Train] gives it.
	MixedF16
	// TF32 computes products of f32 from 10 of the 23 bits of fraction of their
	// factors, with sums in f32, on devices that are faster so: NVIDIA's of compute
	// capability 8.0 and later. Others compute them as written.
	TF32
)

// half returns the element type of products, false where it is not changed. The
// error is of kind [ir.ErrAttr] for a precision that there is not.
func (p Precision) half() (ir.DType, bool, error) {
	switch p {
	case AsWritten, TF32:
		return ir.F32, false, nil
	case MixedBF16:
		return ir.BF16, true, nil
	case MixedF16:
		return ir.F16, true, nil
	}
	return ir.F32, false, ir.Attrf("there is no precision %d", p)
}

// apply returns the module with its products in this precision.
func (p Precision) apply(m *ir.Module) (*ir.Module, error) {
	half, changed, err := p.half()
	if err != nil || !changed {
		return m, err
	}
	entries := make([]ir.Entry, len(m.Entries))
	for i, e := range m.Entries {
		g, err := passes.Mixed(e.Graph, half)
		if err != nil {
			return nil, err
		}
		entries[i] = ir.Entry{Name: e.Name, Graph: g}
	}
	return ir.NewModule(m.Name, entries...)
}
