package parallel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

var mesh = []parallel.Axis{{Name: "data", Size: 2}, {Name: "model", Size: 4}}

// blockGradients is the mean of the squares of a transformer block with its gradients.
func blockGradients(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("block", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 8, 16)...)
		y := nn.TransformerBlock(b, x, 4, nn.TransformerOptions{Name: "h", Causal: true, Attention: nn.AttentionOptions{Separate: true}})
		b.Output("loss", ops.Mean(b, ops.Mul(b, y, y)))
	})
	if err == nil {
		g, err = autodiff.GradWith(g, autodiff.GradOptions{Loss: "loss"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// moved counts the collectives of whole activations of a block by op.
func moved(r parallel.PartitionReport) map[ir.Op]int {
	out := map[ir.Op]int{}
	for _, m := range r.Moved {
		if strings.HasSuffix(m.Value, " f32[2,8,16]") {
			out[m.Op]++
		}
	}
	return out
}

// TestMegatronMovesWhatItsPaperSays: two all-reduces of activations in each direction. With the sequence
// divided as well, two reduce-scatters and two all-gathers in each, and two all-gathers for the gradients of
// weights, whose operands the forward pass does not keep whole.
func TestMegatronMovesWhatItsPaperSays(t *testing.T) {
	g := blockGradients(t)
	p := parallel.Partition{Mesh: mesh, Shardings: append(parallel.Megatron("model"), parallel.Sharding{Pattern: "x", Axes: []string{"data"}})}
	places, err := p.Placements(g)
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := p.Apply(g, places)
	if err != nil {
		t.Fatal(err)
	}
	if got := moved(r); got[ops.OpAllReduce] != 4 || len(got) != 1 {
		t.Errorf("the collectives are %v\n%s", got, r)
	}
	// The gradients of the 16 parameters are combined along data, the parts of the biases along
	// model.
	if small := r.Collectives - 4; small > 4 {
		t.Errorf("%d small collectives are not made together", small)
	}
	last := &p.Shardings[len(p.Shardings)-1]
	last.Axes = []string{"data", "model"}
	_, r, err = p.Apply(g, places)
	if err != nil {
		t.Fatal(err)
	}
	if got := moved(r); got[ops.OpReduceScatter] != 4 || got[ops.OpAllGather] > 6 || got[ops.OpAllReduce] != 0 {
		t.Errorf("with the sequence divided the collectives are %v\n%s", got, r)
	}
	for _, line := range []string{"partition over data=2 model=4", `h/linear1/weight f32[16,64]: divided along ["" "model"]`, "h/norm1/bias f32[16]: replicated", `reduce_scatter along "model": 4, `} {
		if !strings.Contains(r.String(), line) {
			t.Errorf("the report lacks %q:\n%s", line, r)
		}
	}
	own, whole := r.Bytes()
	if divided := int64(4 * (3*(16*16+16) + 16*16 + 64*16 + 64 + 64*16)); whole-own != divided*3/4 {
		t.Errorf("a device has %d of %d bytes of parameters", own, whole)
	}
}

// TestLossScaleSeesNaNOnOneDevice divides a weight and its gradient: whether that is finite on all devices is no maximum of
// floats, in which NCCL and MPI lose NaN.
func TestLossScaleSeesNaNOnOneDevice(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		y := ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(2, 8)...), b.Param("w", ir.F32, ir.Dims(8, 4)...))
		b.Output("loss", ops.Mean(b, ops.Mul(b, y, y)))
	})
	if err != nil {
		t.Fatal(err)
	}
	step, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{Scale: &optim.LossScale{}})
	if err != nil {
		t.Fatal(err)
	}
	p := parallel.Partition{Mesh: mesh, Shardings: []parallel.Sharding{{Pattern: "w", Axes: []string{"", "model"}}}}
	places, err := p.Placements(step)
	if err != nil {
		t.Fatal(err)
	}
	divided, _, err := p.Apply(step, places)
	if err != nil {
		t.Fatal(err)
	}
	combined := 0
	for _, n := range divided.Nodes() {
		a, is := n.Attrs().(*ops.AllReduceAttrs)
		if !is || a.Reduction == ops.AllReduceSum {
			continue
		}
		if combined++; !n.Types()[0].DType.IsInteger() {
			t.Errorf("%s of %s by %s", n.Op(), n.Types()[0], a.Reduction)
		}
	}
	if combined == 0 {
		t.Error("the devices do not combine whether their gradients are finite")
	}
}

// TestTokensGoToTheirExpertsAndBack by two all-to-alls: tokens are in groups, one per device, which
// send their tokens to each expert (Lepikhin et al., GShard, 2020).
func TestTokensGoToTheirExpertsAndBack(t *testing.T) {
	g, err := ir.Build("experts", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(2, 16, 8)...)
		mask := b.Input("mask", ir.F32, ir.Dims(2, 16, 4, 4)...) // group, token, expert, slot
		sent := ops.Einsum(b, "gsec,gsd->gecd", mask, x)
		h := ops.Einsum(b, "gecd,edh->gech", sent, b.Param("w", ir.F32, ir.Dims(4, 8, 8)...))
		b.Output("y", ops.Einsum(b, "gsec,gech->gsh", mask, h))
	})
	if err != nil {
		t.Fatal(err)
	}
	axis := []string{"data"}
	p := parallel.Partition{Mesh: mesh[:1], Shardings: []parallel.Sharding{{"x", axis}, {"mask", axis}, {"w", axis}, {"y", axis}}}
	places, err := p.Placements(g)
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := p.Apply(g, places)
	if err != nil {
		t.Fatal(err)
	}
	// A device has 1·4·4·8 elements of 4 bytes and sends half of them.
	if len(r.Moved) != 2 || r.Moved[0].Op != ops.OpAllToAll || r.Moved[1].Op != ops.OpAllToAll || r.Sent != 2*4*4*8*4/2 {
		t.Errorf("the collectives are %+v, %d bytes", r.Moved, r.Sent)
	}
}

// TestWrongPartitionsAreRefused with the kinds that the documentation says.
func TestWrongPartitionsAreRefused(t *testing.T) {
	g := blockGradients(t)
	along := func(pattern string, axes ...string) parallel.Partition {
		return parallel.Partition{Mesh: mesh, Shardings: []parallel.Sharding{{Pattern: pattern, Axes: axes}}}
	}
	for name, c := range map[string]struct {
		p    parallel.Partition
		kind error
		text string
	}{
		"an unknown axis":     {along("x", "rows"), ir.ErrAttr, `"rows"`},
		"an axis twice":       {along("x", "data", "data"), ir.ErrAttr, `"data"`},
		"no such name":        {along("y", "data"), ir.ErrName, `"y"`},
		"sizes":               {along("x", "model"), ir.ErrAttr, "must divide"},
		"no axis":             {parallel.Partition{Mesh: []parallel.Axis{{Size: 2}}}, ir.ErrAttr, "axis 0"},
		"a negative limit":    {parallel.Partition{Mesh: mesh, Limit: -1}, ir.ErrAttr, "-1"},
		"states of no axis":   {parallel.Partition{Mesh: mesh, States: "rows"}, ir.ErrAttr, `"rows"`},
		"params, not states":  {parallel.Partition{Mesh: mesh, Params: true}, ir.ErrAttr, "no axis"},
		"too large to gather": {parallel.Partition{Mesh: mesh, Limit: 100, Shardings: []parallel.Sharding{{"x", []string{"", "model"}}}}, ir.ErrUnsupported, "attention_forward"},
	} {
		places, err := c.p.Placements(g)
		if err == nil {
			_, _, err = c.p.Apply(g, places)
		}
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (parallel.Partition{}).Placements(nil); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("no graph: %v", err)
	}
	reduced, err := ir.Build("g", func(b *ir.Builder) {
		b.Output("y", ops.AllReduce(b, b.Input("x", ir.F32, ir.N(8)), four, ops.AllReduceSum))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := along("x", "data").Apply(reduced, nil); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("a collective: %v", err)
	}
}

// TestFactorsCanBeDeclared for ops that have none.
func TestFactorsCanBeDeclared(t *testing.T) {
	for op, kind := range map[ir.Op]error{ops.OpDotGeneral: ir.ErrName, "nothing": ir.ErrName} {
		if err := parallel.Declare(op, func(*ir.Node, *parallel.Factors) {}); !errors.Is(err, kind) {
			t.Errorf("%s: %v", op, err)
		}
	}
	g, err := ir.Build("g", func(b *ir.Builder) { b.Output("y", ops.Reverse(b, b.Input("x", ir.F32, ir.Dims(8, 4)...), 1)) })
	if err != nil {
		t.Fatal(err)
	}
	p := parallel.Partition{Mesh: mesh, Shardings: []parallel.Sharding{{"x", []string{"data"}}, {"y", []string{"data"}}}}
	count := func() int {
		_, r, err := p.Apply(g, nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(r.Moved)
	}
	if n := count(); n != 1 {
		t.Errorf("%d collectives without factors", n)
	}
	if err := parallel.Declare(ops.OpReverse, func(_ *ir.Node, f *parallel.Factors) { f.Pass(8, parallel.Operand(0, 0), parallel.Result(0, 0)) }); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("%d collectives with factors", n)
	}
}
