package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plantest"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
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

// planCase is a change to the plan of package plantest, and the expected error: the number of the
// violated rule, 0 for none, and words of the message. All but those in memory are also cases for
// the readers of files.
type planCase struct {
	what   string
	change func(p *plan.Plan)
	rule   int
	text   string
	memory bool
}

// The entries of the plan.
const (
	entryInit = iota
	entryStep
	entryPredict
	entryFold
)

var refused = []planCase{
	{"a buffer of an odd size", func(p *plan.Plan) { p.Buffers[0].Bytes = 300 }, 9, "multiple of 256", false},
	{"a buffer over the limit", func(p *plan.Plan) { p.Buffers[3].Bytes = 512 << 20 }, 9, "over the limit", false},
	{"a buffer of no kind", func(p *plan.Plan) { p.Buffers[3].Kind = 99 }, 6, "kind is unknown", false},
	{"a slot outside its buffer", func(p *plan.Plan) { named(p, "x").Offset = 1000 }, 14, "outside buffer", false},
	{"a slot in no buffer", func(p *plan.Plan) { named(p, "x").Buffer = 9 }, 14, "no buffer 9", false},
	{"an input among the states", func(p *plan.Plan) { named(p, "x").Buffer = 2 }, 15, "cannot lie", false},
	{"a size that does not fit the shape", func(p *plan.Plan) { named(p, "x").Dims = []int{4, 4} }, 11, "do not fit", false},
	{"a negative dimension", func(p *plan.Plan) { named(p, "x").Dims = []int{-4, 3} }, 11, "dimension", true},
	{"a product that overflows", func(p *plan.Plan) { named(p, "x").Dims = []int{1 << 30, 1 << 30, 1 << 30} }, 11, "overflows", false},
	{"a product that overflows before a zero", func(p *plan.Plan) { s := named(p, "x"); s.Dims, s.Bytes = []int{1 << 30, 1 << 30, 0}, 0 }, 11, "overflows", false},
	{"a product that overflows after a zero", func(p *plan.Plan) { s := named(p, "x"); s.Dims, s.Bytes = []int{0, 1 << 30, 1 << 30}, 0 }, 11, "overflows", false},
	{"a size of bytes for words", func(p *plan.Plan) { named(p, "w").Bytes = 3 }, 11, "do not fit", false},
	{"a part of a block", func(p *plan.Plan) { s := named(p, "x"); s.DType, s.Dims, s.Bytes = dtype.Q4_0, []int{4, 12}, 28 }, 11, "whole number of blocks", false},
	{"a block of another size", func(p *plan.Plan) { s := named(p, "x"); s.DType, s.Dims, s.Bytes = dtype.Q4K, []int{256}, 148 }, 11, "do not fit", false},
	{"a slot without a name", func(p *plan.Plan) { named(p, "x").Name = "" }, 10, "name", false},
	{"two states in one place", func(p *plan.Plan) { named(p, "count").Offset = 256 }, 17, "overlaps", false},
	{"two states of one name", func(p *plan.Plan) { named(p, "count").Name = "w" }, 16, "this name", false},
	{"bounds on floats", func(p *plan.Plan) { named(p, "x").Checked = true }, 12, "bounds", false},
	{"bounds on a state", func(p *plan.Plan) { named(p, "count").Checked = true }, 12, "bounds", false},
	{"bounds on a bool", func(p *plan.Plan) { named(p, "label").DType = dtype.Bool }, 12, "bounds", false},
	{"bounds in reverse", func(p *plan.Plan) { s := named(p, "label"); s.Lo, s.Hi = 4, -1 }, 12, "bounds", false},
	{"two inputs that overlap", func(p *plan.Plan) { named(p, "t").Offset = 44 }, 17, "overlaps", false},
	{"an output that is temporary and a status", func(p *plan.Plan) { s := named(p, "loss"); s.Buffer, s.Offset = 4, 0 }, 15, "cannot lie", false},
	{"a state among temporaries", func(p *plan.Plan) { named(p, "kept").Buffer = 3 }, 15, "cannot lie", false},
	{"a slot at an odd place", func(p *plan.Plan) { named(p, "t").Offset = 258 }, 14, "multiple of 4", false},
	{"a scalar with a shape", func(p *plan.Plan) { s := named(p, "rate"); s.Dims, s.Bytes = []int{2}, 8 }, 13, "scalar", false},
	{"a scalar of 64 bits", func(p *plan.Plan) { s := named(p, "rate"); s.DType, s.Bytes = dtype.F64, 8 }, 13, "scalar", false},
	{"a scalar outside the row", func(p *plan.Plan) { named(p, "rate").Offset = 4 }, 29, "outside the row", false},
	{"a scalar at an odd place", func(p *plan.Plan) { named(p, "rate").Offset = 2 }, 13, "scalar", false},
	{"two scalars in one place", func(p *plan.Plan) {
		p.Entries[entryFold].Scalars = append(p.Entries[entryFold].Scalars, 2)
		named(p, "rate").Offset = 4
	}, 29, "on another", false},
	{"a row of six bytes", func(p *plan.Plan) { p.Entries[entryStep].UniformBytes = 6 }, 22, "row of scalars", false},
	{"a row over the limit", func(p *plan.Plan) { p.Entries[entryStep].UniformBytes = 16388 }, 22, "row of scalars", false},
	{"a block of six bytes", func(p *plan.Plan) { p.Kernels[1].ScalarBytes = 6 }, 22, "uniform block", false},
	{"rows over the limit", func(p *plan.Plan) { rows(p, 64) }, 23, "1048576 bytes", false},
	{"a constant over an input", func(p *plan.Plan) { p.Constants[0].Buffer = 1 }, 15, "buffer for input", false},
	{"a constant of three bytes", func(p *plan.Plan) { p.Constants[0].Data = make([]byte, 3) }, 14, "multiple of 4", false},
	{"a kernel with a bad name", func(p *plan.Plan) { p.Kernels[0].Name = "A b" }, 18, "name", false},
	{"a kernel with no source", func(p *plan.Plan) { p.Kernels[0].Source = "" }, 18, "source", false},
	{"a kernel with no threads", func(p *plan.Plan) { p.Kernels[0].Workgroup[1] = 0 }, 19, "threads", false},
	{"a kernel whose threads overflow", func(p *plan.Plan) {
		p.Requires.Limits.Workgroup = [3]int{1 << 30, 1 << 30, 1 << 30}
		p.Kernels[0].Workgroup = [3]int{1 << 22, 1 << 22, 1 << 20}
	}, 19, "threads", false},
	{"a kernel with no arrays", func(p *plan.Plan) { p.Kernels[0].Storage = nil }, 21, "storage arrays", false},
	{"a kernel with eight counters", func(p *plan.Plan) { p.Kernels[5].Counters = 8 }, 24, "8 counters", false},
	{"a kernel with too many threads", func(p *plan.Plan) { p.Kernels[0].Workgroup = [3]int{32, 16, 1} }, 19, "[32 16 1] threads", false},
	{"a kernel with a long workgroup", func(p *plan.Plan) { p.Kernels[0].Workgroup = [3]int{1, 1, 65} }, 19, "workgroup", false},
	{"a kernel with too much memory", func(p *plan.Plan) { p.Kernels[0].SharedBytes = 1 << 20 }, 20, "workgroup memory", false},
	{"a kernel with nine arrays", func(p *plan.Plan) { p.Kernels[0].Storage = make([]loop.Access, 9) }, 21, "storage arrays", false},
	{"an unknown access", func(p *plan.Plan) { p.Kernels[0].Storage[0] = 9 }, 6, "access", false},
	{"a dispatch of no kernel", func(p *plan.Plan) { first(p, entryStep).Kernel = 99 }, 30, "no kernel 99", false},
	{"a dispatch of nothing", func(p *plan.Plan) { first(p, entryStep).Groups[1] = 0 }, 31, "workgroups", false},
	{"a dispatch over the limit", func(p *plan.Plan) { first(p, entryStep).Groups[1] = 65536 }, 31, "workgroups", false},
	{"a missing binding", func(p *plan.Plan) { d := first(p, entryStep); d.Bindings = d.Bindings[1:] }, 32, "4 bindings for 5", false},
	{"an empty window", func(p *plan.Plan) { first(p, entryStep).Bindings[0].Bytes = 0 }, 34, "empty", false},
	{"a window over the limit", func(p *plan.Plan) { p.Requires.Limits.BindingBytes = 8 }, 34, "over the limit", false},
	{"a window off the grid", func(p *plan.Plan) { first(p, entryStep).Bindings[0].Offset = 16 }, 14, "multiple of 256", false},
	{"a window outside", func(p *plan.Plan) { first(p, entryStep).Bindings[0].Bytes = 2048 }, 14, "outside buffer", false},
	{"a write to a constant", func(p *plan.Plan) { first(p, entryInit).Bindings[1].Buffer = 0 }, 35, "a write to", false},
	{"reading and writing one buffer", func(p *plan.Plan) {
		d := first(p, entryPredict)
		d.Bindings[1].Buffer = 3
	}, 36, "both read-only and writable", false},
	{"writing one place twice", func(p *plan.Plan) {
		d := p.Entries[entryStep].Steps[1].(*plan.Dispatch)
		d.Bindings[2].Offset = 256
	}, 36, "overlap", false},
	{"scalars the entry has not", func(p *plan.Plan) { first(p, entryPredict).Kernel = 4 }, 32, "1 storage arrays", false},
	{"scalars beyond the entry's", func(p *plan.Plan) { p.Kernels[1].ScalarBytes = 8 }, 33, "8 bytes of scalars", false},
	{"a counter outside a repeat", func(p *plan.Plan) { p.Kernels[0].Counters = 1 }, 33, "1 counters inside 0", false},
	{"a repeat of zero", func(p *plan.Plan) { p.Entries[entryFold].Steps[1].(*plan.Repeat).Count = 0 }, 38, "a count of 0", false},
	{"a repeat over the limit", func(p *plan.Plan) { p.Entries[entryFold].Steps[1].(*plan.Repeat).Count = 65537 }, 38, "a count of 65537", false},
	{"a loop by a word outside its buffer", func(p *plan.Plan) { until(p, plan.GridAddress{Buffer: 4, Offset: 248}) }, 14, "outside buffer", false},
	{"a loop by a word between words", func(p *plan.Plan) { until(p, plan.GridAddress{Buffer: 4, Offset: 2}) }, 14, "multiple of 4", false},
	{"a loop by a word in no buffer", func(p *plan.Plan) { until(p, plan.GridAddress{Buffer: 9}) }, 14, "no buffer 9", false},
	{"a loop of too many dispatches in a round", func(p *plan.Plan) {
		until(p, plan.GridAddress{Buffer: 4}).Steps = []plan.Step{&plan.Repeat{Count: 65536, Steps: []plan.Step{&plan.Repeat{Count: 17}}}}
	}, 40, "dispatches", false},
	{"a grid outside its buffer", func(p *plan.Plan) { first(p, entryPredict).Grid = &plan.GridAddress{Buffer: 4, Offset: 248} }, 14, "outside buffer", false},
	{"a grid between words", func(p *plan.Plan) { first(p, entryPredict).Grid = &plan.GridAddress{Buffer: 4, Offset: 2} }, 14, "multiple of 4", false},
	{"a grid in a buffer that the kernel writes", func(p *plan.Plan) { first(p, entryPredict).Grid = &plan.GridAddress{Buffer: 3, Offset: 512} }, 36, "the grid is read from", false},
	{"a draft over no workgroups", func(p *plan.Plan) { drafted(p); first(p, entryPredict).DraftGroups[1] = 0 }, 44, "a kernel with a draft", false},
	{"a draft over the limit", func(p *plan.Plan) { drafted(p); first(p, entryPredict).DraftGroups[0] = 65536 }, 44, "a kernel with a draft", false},
	{"a draft without a grid", func(p *plan.Plan) { drafted(p); first(p, entryPredict).DraftGroups = [3]int{} }, 44, "a kernel with a draft", false},
	{"a grid for no draft", func(p *plan.Plan) { first(p, entryPredict).DraftGroups = [3]int{4, 1, 1} }, 44, "a kernel without", false},
	{"a draft where the device has the grid", func(p *plan.Plan) { drafted(p); first(p, entryPredict).Grid = &plan.GridAddress{Buffer: 4} }, 44, "a kernel with a draft", true},
	{"odd rounds without a kernel", func(p *plan.Plan) {
		outer := fold(p)
		outer.Count, outer.Odd = 1, []plan.Step{&plan.Dispatch{Kernel: 99}}
	}, 30, "no kernel 99", false},
	{"odd rounds with too much to do", func(p *plan.Plan) {
		outer := fold(p)
		outer.Count = 3
		outer.Odd = []plan.Step{&plan.Repeat{Count: 65536, Steps: []plan.Step{&plan.Repeat{Count: 16, Steps: outer.Steps[0].(*plan.Repeat).Steps}}}}
	}, 40, "dispatches", false},
	{"one dispatch too many", func(p *plan.Plan) {
		e := &p.Entries[entryFold]
		e.Steps = append(most(e.Steps[1]), e.Steps[2])
	}, 40, "dispatches", false},
	{"endless work", func(p *plan.Plan) {
		r := p.Entries[entryFold].Steps[1].(*plan.Repeat)
		r.Count, r.Steps[0].(*plan.Repeat).Count = 65536, 65536
	}, 40, "dispatches", false},
	{"endless idleness", func(p *plan.Plan) {
		p.Entries[entryFold].Steps = []plan.Step{&plan.Repeat{Count: 65536, Steps: []plan.Step{&plan.Repeat{Count: 65536}}}}
	}, 40, "dispatches", false},
	{"repeats too deep", func(p *plan.Plan) {
		for range plan.MaxCounters {
			p.Entries[entryFold].Steps = []plan.Step{&plan.Repeat{Count: 1, Steps: p.Entries[entryFold].Steps}}
		}
	}, 39, "nested", false},
	{"a copy within a buffer", func(p *plan.Plan) { p.Entries[entryFold].Steps[2].(*plan.Copy).Dst = 3 }, 37, "within one buffer", false},
	{"a copy into an input", func(p *plan.Plan) { p.Entries[entryFold].Steps[2].(*plan.Copy).Dst = 1 }, 35, "copy into", false},
	{"a copy of nothing", func(p *plan.Plan) { p.Entries[entryFold].Steps[2].(*plan.Copy).Bytes = 0 }, 34, "of nothing", false},
	{"no step", func(p *plan.Plan) { p.Entries[entryFold].Steps[0] = nil }, 8, "missing", true},
	{"two entries of one name", func(p *plan.Plan) { p.Entries[0].Name = "step" }, 26, "twice", false},
	{"an entry without a name", func(p *plan.Plan) { p.Entries[entryFold].Name = "" }, 26, "name", false},
	{"an input as a scalar", func(p *plan.Plan) { p.Entries[entryStep].Scalars[0] = 0 }, 27, "wrong list", false},
	{"an input as an output of its own", func(p *plan.Plan) { p.Entries[entryStep].Outputs[0] = 0 }, 27, "wrong list", false},
	{"a parameter that is read and set", func(p *plan.Plan) {
		e := &p.Entries[entryStep]
		e.Reads, e.Sets = []int{slotOf(p, "w")}, []int{slotOf(p, "w")}
	}, 0, "", false},
	{"an input as a parameter that is read", func(p *plan.Plan) { p.Entries[entryStep].Reads = []int{0} }, 27, "wrong list", false},
	{"an unknown slot as a parameter that is set", func(p *plan.Plan) { p.Entries[entryStep].Sets = []int{99} }, 27, "no slot 99", false},
	{"an output given twice", func(p *plan.Plan) { e := &p.Entries[entryStep]; e.Outputs = append(e.Outputs, e.Outputs[0]) }, 28, "twice", false},
	{"an input with a scalar's name", func(p *plan.Plan) { named(p, "x").Name = "rate" }, 28, "twice", false},
	{"an output as an input", func(p *plan.Plan) { p.Entries[entryStep].Inputs[0] = p.Entries[entryStep].Outputs[0] }, 27, "wrong list", false},
	{"an input given twice", func(p *plan.Plan) { p.Entries[entryStep].Inputs[1] = p.Entries[entryStep].Inputs[0] }, 28, "twice", false},
	{"an unknown slot", func(p *plan.Plan) { p.Entries[entryStep].Inputs[0] = 99 }, 27, "no slot 99", false},
	{"an output with a state's name", func(p *plan.Plan) { named(p, "loss").Name = "w" }, 28, "parameter or state", false},
	{"a status word elsewhere", func(p *plan.Plan) { p.Status.Buffer = 3 }, 15, "buffer for temp", false},
	{"a status code of zero", func(p *plan.Plan) { p.Status.Codes[0].Code = 0 }, 25, "code 0", false},
	{"a status code twice", func(p *plan.Plan) { p.Status.Codes = append(p.Status.Codes, p.Status.Codes[0]) }, 25, "code 7", false},
	{"a status word off the grid", func(p *plan.Plan) { p.Status.Offset = 16 }, 14, "multiple of 256", false},
	{"variants in variants", func(p *plan.Plan) {
		v := plantest.Linear()
		v.Variants = []*plan.Plan{plantest.Linear()}
		p.Variants = []*plan.Plan{v}
	}, 7, "variants of its own", true},
	{"a spoilt variant", func(p *plan.Plan) {
		v := plantest.Linear()
		v.Buffers[0].Bytes = 0
		p.Variants = []*plan.Plan{v}
	}, 9, "variant 0", false},
}

var accepted = []planCase{
	{"rounds in turns", func(p *plan.Plan) { outer := fold(p); outer.Odd = []plan.Step{outer.Steps[0], outer.Steps[0]} }, 0, "", false},
	{"a loop of unknown length", func(p *plan.Plan) { until(p, plan.GridAddress{Buffer: 4, Offset: 244}) }, 0, "", false},
	{"a loop of unknown length of nothing", func(p *plan.Plan) { until(p, plan.GridAddress{Buffer: 4}).Steps = nil }, 0, "", false},
	{"a grid in memory", func(p *plan.Plan) { first(p, entryPredict).Grid = &plan.GridAddress{Buffer: 4, Offset: 244} }, 0, "", false},
	{"a grid in a buffer that is read", func(p *plan.Plan) { first(p, entryPredict).Grid = &plan.GridAddress{Buffer: 2} }, 0, "", false},
	{"a single round, and steps for odd ones", func(p *plan.Plan) { outer := fold(p); outer.Count, outer.Odd = 1, outer.Steps }, 0, "", false},
	{"a draft", func(p *plan.Plan) { drafted(p) }, 0, "", false},
	{"the plan itself", func(p *plan.Plan) {}, 0, "", false},
	{"no status word", func(p *plan.Plan) { p.Status = nil }, 0, "", false},
	{"an input with no elements", func(p *plan.Plan) { s := named(p, "free"); s.Dims, s.Bytes = []int{0, 4}, 0 }, 0, "", false},
	{"a state as an output", func(p *plan.Plan) { p.Entries[1].Outputs = append(p.Entries[1].Outputs, 3) }, 0, "", false},
	{"an input as an output", func(p *plan.Plan) { s := named(p, "loss"); s.Buffer, s.Offset = 1, 256 }, 0, "", false},
	{"two inputs of one name in two entries", func(p *plan.Plan) { named(p, "free").Name = "x" }, 0, "", false},
	{"bounds that are not looked at", func(p *plan.Plan) { s := named(p, "free"); s.Lo, s.Hi = 4, -1 }, 0, "", false},
	{"an empty slot inside another", func(p *plan.Plan) { s := named(p, "t"); s.Dims, s.Bytes, s.Offset = []int{0}, 0, 16 }, 0, "", false},
	{"two windows onto what is only read", func(p *plan.Plan) { first(p, entryPredict).Bindings[1] = first(p, entryPredict).Bindings[0] }, 0, "", false},
	{"repeats as deep as can be", func(p *plan.Plan) {
		for range plan.MaxCounters - 2 {
			p.Entries[entryFold].Steps = []plan.Step{&plan.Repeat{Count: 1, Steps: p.Entries[entryFold].Steps}}
		}
	}, 0, "", false},
	{"as many dispatches as can be", func(p *plan.Plan) { p.Entries[entryFold].Steps = most(p.Entries[entryFold].Steps[1]) }, 0, "", false},
	{"rows as large as can be", func(p *plan.Plan) { rows(p, 63) }, 0, "", false},
	{"every element type", func(p *plan.Plan) {
		p.Buffers = append(p.Buffers, plan.Buffer{Kind: plan.InputBuffer, Bytes: 1 << 15})
		for i, d := range dtype.All() {
			s := plan.Slot{Name: d.String(), DType: d, Dims: []int{1, 512}, Buffer: 5, Offset: 1024 * i}
			if !d.IsPacked() {
				s.Dims[1] = 15
			}
			s.Bytes, _ = plan.SlotBytes(d, s.Dims)
			p.Slots = append(p.Slots, s)
		}
	}, 0, "", false},
	{"features, subgroups and a variant for other devices", func(p *plan.Plan) {
		p.Requires.Features, p.Requires.Subgroup = []string{"shader-f16", "subgroups"}, [2]int{4, 32}
		p.Variants = []*plan.Plan{{Name: "plain", Target: "cuda", Buffers: p.Buffers, Requires: plan.Requires{Limits: loop.DefaultLimits()}}}
	}, 0, "", false},
}

// fusionPolicy adds n entries with the greatest row of scalars.
func rows(p *plan.Plan, n int) {
	for i := range n {
		p.Entries = append(p.Entries, plan.Entry{Name: string(rune('A' + i)), UniformBytes: plan.MaxUniformBytes})
	}
}

// fold returns the outer repeat of entry fold.
// until makes the entry predict repeat until a word is 0.
func until(p *plan.Plan, going plan.GridAddress) *plan.While {
	e := &p.Entries[entryPredict]
	w := &plan.While{Condition: going, Steps: e.Steps}
	e.Steps = []plan.Step{w}
	return w
}

// drafted makes the plan that of [plantest.Drafted], with the sources that it has.
func drafted(p *plan.Plan) {
	sources := make([]string, len(p.Kernels))
	for i := range sources {
		sources[i] = p.Kernels[i].Source
	}
	*p = *plantest.Drafted()
	for i := range sources {
		p.Kernels[i].Source = sources[i]
	}
}

func fold(p *plan.Plan) *plan.Repeat { return p.Entries[entryFold].Steps[1].(*plan.Repeat) }

// most makes the maximum number of dispatches, all within the repeats of entry fold.
func most(fold plan.Step) []plan.Step {
	inner := &plan.Repeat{Count: plan.MaxDispatches / plan.MaxRepeat, Steps: fold.(*plan.Repeat).Steps[0].(*plan.Repeat).Steps}
	return []plan.Step{&plan.Repeat{Count: plan.MaxRepeat, Steps: []plan.Step{inner}}}
}

func TestValidate(t *testing.T) {
	for _, c := range slices.Concat(accepted, refused) {
		t.Run(c.what, func(t *testing.T) {
			p := plantest.Linear()
			c.change(p)
			err := plan.Validate(p)
			if c.rule == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var format *plan.FormatError
			if !errors.As(err, &format) || format.Kind != plan.ErrInvalid || format.Rule != c.rule || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want an invalid plan by rule %d with %q", err, c.rule, c.text)
			}
		})
	}
}

func TestDispatchesCountsRepeats(t *testing.T) {
	p := plantest.Linear()
	for name, want := range map[string]int{"init": 1, "step": 2, "fold": 7} {
		if got := p.Entry(name).Dispatches(); got != want {
			t.Errorf("%s: %d dispatches, want %d", name, got, want)
		}
	}
	outer := fold(p)
	outer.Odd = slices.Repeat(outer.Steps[0].(*plan.Repeat).Steps, 5)
	if got := p.Entry("fold").Dispatches(); got != 2+5+2+1 {
		t.Errorf("with odd rounds of 5: %d dispatches", got)
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

// slotOf is the place of a plan's slot.
func slotOf(p *plan.Plan, name string) int {
	return slices.IndexFunc(p.Slots, func(s plan.Slot) bool { return s.Name == name })
}
