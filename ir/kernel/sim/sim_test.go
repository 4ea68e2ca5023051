package sim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel"
	"github.com/rlx-go/rlx/ir/kernel/kerneltest"
	"github.com/rlx-go/rlx/ir/kernel/sim"
	"github.com/rlx-go/rlx/ir/scalar"
)

// launch returns a launch of the case with a buffer for each array.
func launch(c *kerneltest.Case) sim.Launch {
	l := sim.Launch{Scalars: c.Scalars, Counters: c.Counters}
	for i, a := range c.Storage() {
		data := kerneltest.Encode(a.DType, c.Arrays[i])
		l.Arrays = append(l.Arrays, sim.Binding{Buffer: data, Bytes: len(data)})
	}
	return l
}

func results(c *kerneltest.Case, l sim.Launch) [][]float64 {
	var out [][]float64
	for i, a := range c.Storage() {
		out = append(out, kerneltest.Decode(a.DType, l.Arrays[i].Buffer))
	}
	return out
}

func TestRunEqualsPlainLoops(t *testing.T) {
	for _, c := range kerneltest.Cases() {
		t.Run(c.Kernel.Name, func(t *testing.T) {
			l := launch(c)
			if err := sim.Run(c.Kernel, l, sim.Options{ZeroDivisors: true}); err != nil {
				t.Fatal(err)
			}
			if err := c.Compare(results(c, l)); err != nil {
				t.Error(err)
			}
		})
	}
}
