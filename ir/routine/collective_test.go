package routine_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/routine"
)

// collective is one of four elements of f32 among two devices.
func collective(op routine.CollectiveOp) routine.Collective {
	return routine.Collective{Op: op, DType: dtype.F32, Count: 4, Unit: 4, Axis: "data", Devices: 2}
}

func TestCollectivesAreReadAsTheyAreWritten(t *testing.T) {
	shift := collective(routine.Permute)
	shift.Pairs = routine.PairsOf([][2]int{{0, 1}, {1, 0}})
	root := collective(routine.Broadcast)
	root.Root, root.DType, root.Unit = 1, dtype.BF16, 2
	most := collective(routine.ReduceScatter)
	most.Reduction = routine.Max
	for _, r := range []routine.Routine{collective(routine.AllReduce), shift, root, most, routine.DeviceIndex{Axis: "model", Devices: 8}} {
		if got, err := routine.Of(r.Name(), r.Words()); err != nil || got != r {
			t.Errorf("%+v is read as %+v, %v", r, got, err)
		}
	}
	if got, want := shift.Pairs.List(), [][2]int{{0, 1}, {1, 0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the pairs are %v", got)
	}
}

func TestMalformedCollectivesAreRefused(t *testing.T) {
	for name, change := range map[string]func(c *routine.Collective){
		"operation": func(c *routine.Collective) { c.Op = 99 },
		"reduction": func(c *routine.Collective) { c.Reduction = 99 },
		"type":      func(c *routine.Collective) { c.DType = 0 },
		"axis":      func(c *routine.Collective) { c.Axis = "" },
		"devices":   func(c *routine.Collective) { c.Devices = 0 },
		"root":      func(c *routine.Collective) { c.Root = 2 },
		"count":     func(c *routine.Collective) { c.Count = -1 },
		"unit":      func(c *routine.Collective) { c.Unit = 0 },
		"parts":     func(c *routine.Collective) { c.Op, c.Count = routine.AllToAll, 3 },
		"pairs":     func(c *routine.Collective) { c.Pairs = routine.PairsOf([][2]int{{0, 7}}) },
	} {
		c := collective(routine.AllReduce)
		change(&c)
		if c.Check() == nil {
			t.Errorf("%s: %+v is accepted", name, c)
		}
	}
	words := collective(routine.AllReduce).Words()
	for _, bad := range [][]int{nil, words[:7], append([]int{999}, words[1:]...), append(words[:len(words):len(words)], 256)} {
		if _, err := routine.Of("collective", bad); err == nil {
			t.Errorf("the words %v are accepted", bad)
		}
	}
	for _, bad := range [][]int{nil, {2}, {0, 'x'}, {2, 300}} {
		if _, err := routine.Of("device_index", bad); err == nil {
			t.Errorf("the words %v are accepted", bad)
		}
	}
}

// Device 0 has these results if both devices have 1, 2, 3, 4.
func TestCollectivesOfEqualDevices(t *testing.T) {
	shift := collective(routine.Permute)
	shift.Pairs = routine.PairsOf([][2]int{{1, 0}})
	nothing := collective(routine.Permute)
	least := collective(routine.AllReduce)
	least.Reduction = routine.Min
	for name, x := range map[string]struct {
		c    routine.Collective
		want []byte
	}{
		"sum":       {collective(routine.AllReduce), floats(2, 4, 6, 8)},
		"min":       {least, floats(1, 2, 3, 4)},
		"gather":    {collective(routine.AllGather), floats(1, 2, 3, 4, 1, 2, 3, 4)},
		"scatter":   {collective(routine.ReduceScatter), floats(2, 4)},
		"to all":    {collective(routine.AllToAll), floats(1, 2, 1, 2)},
		"shift":     {shift, floats(1, 2, 3, 4)},
		"nothing":   {nothing, floats(0, 0, 0, 0)},
		"broadcast": {collective(routine.Broadcast), floats(1, 2, 3, 4)},
	} {
		out := bytes.Repeat([]byte{0xff}, len(x.want))
		if arrays := x.c.Arrays(); arrays[0].Bytes != 16 || arrays[1].Bytes != len(x.want) || arrays[0].Written || !arrays[1].Written {
			t.Errorf("%s: the arrays are %v", name, arrays)
		}
		if x.c.Reference([][]byte{floats(1, 2, 3, 4), out}); !bytes.Equal(out, x.want) {
			t.Errorf("%s: %x, not %x", name, out, x.want)
		}
	}
	ints := routine.Collective{DType: dtype.I16, Count: 2, Unit: 2, Axis: "data", Devices: 3}
	out := make([]byte, 4)
	if ints.Reference([][]byte{{0xff, 0xff, 2, 1}, out}); !bytes.Equal(out, []byte{0xfd, 0xff, 6, 3}) {
		t.Errorf("three times −1 and 258 are %x", out)
	}
	index := []byte{1, 2, 3, 4}
	if (routine.DeviceIndex{Axis: "data", Devices: 2}).Reference([][]byte{index}); !bytes.Equal(index, make([]byte, 4)) {
		t.Errorf("the index is %x", index)
	}
}
