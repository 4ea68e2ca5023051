package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
)

// TestDividedSamplesComputeWhatOneDeviceDoes divides the first sample of each op that two ranks can share, each operand
// along a random axis of even size, and compares the results with those of one device.
func TestDividedSamplesComputeWhatOneDeviceDoes(t *testing.T) {
	divided := 0
	for _, op := range ir.Ops() {
		d, _ := ir.Lookup(op)
		if d.Samples == nil {
			continue
		}
		random := rand.New(rand.NewPCG(uint64(len(op)), 1))
		for _, s := range d.Samples() {
			if axes := sharedAxes(s, random); axes != nil {
				t.Run(string(op), func(t *testing.T) { compareSample(t, op, s, axes) })
				divided++
				break
			}
		}
	}
	if divided < 250 {
		t.Errorf("%d ops have a sample that two ranks can share", divided)
	}
}

// sharedAxes returns the axis along which each operand is divided, -1 for none, or nil if none is.
func sharedAxes(s ir.Sample, random *rand.Rand) []int {
	axes, some := make([]int, len(s.In)), false
	for i, a := range s.In {
		var even []int
		for axis, size := range a.Dims {
			if size > 0 && size%2 == 0 {
				even = append(even, axis)
			}
		}
		if axes[i] = -1; len(even) > 0 {
			axes[i], some = even[random.IntN(len(even))], true
		}
		if a.Len() > 5000 {
			return nil
		}
	}
	if !some {
		return nil
	}
	return axes
}

func compareSample(t *testing.T, op ir.Op, s ir.Sample, axes []int) {
	var n *ir.Node
	g, err := ir.Build("sample", func(b *ir.Builder) {
		in := make([]ir.Value, len(s.In))
		for i, a := range s.In {
			in[i] = b.Port(ir.InputPort, fmt.Sprint("x", i), a.Type())
		}
		for i, v := range b.AddNode(op, s.Attrs, s.Subs, in...) {
			b.Output(fmt.Sprint("y", i), v)
			n = v.Node()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p := parallel.Partition{Mesh: []parallel.Axis{{Name: "data", Size: 2}, {Name: "model", Size: 1}}}
	in := map[string]native.Tensor{}
	for i, a := range s.In {
		in[fmt.Sprint("x", i)] = native.FromArray(a)
		if axes[i] >= 0 {
			p.Shardings = append(p.Shardings, parallel.Sharding{Pattern: fmt.Sprint("x", i), Axes: append(make([]string, axes[i]), "data")})
		}
	}
	parts, report, err := p.Apply(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := runAlone(t, g, in)
	got := runRanks(t, parts, [2]int{2, 1}, func(rank int) map[string]native.Tensor {
		own := map[string]native.Tensor{}
		for i, a := range s.In {
			own[fmt.Sprint("x", i)] = native.FromArray(halfOf(a, axes[i], rank))
		}
		return own
	})
	for rank := range got {
		for i, x := range n.Results() {
			name := fmt.Sprint("y", i)
			if k := differs(t, got[rank][name], want[name], irtest.SampleTolerance(n, s, x.DType().Real())); k >= 0 {
				t.Errorf("rank %d has another element %d of %s\n%s\n%s", rank, k, name, report, g)
			}
		}
	}
}

// halfOf returns one of two parts of an array along an axis, all of it for -1.
func halfOf(a *ir.Array, axis, part int) *ir.Array {
	if axis < 0 {
		return a
	}
	dims, inner := slices.Clone(a.Dims), 1
	dims[axis] /= 2
	for _, size := range dims[axis+1:] {
		inner *= size
	}
	out, run := ir.NewArray(a.DType, dims...), dims[axis]*inner
	for k := range out.Len() {
		out.SetElement(k, a.Element((2*(k/run)+part)*run+k%run))
	}
	return out
}

// differs returns the first element that differs by more than a tolerance, -1 for none.
func differs(t *testing.T, got, want native.Tensor, tolerance irtest.Tolerance) int {
	t.Helper()
	x, err := got.Array()
	if err != nil {
		t.Fatal(err)
	}
	y, err := want.Array()
	if err != nil {
		t.Fatal(err)
	}
	for k := range y.Len() {
		a, b := x.Element(k), y.Element(k)
		if a.I != b.I || !tolerance.Allows(a.F, b.F) || !tolerance.Allows(real(a.C), real(b.C)) || !tolerance.Allows(imag(a.C), imag(b.C)) {
			return k
		}
	}
	return -1
}
