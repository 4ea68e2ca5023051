package plan_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
)

// looping is the plan of package plantest with its steps in a loop of unknown length.
func looping() *plan.Plan {
	p := plantest.Linear()
	e := &p.Entries[0]
	e.Steps = []plan.Step{&plan.While{Condition: plan.GridAddress{Buffer: 1, Offset: 4}, Steps: e.Steps}}
	return p
}

func TestUnboundedLoopsInFiles(t *testing.T) {
	want := looping()
	file, err := plan.Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := plan.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Entries, want.Entries) {
		t.Errorf("the entries are %+v, not %+v", got.Entries, want.Entries)
	}
	if n, inside := got.Entries[0].Dispatches(), (&plan.Entry{Steps: got.Entries[0].Steps[0].(*plan.While).Steps}).Dispatches(); n != inside {
		t.Errorf("%d dispatches, not the %d of a round", n, inside)
	}
	var bad *plan.FormatError
	outside := looping()
	outside.Entries[0].Steps[0].(*plan.While).Condition.Offset = outside.Buffers[1].Bytes
	if err = plan.Validate(outside); !errors.As(err, &bad) || bad.Rule != 14 {
		t.Errorf("a loop that goes by a word outside of its buffer: %v", err)
	}
}
