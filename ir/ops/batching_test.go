package ops_test

import (
	"math"
	"math/cmplx"
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/derive"
	"github.com/rlx-go/rlx/ir"
)

// TestBatchingIsALoop compares, for each sample, the batching rule with the op
// applied to the members of the batch one by one: with the batch axis at the
// front and at the end of all operands, and of each operand alone. The size of
// the batch is a symbol that is bound afterwards.
func TestBatchingIsALoop(t *testing.T) {
	eachSample(t, ruled, func(t *testing.T, d *ir.Def, s ir.Sample) {
		if len(s.In) == 0 {
			return
		}
		for at := range 2 {
			all := make([]bool, len(s.In))
			for i := range all {
				all[i] = true
			}
			checkBatching(t, d, s, all, at == 1)
			for i := range s.In {
				one := make([]bool, len(s.In))
				one[i] = true
				checkBatching(t, d, s, one, at == 1)
			}
		}
	})
}

const batchSize = 3

func checkBatching(t *testing.T, d *ir.Def, s ir.Sample, batched []bool, last bool) {
	t.Helper()
	g := nodeGraph(t, d, s)
	members := make([][]*ir.Array, batchSize)
	in, axes := make([]*ir.Array, len(s.In)), make([]int, len(s.In))
	for i, x := range s.In {
		in[i], axes[i] = x, -1
		copies := slices.Repeat([]*ir.Array{x}, batchSize)
		if batched[i] {
			if axes[i] = 0; last {
				axes[i] = len(x.Dims)
			}
			for k := range copies {
				copies[k] = varied(x, k)
			}
			in[i] = stacked(copies, axes[i])
		}
		for k := range members {
			members[k] = append(members[k], copies[k])
		}
	}
	var outAxes []int
	bg, err := ir.Build("batched", func(b *ir.Builder) {
		values := make([]ir.Value, len(in))
		for i, a := range in {
			shape := a.Type().Shape
			if axes[i] >= 0 {
				shape[axes[i]] = ir.Sym("batch")
			}
			values[i] = b.Input("x"+strconv.Itoa(i), a.DType, shape...)
		}
		var out []ir.Value
		out, outAxes = derive.Batch(b, g, values, axes, ir.Sym("batch"))
		for i, v := range out {
			b.Output("y"+strconv.Itoa(i), v)
		}
	})
	if err == nil {
		bg, err = bg.Bind(map[string]int{"batch": batchSize})
	}
	if err != nil {
		t.Errorf("batched %v, last %v: %v", batched, last, err)
		return
	}
	got := run(t, bg, in)
	for i := range got {
		var want []*ir.Array
		for k := range members {
			want = append(want, run(t, g, members[k])[i])
		}
		if outAxes[i] < 0 {
			compareArrays(t, got[i], want[0])
			continue
		}
		compareArrays(t, got[i], stacked(want, outAxes[i]))
	}
}

// varied returns an array that differs from x in a way that keeps indices and
// conditions valid: floats are changed, integers are reversed.
func varied(x *ir.Array, k int) *ir.Array {
	y := x.Clone()
	for i := range y.F {
		y.F[i] += float64(k) * 0.25 * float64(1+i%3)
	}
	if k%2 == 1 {
		slices.Reverse(y.I)
	}
	return y
}

// stacked joins arrays of one type along a new axis.
func stacked(list []*ir.Array, axis int) *ir.Array {
	first := list[0]
	out := ir.NewArray(first.DType, slices.Insert(slices.Clone(first.Dims), axis, len(list))...)
	inner := 1
	for _, d := range first.Dims[axis:] {
		inner *= d
	}
	for k, a := range list {
		for i := range a.Len() {
			at := (i/max(inner, 1)*len(list)+k)*inner + i%max(inner, 1)
			switch {
			case a.F != nil:
				out.F[at] = a.F[i]
			case a.C != nil:
				out.C[at] = a.C[i]
			default:
				out.I[at] = a.I[i]
			}
		}
	}
	return out
}

func compareArrays(t *testing.T, got, want *ir.Array) {
	t.Helper()
	if !got.Type().Equal(want.Type()) {
		t.Errorf("got %s, want %s", got.Type(), want.Type())
		return
	}
	for i := range want.Len() {
		if want.C != nil {
			if g, w := got.C[i], want.C[i]; !(cmplx.Abs(g-w) <= 1e-10*(1+cmplx.Abs(w))) {
				t.Errorf("element %d of %s is %v, want %v", i, want.Type(), g, w)
				return
			}
			continue
		}
		g, w := got.Float(i), want.Float(i)
		if g != w && !(math.Abs(g-w) <= 1e-10*(1+math.Abs(w))) && !(math.IsNaN(g) && math.IsNaN(w)) {
			t.Errorf("element %d of %s is %v, want %v", i, want.Type(), g, w)
			return
		}
	}
}
