package rlx

import (
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
)

// Precision is the precision in which a program computes matrix products, convolutions and
// attention. All other ops, and parameters and states, keep the element types of the graphs.
type Precision uint8

// The precisions. Sums are accumulated in f32.
const (
	// AsWritten computes products in the element type of their operands.
	AsWritten Precision = iota
	// MixedBF16 computes f32 products in bf16 with f32 accumulation.
	MixedBF16
	// MixedF16 computes f32 products in f16 with f32 accumulation. The largest f16 is 65504 and
	// numbers below 6·10⁻⁵ lose precision, so that training needs a loss scale; [Session.Train]
	// adds one.
	MixedF16
	// TF32 rounds the factors of f32 products to 10 bits of fraction, with f32 accumulation, on
	// NVIDIA GPUs of compute capability 8.0 or later. Other devices compute the products in f32.
	TF32
)

// half returns the element type of products and whether the precision changes it. The error is of
// kind [ir.ErrAttr] for an unknown precision.
func (p Precision) half() (ir.DType, bool, error) {
	switch p {
	case AsWritten, TF32:
		return ir.F32, false, nil
	case MixedBF16:
		return ir.BF16, true, nil
	case MixedF16:
		return ir.F16, true, nil
	}
	return ir.F32, false, ir.Attrf("unknown precision %d", p)
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
