package plan_test

import (
	"errors"
	"fmt"

	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/ir/plan/plantest"
)

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
	// damaged plan: at byte 8: the file is 100 bytes long but says 6232
	// true
}

func ExampleValidate() {
	p := plantest.Linear()
	p.Entries[0].Steps[0].(*plan.Dispatch).Bindings[1].Offset = 16
	fmt.Println(plan.Validate(p))
	// Output:
	// invalid plan: entry 0 (init), step 0 (init), binding 1: offset 16 is not a multiple of 256
}
