package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/loop"
)

// textPrinter prints kernels in the text form of the loop IR.
type textPrinter struct{}

func (textPrinter) Dialect() dtype.Dialect               { return dtype.WGSL }
func (textPrinter) Print(k *loop.Kernel) (string, error) { return k.String(), nil }

// TestMemoryOfRandomGraphsKeepsLiveValues follows the steps of plans and keeps
// for every place the tensor that was written there last. Operands of kernels
// and results must not be overwritten before they are read.
func TestMemoryOfRandomGraphsKeepsLiveValues(t *testing.T) {
	steps := 0
	for seed := range uint64(300) {
		g, _ := irtest.RandomGraph(rand.New(rand.NewPCG(seed, 7)), 3+int(seed)%60)
		target := WebGPU()
		target.Unfused = seed%2 == 1
		if seed%3 > 0 {
			target.Branch = 1
		}
		if withArena && seed%4 > 1 { // as on CUDA
			target.Name, target.OneArena = "one arena", true
		}
		ec := compileEntry(t, g, target)
		m := newMemory(ec)
		if m.follow(ec.entry.Steps, 0); m.next != len(ec.launches) {
			t.Errorf("seed %d: %d dispatches for %d launches", seed, m.next, len(ec.launches))
		}
		for _, o := range ec.partition.Outputs {
			if o != nil {
				m.read("the host", o)
			}
		}
		if len(m.faults) > 0 {
			t.Errorf("seed %d: %s", seed, strings.Join(m.faults, "\n"))
		}
		steps += len(ec.launches)
	}
	if steps < 1000 {
		t.Errorf("%d kernels in all: the graphs are too small to tell", steps)
	}
}

func compileEntry(t *testing.T, g *ir.Graph, target Target) *entryCompiler {
	t.Helper()
	e := ir.Entry{Name: "run", Graph: g}
	m, err := ir.NewModule("m", e)
	if err != nil {
		t.Fatal(err)
	}
	c := newCompiler(m, target, textPrinter{})
	p, err := c.fuse(e)
	if err != nil {
		t.Fatal(err)
	}
	ec := c.newEntry(e, p)
	if err := ec.compile(); err != nil {
		t.Fatal(err)
	}
	return ec
}

// memory records which tensor occupies which row of RowBytes.
type memory struct {
	ec     *entryCompiler
	owner  map[place]*fusion.Tensor
	next   int // the launch of the next dispatch
	faults []string
}

type place struct{ buffer, row int }

// newMemory returns the memory before a run: ports and constants are there.
func newMemory(ec *entryCompiler) *memory {
	m := &memory{ec: ec, owner: map[place]*fusion.Tensor{}}
	for t := range ec.regions {
		if t.Port != nil || t.Constant != nil {
			m.write(t)
		}
	}
	return m
}

func (m *memory) rows(t *fusion.Tensor) (out []place) {
	r, ok := m.ec.regions[t]
	if !ok {
		m.faults = append(m.faults, fmt.Sprintf("%s has no place", t.Name))
	}
	for at := r.offset; at < r.offset+t.Bytes(); at += RowBytes {
		out = append(out, place{r.buffer, at / RowBytes})
	}
	return out
}

func (m *memory) write(t *fusion.Tensor) {
	for _, p := range m.rows(t) {
		m.owner[p] = t
	}
}

func (m *memory) read(by string, t *fusion.Tensor) {
	for _, p := range m.rows(t) {
		if o := m.owner[p]; o != t {
			found := "nothing"
			if o != nil {
				found = o.Name
			}
			m.faults = append(m.faults, fmt.Sprintf("%s reads %s at %v and finds %s", by, t.Name, p, found))
			return
		}
	}
}

// follow runs steps inside depth loops, those of a repeat two or three times: that covers values
// passed between iterations, and the results of the last one.
func (m *memory) follow(steps []Step, depth int) {
	for _, s := range steps {
		switch s := s.(type) {
		case *Dispatch:
			m.dispatch(s)
		case *Repeat:
			swaps := m.ec.launches[m.next].loops[depth].swaps
			first, rounds := m.next, min(s.Count, 2+s.Count%2)
			for i := range rounds {
				if i > 0 {
					m.swap(swaps)
				}
				m.next = first
				m.follow(s.Iteration(i), depth+1)
			}
			if rounds%2 == 0 {
				m.swap(swaps)
			}
		}
	}
}

// swap lets the two places of each pair change roles.
func (m *memory) swap(pairs [][2]*fusion.Tensor) {
	for _, p := range pairs {
		a, b := p[0].Root(), p[1].Root()
		for _, at := range slices.Concat(m.rows(a), m.rows(b)) {
			switch m.owner[at] {
			case a:
				m.owner[at] = b
			case b:
				m.owner[at] = a
			}
		}
	}
	m.ec.swap(pairs)
}

// dispatch checks the reads before and after the writes: none may overlap a write.
func (m *memory) dispatch(d *Dispatch) {
	l := m.ec.launches[m.next]
	m.next++
	var read, written []*fusion.Tensor
	touch := func(t *fusion.Tensor, stored bool) {
		switch {
		case t == nil:
			return
		case stored:
			written = append(written, t)
		default:
			read = append(read, t)
		}
		m.bound(d, t, stored)
	}
	for _, part := range l.Parts {
		for i, t := range part.Args {
			touch(t, part.Written[i])
		}
	}
	if len(l.Parts) == 0 {
		for i, t := range l.Args {
			touch(t, l.Kernel.Arrays[i].Access != loop.Read)
		}
	}
	m.readAll(l.Kernel.Name, read)
	for _, t := range written {
		m.write(t)
	}
	m.readAll(l.Kernel.Name, read)
}

func (m *memory) readAll(by string, tensors []*fusion.Tensor) {
	for _, t := range tensors {
		m.read(by, t)
	}
}

// bound checks that a dispatch has a window onto a tensor, through which it can
// write where it has to.
func (m *memory) bound(d *Dispatch, t *fusion.Tensor, written bool) {
	r := m.ec.regions[t]
	for i, b := range d.Bindings {
		inside := b.Buffer == r.buffer && b.Offset <= r.offset && r.offset+r.bytes <= b.Offset+b.Bytes
		if inside && (!written || m.ec.plan.Kernels[d.Kernel].Storage[i] != loop.Read) {
			return
		}
	}
	m.faults = append(m.faults, fmt.Sprintf("%s: no binding for %s", m.ec.plan.Kernels[d.Kernel].Name, t.Name))
}

func TestPlansOfRandomGraphsAreFilesThatAreAlwaysTheSame(t *testing.T) {
	for seed := range uint64(100) {
		file := randomPlan(t, seed)
		if again := randomPlan(t, seed); string(again) != string(file) {
			t.Errorf("seed %d: compiled again, the plan is another", seed)
		}
		p, err := Decode(file)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if again, err := Encode(p); err != nil || string(again) != string(file) {
			t.Errorf("seed %d: decoded and encoded, the plan is another (%v)", seed, err)
		}
	}
}

func randomPlan(t *testing.T, seed uint64) []byte {
	t.Helper()
	g, _ := irtest.RandomGraph(rand.New(rand.NewPCG(seed, 8)), 3+int(seed)%40)
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(m, WebGPU(), textPrinter{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTensorsBeyondI32HaveTheirOwnBuffer: tensors that share a buffer may share a
// binding, in which indices are of 32 bits.
func TestTensorsBeyondI32HaveTheirOwnBuffer(t *testing.T) {
	const word = WordBytes
	most := capacity{tensor: 64 * word * RowBytes, buffer: 16 * word * RowBytes}
	tensor := func(rows int) *fusion.Tensor {
		return &fusion.Tensor{Name: "x", DType: ir.F32, Dims: []int{rows * word * RowBytes / 4}}
	}
	a := bumpAllocator{p: &Plan{}, kind: StateBuffer, capacity: most}
	p := liveRangeAllocator{p: &Plan{}, capacity: most, blocks: map[int][]block{}}
	var buffers [2][]int
	for i, rows := range []int{4, 20, 4, 64, 8, 4} {
		r, err := a.place(tensor(rows))
		if err != nil {
			t.Fatal(err)
		}
		buffers[0] = append(buffers[0], r.buffer)
		if r, err = p.place(&liveRange{t: tensor(rows), from: 0, to: 9, next: i}, nil); err != nil {
			t.Fatal(err)
		}
		buffers[1] = append(buffers[1], r.buffer)
	}
	if want := []int{0, 1, 0, 2, 0, 3}; !slices.Equal(buffers[0], want) {
		t.Errorf("states lie in buffers %v, not %v", buffers[0], want)
	}
	if got := buffers[1]; got[1] == got[0] || got[3] == got[0] || got[3] == got[1] || got[4] == got[3] || got[4] == got[1] {
		t.Errorf("values lie in buffers %v: long ones share them", got)
	}
	if _, err := a.place(tensor(65)); err == nil {
		t.Error("a tensor that no binding holds has a place")
	}
}

// TestPlacesOfThePastAreForgotten checks that the search for space is limited to live ranges: of
// many short lives in a row, and one that spans them all, few are left.
func TestPlacesOfThePastAreForgotten(t *testing.T) {
	a := liveRangeAllocator{p: &Plan{}, capacity: capacity{1 << 20, 1 << 20}, blocks: map[int][]block{}}
	long := &fusion.Tensor{DType: ir.F32, Dims: []int{16}}
	if _, err := a.place(&liveRange{t: long, to: 1000}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		r, err := a.place(&liveRange{t: long, from: i, to: i + 1, next: i}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if left := len(a.blocks[r.buffer]); left > 3 {
			t.Fatalf("%d places are kept for 3 that are in use", left)
		}
	}
	if bytes := a.p.Buffers[0].Bytes; bytes != 3*RowBytes {
		t.Errorf("%d bytes for three values at a time", bytes)
	}
}

// TestLivingValuesDoNotShareMemory places values of random sizes and lifetimes in the order in
// which they become live: no two that are live at the same time overlap.
func TestLivingValuesDoNotShareMemory(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := liveRangeAllocator{p: &Plan{}, capacity: capacity{1 << 20, 1 << 20}, blocks: map[int][]block{}}
		lives := make([]liveRange, 200)
		for i := range lives {
			from := i / 4
			size := &fusion.Tensor{DType: ir.F32, Dims: []int{1 + r.IntN(3*RowBytes/4)}}
			lives[i] = liveRange{t: size, from: from, to: from + r.IntN(5), next: from}
		}
		places := make([]region, len(lives))
		for i := range lives {
			var err error
			if places[i], err = p.place(&lives[i], nil); err != nil {
				t.Fatal(err)
			}
			for j := range i {
				a, b := places[i], places[j]
				together := lives[j].to >= lives[i].from
				if together && a.buffer == b.buffer && a.offset < b.offset+b.bytes && b.offset < a.offset+a.bytes {
					t.Fatalf("seed %d: value %d at %+v lies over value %d at %+v, which lives until %d", seed, i, a, j, b, lives[j].to)
				}
			}
		}
	}
}
