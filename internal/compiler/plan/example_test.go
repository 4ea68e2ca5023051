package plan_test

import (
	"errors"
	"fmt"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func ExampleCompile() {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(32), ir.N(8))
		w, bias := b.Param("w", ir.F32, ir.N(8), ir.N(1)), b.Param("bias", ir.F32, ir.N(1))
		d := ops.Sub(b, ops.Linear(b, x, w, bias), b.Input("y", ir.F32, ir.N(32), ir.N(1)))
		b.Output("loss", ops.Mean(b, ops.Mul(b, d, d)))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	step, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := ir.NewModule("regression", ir.Entry{Name: "step", Graph: step}, ir.Entry{Name: "eval", Graph: loss})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range p.Entries {
		fmt.Printf("%s: %d dispatches\n", e.Name, len(e.Steps))
	}
	for _, s := range p.Slots {
		fmt.Println(s.Role, s.Name, s.DType, s.Dims)
	}
	// Output:
	// step: 5 dispatches
	// eval: 2 dispatches
	// scalar lr f32 []
	// input x f32 [32 8]
	// param w f32 [8 1]
	// param bias f32 [1]
	// input y f32 [32 1]
	// state optim/step i32 []
	// output loss f32 []
	// input x f32 [32 8]
	// input y f32 [32 1]
	// output loss f32 []
}

func ExampleDecode() {
	file, err := plan.Encode(plantest.Linear())
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := plan.Decode(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range p.Entries {
		fmt.Println(e.Name)
	}

	_, err = plan.Decode(file[:100])
	fmt.Println(err)
	fmt.Println(errors.Is(err, plan.ErrDamaged))
	// Output:
	// init
	// step
	// predict
	// fold
	// pick
	// damaged plan: at byte 8: the file is 100 bytes long but says 6232 (rule 1)
	// true
}

func ExampleValidate() {
	p := plantest.Linear()
	p.Entries[0].Steps[0].(*plan.Dispatch).Bindings[1].Offset = 16
	fmt.Println(plan.Validate(p))
	// Output:
	// invalid plan: entry 0 (init), step 0 (init), binding 1: offset 16 is not a multiple of 256 (rule 14)
}
