package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/ir/plan/plantest"
)

// first returns the first dispatch of entry i.
func first(p *plan.Plan, i int) *plan.Dispatch { return p.Entries[i].Steps[0].(*plan.Dispatch) }

func named(p *plan.Plan, name string) *plan.Slot {
	for i := range p.Slots {
		if p.Slots[i].Name == name {
			return &p.Slots[i]
		}
	}
	return nil
}

func TestValidateRefuses(t *testing.T) {
	const (
		entryInit = iota
		entryStep
		entryPredict
		entryFold
	)
	for _, c := range []struct {
		what  string
		spoil func(p *plan.Plan)
		text  string
	}{
		{"a buffer of an odd size", func(p *plan.Plan) { p.Buffers[0].Bytes = 300 }, "multiple of 256"},
		{"a buffer over the limit", func(p *plan.Plan) { p.Buffers[3].Bytes = 512 << 20 }, "over the limit"},
		{"a buffer of no kind", func(p *plan.Plan) { p.Buffers[3].Kind = 99 }, "kind is unknown"},
		{"a slot outside its buffer", func(p *plan.Plan) { named(p, "x").Offset = 1000 }, "outside buffer"},
		{"a slot in no buffer", func(p *plan.Plan) { named(p, "x").Buffer = 9 }, "no buffer 9"},
		{"an input among the states", func(p *plan.Plan) { named(p, "x").Buffer = 2 }, "cannot lie"},
		{"a size that does not fit the shape", func(p *plan.Plan) { named(p, "x").Dims = []int{4, 4} }, "do not fit"},
		{"a negative dimension", func(p *plan.Plan) { named(p, "x").Dims = []int{-4, 3} }, "dimension"},
		{"a product that overflows", func(p *plan.Plan) { named(p, "x").Dims = []int{1 << 30, 1 << 30, 1 << 30} }, "overflows"},
		{"two states in one place", func(p *plan.Plan) { named(p, "count").Offset = 256 }, "overlaps"},
		{"two states of one name", func(p *plan.Plan) { named(p, "count").Name = "w" }, "this name"},
		{"bounds on floats", func(p *plan.Plan) { named(p, "x").Checked = true }, "bounds"},
		{"a scalar with a shape", func(p *plan.Plan) { s := named(p, "rate"); s.Dims, s.Bytes = []int{2}, 8 }, "scalar"},
		{"a scalar of 64 bits", func(p *plan.Plan) { s := named(p, "rate"); s.DType, s.Bytes = dtype.F64, 8 }, "scalar"},
		{"a scalar outside the row", func(p *plan.Plan) { named(p, "rate").Offset = 4 }, "outside the row"},
		{"a constant over an input", func(p *plan.Plan) { p.Constants[0].Buffer = 1 }, "buffer for input"},
		{"a constant of three bytes", func(p *plan.Plan) { p.Constants[0].Data = make([]byte, 3) }, "multiple of 4"},
		{"a kernel with a bad name", func(p *plan.Plan) { p.Kernels[0].Name = "A b" }, "name"},
		{"a kernel with too many threads", func(p *plan.Plan) { p.Kernels[0].Workgroup = [3]int{32, 16, 1} }, "512 threads"},
		{"a kernel with a long workgroup", func(p *plan.Plan) { p.Kernels[0].Workgroup = [3]int{1, 1, 65} }, "workgroup"},
		{"a kernel with too much memory", func(p *plan.Plan) { p.Kernels[0].SharedBytes = 1 << 20 }, "workgroup memory"},
		{"a kernel with nine arrays", func(p *plan.Plan) { p.Kernels[0].Storage = make([]kernel.Access, 9) }, "storage arrays"},
		{"an unknown access", func(p *plan.Plan) { p.Kernels[0].Storage[0] = 9 }, "access"},
		{"a dispatch of no kernel", func(p *plan.Plan) { first(p, entryStep).Kernel = 99 }, "no kernel 99"},
		{"a dispatch of nothing", func(p *plan.Plan) { first(p, entryStep).Groups[1] = 0 }, "workgroups"},
		{"a dispatch over the limit", func(p *plan.Plan) { first(p, entryStep).Groups[1] = 65536 }, "workgroups"},
		{"a missing binding", func(p *plan.Plan) { d := first(p, entryStep); d.Bindings = d.Bindings[1:] }, "4 bindings for 5"},
		{"an empty window", func(p *plan.Plan) { first(p, entryStep).Bindings[0].Bytes = 0 }, "empty"},
		{"a window off the grid", func(p *plan.Plan) { first(p, entryStep).Bindings[0].Offset = 16 }, "multiple of 256"},
		{"a window outside", func(p *plan.Plan) { first(p, entryStep).Bindings[0].Bytes = 2048 }, "outside buffer"},
		{"a write to a constant", func(p *plan.Plan) { first(p, entryInit).Bindings[1].Buffer = 0 }, "a write to"},
		{"reading and writing one buffer", func(p *plan.Plan) {
			d := first(p, entryPredict)
			d.Bindings[1].Buffer = 3
		}, "both read-only and writable"},
		{"writing one place twice", func(p *plan.Plan) {
			d := p.Entries[entryStep].Steps[1].(*plan.Dispatch)
			d.Bindings[2].Offset = 256
		}, "overlap"},
		{"scalars the entry has not", func(p *plan.Plan) { first(p, entryPredict).Kernel = 4 }, "1 storage arrays"},
		{"scalars beyond the entry's", func(p *plan.Plan) { p.Kernels[1].ScalarBytes = 8 }, "8 bytes of scalars"},
		{"a counter outside a repeat", func(p *plan.Plan) { p.Kernels[0].Counters = 1 }, "1 counters inside 0"},
		{"a repeat of zero", func(p *plan.Plan) { p.Entries[entryFold].Steps[1].(*plan.Repeat).Count = 0 }, "a count of 0"},
		{"endless work", func(p *plan.Plan) {
			r := p.Entries[entryFold].Steps[1].(*plan.Repeat)
			r.Count, r.Steps[0].(*plan.Repeat).Count = 65536, 65536
		}, "dispatches"},
		{"endless idleness", func(p *plan.Plan) {
			p.Entries[entryFold].Steps = []plan.Step{&plan.Repeat{Count: 65536, Steps: []plan.Step{&plan.Repeat{Count: 65536}}}}
		}, "dispatches"},
		{"repeats too deep", func(p *plan.Plan) {
			for range plan.MaxCounters {
				p.Entries[entryFold].Steps = []plan.Step{&plan.Repeat{Count: 1, Steps: p.Entries[entryFold].Steps}}
			}
		}, "nested"},
		{"a copy within a buffer", func(p *plan.Plan) { p.Entries[entryFold].Steps[2].(*plan.Copy).Dst = 3 }, "within one buffer"},
		{"a copy into an input", func(p *plan.Plan) { p.Entries[entryFold].Steps[2].(*plan.Copy).Dst = 1 }, "copy into"},
		{"a copy of nothing", func(p *plan.Plan) { p.Entries[entryFold].Steps[2].(*plan.Copy).Bytes = 0 }, "of nothing"},
		{"no step", func(p *plan.Plan) { p.Entries[entryFold].Steps[0] = nil }, "missing"},
		{"two entries of one name", func(p *plan.Plan) { p.Entries[0].Name = "step" }, "twice"},
		{"an output as an input", func(p *plan.Plan) { p.Entries[entryStep].Inputs[0] = p.Entries[entryStep].Outputs[0] }, "wrong list"},
		{"an input given twice", func(p *plan.Plan) { p.Entries[entryStep].Inputs[1] = p.Entries[entryStep].Inputs[0] }, "twice"},
		{"an unknown slot", func(p *plan.Plan) { p.Entries[entryStep].Inputs[0] = 99 }, "no slot 99"},
		{"an output with a state's name", func(p *plan.Plan) { named(p, "loss").Name = "w" }, "parameter or state"},
		{"a status word elsewhere", func(p *plan.Plan) { p.Status.Buffer = 3 }, "buffer for temp"},
		{"a status code of zero", func(p *plan.Plan) { p.Status.Codes[0].Code = 0 }, "code 0"},
		{"variants in variants", func(p *plan.Plan) {
			v := plantest.Linear()
			v.Variants = []*plan.Plan{plantest.Linear()}
			p.Variants = []*plan.Plan{v}
		}, "variants of its own"},
		{"a spoilt variant", func(p *plan.Plan) {
			v := plantest.Linear()
			v.Buffers[0].Bytes = 0
			p.Variants = []*plan.Plan{v}
		}, "variant 0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := plantest.Linear()
			c.spoil(p)
			var format *plan.FormatError
			err := plan.Validate(p)
			if !errors.As(err, &format) || !errors.Is(err, plan.ErrInvalid) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want an invalid plan with %q", err, c.text)
			}
		})
	}
}

func TestValidateAccepts(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(p *plan.Plan)
	}{
		{"the plan itself", func(p *plan.Plan) {}},
		{"no status word", func(p *plan.Plan) { p.Status = nil }},
		{"an input with no elements", func(p *plan.Plan) { s := named(p, "free"); s.Dims, s.Bytes = []int{0, 4}, 0 }},
		{"a state as an output", func(p *plan.Plan) { p.Entries[1].Outputs = append(p.Entries[1].Outputs, 3) }},
		{"an input as an output", func(p *plan.Plan) { s := named(p, "loss"); s.Buffer, s.Offset = 1, 256 }},
		{"two inputs of one name in two entries", func(p *plan.Plan) { named(p, "free").Name = "x" }},
	} {
		p := plantest.Linear()
		c.change(p)
		if err := plan.Validate(p); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestDispatchesCountsRepeats(t *testing.T) {
	p := plantest.Linear()
	for name, want := range map[string]int{"init": 1, "step": 2, "fold": 7} {
		if got := p.Entry(name).Dispatches(); got != want {
			t.Errorf("%s: %d dispatches, want %d", name, got, want)
		}
	}
	if p.Entry("nothing") != nil || p.Lookup("loss") != nil || p.Lookup("w") == nil {
		t.Error("Entry or Lookup found the wrong thing")
	}
}

func TestSlotBytes(t *testing.T) {
	for _, c := range []struct {
		dt   dtype.DType
		dims []int
		want int
	}{
		{dtype.F32, nil, 4},
		{dtype.F32, []int{3, 5}, 60},
		{dtype.Bool, []int{3}, 12},
		{dtype.U8, []int{5}, 8},
		{dtype.F16, []int{3}, 8},
		{dtype.F32, []int{3, 0}, 0},
		{dtype.Q4_0, []int{2, 32}, 36},
	} {
		if got, err := plan.SlotBytes(c.dt, c.dims); got != c.want || err != nil {
			t.Errorf("%s%v: %d, %v, want %d", c.dt, c.dims, got, err, c.want)
		}
	}
}
