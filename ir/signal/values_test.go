package signal_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/functiontest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/signal"
)

// functions are those of the cases of ir/irtest/cases/functions.json: SciPy's and NumPy's.
func functions() map[string]functiontest.Function {
	interp := func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{signal.Interp(b, in["x"], in["xp"], in["fp"])}
	}
	all := map[string]functiontest.Function{
		"interp": interp, "interp edges": interp,
		"dct first axis": dct(0, signal.DCTOptions{}),
		"dct 1 of 2":     dct(-1, signal.DCTOptions{Type: 1, Norm: ops.FFTOrtho}),
		"dct 2 of 1":     dct(-1, signal.DCTOptions{Type: 2, Norm: ops.FFTOrtho}),
		"dct 2 of 2":     dct(-1, signal.DCTOptions{Type: 2, Norm: ops.FFTOrtho}),
		"dct 3 of 1":     dct(-1, signal.DCTOptions{Type: 3, Norm: ops.FFTOrtho}),
		"dct 3 of 2":     dct(-1, signal.DCTOptions{Type: 3, Norm: ops.FFTOrtho}),
		"dct 4 of 1":     dct(-1, signal.DCTOptions{Type: 4, Norm: ops.FFTOrtho}),
	}
	for kind := 1; kind <= 4; kind++ {
		for _, norm := range []string{ops.FFTBackward, ops.FFTOrtho, ops.FFTForward} {
			o := signal.DCTOptions{Type: kind, Norm: norm}
			all[fmt.Sprintf("dct %d %s", kind, norm)] = dct(-1, o)
			all[fmt.Sprintf("idct %d %s", kind, norm)] = func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
				return []ir.Value{signal.IDCT(b, in["x"], -1, o)}
			}
		}
	}
	return all
}

func dct(axis int, o signal.DCTOptions) functiontest.Function {
	return func(b *ir.Builder, in map[string]ir.Value) []ir.Value {
		return []ir.Value{signal.DCT(b, in["x"], axis, o)}
	}
}

func TestValuesAreThoseOfSciPyAndNumPy(t *testing.T) {
	functiontest.Run(t, "../irtest/cases/functions.json", "signal.", functions())
}
