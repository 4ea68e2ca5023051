package rlx

import (
	"context"
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// trainedParams are the names of the parameters that a training step changes; nil if they are unknown.
type trainedParams map[string]bool

// trainedBy returns the parameters that a step changes.
func trainedBy(step *ir.Graph) trainedParams {
	out := trainedParams{}
	for _, o := range step.Outputs() {
		if p, ok := step.Port(o.Name); ok && o.State && p.Kind == ir.ParamPort {
			out[o.Name] = true
		}
	}
	return out
}

// notFinite returns the first of the parameters, by name, that has an element that is NaN or infinite, "" if there is
// none. One that is not trained may have such elements: a mask.
func (p trainedParams) notFinite(slots []native.Slot, values map[string]Tensor) string {
	first := ""
	for _, s := range slots {
		if s.Role != native.Param || p != nil && !p[s.Name] || first != "" && s.Name > first {
			continue
		}
		if x, ok := values[s.Name]; ok && !isFinite(x) {
			first = s.Name
		}
	}
	return first
}

// checkValues returns an error if StopOnNaN is set and a trained parameter is not finite: the gradient of a finite loss
// can be NaN, and the next loss comes only after the values are written.
func (t *Trainer) checkValues(values map[string]Tensor) error {
	if !t.stopOnNaN {
		return nil
	}
	if name := t.trained.notFinite(t.program.Persistent(), values); name != "" {
		return fmt.Errorf("step %d: %w: parameter %q is not finite after it", t.steps-1, ErrDiverged, name)
	}
	return nil
}

// exponents has the bits of the exponent in the last two bytes of a float, the higher byte first.
var exponents = map[ir.DType][2]byte{ir.F16: {0x7c, 0}, ir.BF16: {0x7f, 0x80}, ir.F32: {0x7f, 0x80}, ir.F64: {0x7f, 0xf0}}

// isFinite reports whether no element of a tensor is NaN or infinite: has an exponent of ones alone.
func isFinite(x Tensor) bool {
	bits, ok := exponents[x.DType]
	if !ok {
		return true
	}
	size := x.DType.Size()
	for i := size - 1; i < len(x.Data); i += size {
		if x.Data[i]&bits[0] == bits[0] && x.Data[i-1]&bits[1] == bits[1] {
			return false
		}
	}
	return true
}

// finite returns the whole values for a checkpoint, and the first trained parameter that is not finite, if there is one.
// All ranks call it, and get the same.
func (f *fit) finite(ctx context.Context) (values map[string]Tensor, broken string, err error) {
	t := f.t
	if values, err = t.Whole(ctx); err == nil && !t.stopOnNaN { // with which Whole has looked
		broken = t.trained.notFinite(t.program.Persistent(), values)
	}
	return values, broken, err
}
