package plan_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// kinds are the errors that a user can cause.
var kinds = []error{ir.ErrUnsupported, ir.ErrShape, ir.ErrDType, ir.ErrAttr, ir.ErrGraph, ir.ErrName, ir.ErrSymbol, ir.ErrDef}

// FuzzCompile compiles graphs that no constructor makes: samples of all ops with a number changed.
// The result is a valid plan or an error about the graph, never a panic, and never an error about
// the compiler. It makes some 200 executions a second: a compilation takes milliseconds, or a few
// hundred with the kernels of a factorisation.
func FuzzCompile(f *testing.F) {
	numbers := regexp.MustCompile(`-?\b[0-9]+\b`)
	r := rand.New(rand.NewPCG(1, 2))
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		g, _, err := irtest.SampleGraph(op, d.Samples()[0])
		if err != nil {
			f.Fatal(err)
		}
		text := g.String()
		f.Add(text)
		for range 3 {
			at := numbers.FindAllStringIndex(text, -1)
			i := at[r.IntN(len(at))]
			f.Add(text[:i[0]] + []string{"0", "-1", "1", "2", "65536", "2147483648"}[r.IntN(6)] + text[i[1]:])
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ir.Parse(text)
		if err != nil || len(g.Outputs()) == 0 {
			return
		}
		m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
		if err != nil {
			if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) || strings.Contains(err.Error(), "runtime error") {
				t.Fatalf("%v\n%s", err, text)
			}
			return
		}
		if err := plan.Validate(p); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}
