package sim_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// launch returns a launch of the case with a buffer for each array.
func launch(c *kerneltest.Case) sim.Launch {
	l := sim.Launch{Scalars: c.Scalars, Counters: c.Counters}
	for i, a := range c.Storage() {
		data := kerneltest.Encode(a.DType, c.Arrays[i])
		l.Arrays = append(l.Arrays, sim.Binding{Buffer: data, Bytes: len(data)})
	}
	return l
}

func results(c *kerneltest.Case, l sim.Launch) [][]float64 {
	var out [][]float64
	for i, a := range c.Storage() {
		out = append(out, kerneltest.Decode(a.DType, l.Arrays[i].Buffer))
	}
	return out
}

func TestRunEqualsPlainLoops(t *testing.T) {
	for _, c := range slices.Concat(kerneltest.Cases(), kerneltest.Wide(), kerneltest.AtomicFloats(), kerneltest.Relays(), kerneltest.Half(), kerneltest.Products(), kerneltest.HalfProducts(), kerneltest.Fragments()) {
		t.Run(c.Kernel.Name, func(t *testing.T) {
			l := launch(c)
			if err := sim.Run(c.Kernel, l, sim.Options{ZeroDivisors: true}); err != nil {
				t.Fatal(err)
			}
			if err := c.Compare(results(c, l)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSubgroupsOfEverySize(t *testing.T) {
	sizes := [2]int{4, 128}
	for lanes := sizes[0]; lanes <= sizes[1]; lanes *= 2 {
		t.Run(strconv.Itoa(lanes), func(t *testing.T) {
			li := loop.LocalIndex(128)
			k := &loop.Kernel{
				Name: "sums", Workgroup: [3]int{128, 1, 1}, Groups: [3]int{1, 1, 1}, Subgroup: sizes,
				Arrays: []loop.Array{{Name: "y", DType: dtype.I32, Width: 1, Len: 256, Access: loop.ReadWrite}},
				Body: []loop.Stmt{
					&loop.Subgroup{Op: scalar.OpAdd, Name: "sum", Value: li},
					store(0, li, scalar.FreeVar("sum", dtype.I32)),
					store(0, scalar.Add(li, i32(128)), loop.Lane(sizes)),
				},
			}
			b := sim.Binding{Buffer: make([]byte, 1024), Bytes: 1024}
			if err := sim.Run(k, sim.Launch{Arrays: []sim.Binding{b}}, sim.Options{Subgroup: lanes}); err != nil {
				t.Fatal(err)
			}
			y := kerneltest.Decode(dtype.I32, b.Buffer)
			for i := range 128 {
				start := i / lanes * lanes
				if want := float64(lanes*start + lanes*(lanes-1)/2); y[i] != want {
					t.Fatalf("sum of thread %d is %v, not %v", i, y[i], want)
				}
				if want := float64(i % lanes); y[128+i] != want {
					t.Fatalf("thread %d has lane %v, not %v", i, y[128+i], want)
				}
			}
		})
	}
}

func TestSampleRunsFirstLastAndRandomGroups(t *testing.T) {
	const n = 100
	k := &loop.Kernel{
		Name: "mark", Workgroup: [3]int{1, 1, 1}, Groups: [3]int{10, 10, 1},
		Arrays: []loop.Array{{Name: "y", DType: dtype.F32, Width: 1, Len: n, Access: loop.ReadWrite}},
		Body: []loop.Stmt{
			store(0, scalar.Add(scalar.Mul(loop.GroupID(1, 10), i32(10)), loop.GroupID(0, 10)), f32(1)),
		},
	}
	b := sim.Binding{Buffer: make([]byte, 4*n), Bytes: 4 * n}
	if err := sim.Run(k, sim.Launch{Arrays: []sim.Binding{b}}, sim.Options{Sample: 4}); err != nil {
		t.Fatal(err)
	}
	var ran []int
	for i, y := range kerneltest.Decode(dtype.F32, b.Buffer) {
		if y == 1 {
			ran = append(ran, i)
		}
	}
	if len(ran) != 4 || ran[0] != 0 || ran[3] != n-1 {
		t.Errorf("workgroups %d ran", ran)
	}
}

// A kernel runs repeatedly with different counters, as in a repeat.
func TestKernelOfARepeatReadsItsCount(t *testing.T) {
	c := kernelNamed("slice_by_counter")
	p, err := sim.Prepare(c.Kernel)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		l := launch(c)
		l.Counters = []int{0, i}
		if err := p.Run(l, sim.Options{}); err != nil {
			t.Fatal(err)
		}
		if y := results(c, l)[1][2]; y != -3*c.Arrays[0][16*i+2] {
			t.Errorf("count %d gives %v", i, y)
		}
	}
}

// TestRunsOfAProgramAreIndependent runs a kernel in turns so that its threads write workgroup memory, and so that
// they read it and an element that only the larger window has.
func TestRunsOfAProgramAreIndependent(t *testing.T) {
	li := loop.LocalIndex(2)
	k := &loop.Kernel{
		Name: "turns", Workgroup: [3]int{2, 1, 1}, Groups: [3]int{1, 1, 1}, Counters: 1,
		Arrays: []loop.Array{
			{Name: "x", DType: dtype.F32, Width: 1},
			{Name: "s", DType: dtype.F32, Width: 1, Len: 2, Space: loop.Shared},
		},
		Body: []loop.Stmt{
			&loop.If{
				Cond: scalar.Eq(loop.Counter(0), i32(0)),
				Then: []loop.Stmt{store(1, li, scalar.LoadAt(0, dtype.F32, scalar.Add(li, i32(4))))},
				Else: []loop.Stmt{&loop.Let{Name: "read", Value: scalar.LoadAt(1, dtype.F32, li)}},
			},
		},
	}
	p, err := sim.Prepare(k)
	if err != nil {
		t.Fatal(err)
	}
	const none = sim.Kind(255)
	for i, c := range []struct {
		counter, elements int
		fault             sim.Kind
	}{{0, 6, none}, {1, 6, sim.Uninitialised}, {0, 6, none}, {0, 4, sim.OutOfBounds}, {0, 6, none}} {
		window := sim.Binding{Buffer: make([]byte, 4*c.elements), Bytes: 4 * c.elements}
		err := p.Run(sim.Launch{Arrays: []sim.Binding{window}, Counters: []int{c.counter}}, sim.Options{})
		var f *sim.Fault
		if errors.As(err, &f) != (c.fault != none) || f != nil && f.Kind != c.fault || f == nil && err != nil {
			t.Errorf("run %d: %v", i, err)
		}
	}
}

func BenchmarkMatmul(b *testing.B) {
	c := kernelNamed("matmul_64")
	for b.Loop() {
		if err := sim.Run(c.Kernel, launch(c), sim.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	flops := 2 * 64 * 128 * 64
	b.ReportMetric(float64(flops)*float64(b.N)/b.Elapsed().Seconds()/1e6, "MFLOP/s")
}

// TestCounts counts two accesses of a workgroup of 64 threads: loads of every eighth element of
// storage, 32 sectors per warp, and stores to shared memory with a stride of 2 words, a two-way
// bank conflict.
func TestCounts(t *testing.T) {
	const threads = 64
	lane := loop.LocalID(0, threads)
	k := &loop.Kernel{
		Name: "counts", Workgroup: [3]int{threads, 1, 1}, Groups: [3]int{2, 1, 1},
		Arrays: []loop.Array{
			{Name: "x", DType: dtype.F32, Width: 1, Len: 8 * threads},
			{Name: "s", DType: dtype.F32, Width: 1, Len: 2 * threads, Space: loop.Shared},
		},
		Body: []loop.Stmt{
			&loop.Store{Array: 1, At: scalar.Mul(lane, loop.Int(2)), Value: scalar.LoadAt(0, dtype.F32, scalar.Mul(lane, loop.Int(8)))},
			&loop.Barrier{},
		},
	}
	var c sim.Counts
	data := make([]byte, 4*8*threads)
	if err := sim.Run(k, sim.Launch{Arrays: []sim.Binding{{Buffer: data, Bytes: len(data)}}}, sim.Options{Counts: &c}); err != nil {
		t.Fatal(err)
	}
	want := sim.Counts{Read: 2 * 4 * threads, Requests: 4, Sectors: 4 * 32, Shared: 4, Conflicts: 4, Barriers: 2, Groups: 2}
	if c != want {
		t.Errorf("%+v, not %+v", c, want)
	}
}

// TestAssignmentsChangeActiveThreads assigns to a variable in every other thread: the others keep
// their values.
func TestAssignmentsChangeActiveThreads(t *testing.T) {
	li, x := loop.LocalIndex(8), scalar.FreeVar("x", dtype.I32)
	k := &loop.Kernel{
		Name: "some", Workgroup: [3]int{8, 1, 1}, Groups: [3]int{1, 1, 1},
		Arrays: []loop.Array{{Name: "y", DType: dtype.I32, Width: 1, Len: 8, Access: loop.ReadWrite}},
		Body: []loop.Stmt{
			&loop.Var{Name: "x", Init: li},
			when(scalar.Eq(scalar.Rem(li, i32(2)), i32(1)), &loop.Assign{Name: "x", Value: scalar.Add(x, i32(10))}),
			store(0, li, x),
		},
	}
	y := make([]byte, 8*4)
	if err := sim.Run(k, sim.Launch{Arrays: []sim.Binding{{Buffer: y, Bytes: len(y)}}}, sim.Options{}); err != nil {
		t.Fatal(err)
	}
	want := []float64{0, 11, 2, 13, 4, 15, 6, 17}
	if got := kerneltest.Decode(dtype.I32, y); !slices.Equal(got, want) {
		t.Errorf("the values are %v, not %v", got, want)
	}
}
