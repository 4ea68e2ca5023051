package ops_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

var threeDevices = ops.MeshAttrs{MeshAxis: "data", Devices: 3}

// collectives are digests for patterns [3, 6, 2], with a part [6, 2] on each of three devices. They
// are of the results of all devices, and of the cotangents of the pattern, by jax.vmap with
// axis_name of JAX 0.10.2 in float64.
var collectives = map[string]struct {
	f          func(b *ir.Builder, x ir.Value) ir.Value
	value, vjp float64
}{
	"sum":  {across(ops.AllReduceSum), 1.59375, -9.3125},
	"mean": {across(ops.AllReduceMean), 0.53125, -3.1041666666666665},
	"max":  {across(ops.AllReduceMax), -1.625, -2.65625},
	"min":  {across(ops.AllReduceMin), 2.6875, -7.0625},
	"all_gather": {
		func(b *ir.Builder, x ir.Value) ir.Value { return ops.AllGather(b, x, threeDevices, -1) }, -5, 14.46875,
	},
	"reduce_scatter": {
		func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceScatter(b, x, threeDevices, 0) }, 0.90625, 5.53125,
	},
	"all_to_all": {
		func(b *ir.Builder, x ir.Value) ir.Value { return ops.AllToAll(b, x, threeDevices, 0, 1) }, 8.3125, 3.65625,
	},
	"collective_permute": {
		func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.CollectivePermute(b, x, threeDevices, []int{0, 2, 1}, []int{2, 1, 0})
		}, -6.0625, -2.875,
	},
	"collective_broadcast": {
		func(b *ir.Builder, x ir.Value) ir.Value { return ops.CollectiveBroadcast(b, x, threeDevices, 1) }, 0.53125, -1.6875,
	},
	"axis_index": {
		func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Mul(b, x, ops.Convert(b, ops.AxisIndex(b, threeDevices), ir.F64))
		}, 5.09375, -14.53125,
	},
}

func across(reduction string) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value { return ops.AllReduce(b, x, threeDevices, reduction) }
}

// TestCollectivesOfSeveralDevicesAreThoseOfJAX runs graphs on three devices, in step.
func TestCollectivesOfSeveralDevicesAreThoseOfJAX(t *testing.T) {
	for name, c := range collectives {
		t.Run(name, func(t *testing.T) {
			g := must(ir.Build(name, func(b *ir.Builder) { b.Output("y", c.f(b, b.Input("x", ir.F64, ir.Dims(6, 2)...))) }))(t)
			hold(g)
			inputs := partsOf("x", pattern(1, []int{3, 6, 2}))
			y := together(onDevices(t, g, inputs), "y")
			if got := digest(y); !(math.Abs(got-c.value) <= 1e-12) {
				t.Errorf("the digest is %v, want %v", got, c.value)
			}
			for i, part := range partsOf("cotangent/y", pattern(2, y.Dims)) {
				inputs[i]["cotangent/y"] = part["cotangent/y"]
			}
			back := onDevices(t, must(autodiff.VJP(g))(t), inputs)
			if got := digest(together(back, "grad/x")); !(math.Abs(got-c.vjp) <= 1e-12) {
				t.Errorf("the digest of the derivative is %v, want %v", got, c.vjp)
			}
		})
	}
}

// TestUnreceivedResultsAreZero sends one value of three.
func TestUnreceivedResultsAreZero(t *testing.T) {
	g := must(ir.Build("send", func(b *ir.Builder) {
		b.Output("y", ops.CollectivePermute(b, b.Input("x", ir.F64), threeDevices, []int{2}, []int{0}))
	}))(t)
	got := together(onDevices(t, g, partsOf("x", ir.Floats(ir.F64, []float64{1, 2, 3}, 3))), "y").F
	if !slices.Equal(got, []float64{3, 0, 0}) {
		t.Errorf("the devices have %v", got)
	}
}

// TestMeshLargerThanOneDeviceIsRefused evaluates as one device.
func TestMeshLargerThanOneDeviceIsRefused(t *testing.T) {
	for name, c := range collectives {
		g := must(ir.Build(name, func(b *ir.Builder) { b.Output("y", c.f(b, b.Input("x", ir.F64, ir.Dims(6, 2)...))) }))(t)
		_, err := ir.Eval(g, map[string]*ir.Array{"x": pattern(1, []int{6, 2})}, ir.EvalOptions{})
		if !errors.Is(err, ir.ErrUnsupported) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
