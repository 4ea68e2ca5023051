package tally

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The workgroups of a kernel that are sampled, and the warps of each.
const (
	sampledGroups = 4
	sampledWarps  = 2
)

// Of returns what all workgroups of a kernel do, by a sample of its warps. The kernel must pass [loop.Check].
func Of(k *loop.Kernel) Counts {
	m := newMachine(k)
	groups := k.Groups[0] * k.Groups[1] * k.Groups[2]
	sampled := min(groups, sampledGroups)
	var all Counts
	for i := range sampled {
		m.group(at(i, sampled, groups))
		for _, s := range samplesOf(k, i) {
			m.run(s.warp)
			all = all.plus(m.counts, s.stands*float64(groups)/float64(sampled))
		}
	}
	return all
}

// at returns a position in part i of some parts of a number, another one in each part: kernels have periods.
func at(i, parts, n int) int {
	from, to := i*n/parts, (i+1)*n/parts
	return from + (i+1)*prime%(to-from)
}

// prime has no divisor in common with the periods of kernels.
const prime = 10007

// sample is a warp of a workgroup, and for how many it stands.
type sample struct {
	warp   int
	stands float64
}

// samplesOf returns the first warp of each role, or some of a workgroup, others for each group.
func samplesOf(k *loop.Kernel, group int) (out []sample) {
	for _, s := range k.Body {
		if roles, ok := s.(*loop.Roles); ok {
			first := 0
			for _, r := range roles.List {
				out = append(out, sample{first / warp, float64(r.Threads) / warp})
				first += r.Threads
			}
			return out
		}
	}
	warps := (k.Threads() + warp - 1) / warp
	n := min(warps, sampledWarps)
	for i := range n {
		first, next := i*warps/n, (i+1)*warps/n
		out = append(out, sample{first + group%(next-first), float64(warps) / float64(n)})
	}
	return out
}

// machine runs warps of a kernel.
type machine struct {
	k       *loop.Kernel
	nodes   map[key]*node
	known   map[scalar.Expr]*node
	names   map[string]*variable
	private map[int]map[int64]*column // contents of private arrays of integers, by array
	counts  Counts
	weight  float64 // for how many executions the current one stands
	clock   int64   // counts definitions
	since   int64   // the clock at the current statement
	began   int64   // the clock at the start of the warp
	near    map[int64]struct{}
	last    map[any][]int64
	sectors []int64
	first   int // thread of the warp
	active  uint32
}

func newMachine(k *loop.Kernel) *machine {
	return &machine{k: k, nodes: map[key]*node{}, known: map[scalar.Expr]*node{}, names: map[string]*variable{}}
}

// group begins a workgroup.
func (m *machine) group(i int) {
	m.near = map[int64]struct{}{}
	n := m.k.Groups
	for axis, at := range [3]int{i % n[0], i / n[0] % n[1], i / n[0] / n[1]} {
		m.set(loop.GroupID(axis, n[axis]), uniform(int64(at)))
	}
}

// run counts what a warp of the workgroup does.
func (m *machine) run(number int) {
	m.counts, m.weight, m.first, m.began = Counts{}, 1, number*warp, m.clock
	m.last, m.private = map[any][]int64{}, map[int]map[int64]*column{}
	threads := min(warp, m.k.Threads()-m.first)
	m.active = 1<<threads - 1
	size := m.k.Workgroup
	thread := func(f func(t int) int) *column {
		c := new(column)
		for lane := range warp {
			c.v[lane] = int64(f(m.first + lane))
		}
		return c
	}
	m.set(loop.LocalID(0, size[0]), thread(func(t int) int { return t % size[0] }))
	m.set(loop.LocalID(1, size[1]), thread(func(t int) int { return t / size[0] % size[1] }))
	m.set(loop.LocalID(2, size[2]), thread(func(t int) int { return t / size[0] / size[1] }))
	m.set(loop.LocalIndex(m.k.Threads()), thread(func(t int) int { return t }))
	if lanes := m.k.Subgroup[1]; lanes > 0 {
		m.set(loop.Lane(m.k.Subgroup), thread(func(t int) int { return t % lanes }))
		m.set(loop.SubgroupIndex(m.k.Threads()/lanes), thread(func(t int) int { return t / lanes }))
	}
	m.block(m.k.Body, m.active)
}

// set gives a built-in variable its value.
func (m *machine) set(e scalar.Expr, c *column) {
	if e.Op == scalar.OpVar {
		m.define(e.Name, nil, c)
	}
}

// define gives a variable a new value, nil for one that is not known.
func (m *machine) define(name string, from *node, c *column) *variable {
	v := m.variable(name)
	m.clock++
	v.from, v.value, v.changed = from, c, m.clock
	return v
}

func (m *machine) variable(name string) *variable {
	v := m.names[name]
	if v == nil {
		v = &variable{}
		m.names[name] = v
	}
	return v
}

// block runs statements for the active lanes.
func (m *machine) block(body []loop.Stmt, active uint32) {
	for _, s := range body {
		if active == 0 {
			return
		}
		m.active, m.since = active, m.clock
		m.clock++
		m.statement(s, active)
	}
}

// statement runs one statement.
func (m *machine) statement(s loop.Stmt, active uint32) {
	switch s := s.(type) {
	case *loop.Let:
		m.let(s.Name, s.Value)
	case *loop.Var:
		m.define(s.Name, nil, m.eval(s.Init))
	case *loop.Assign:
		m.define(s.Name, nil, m.variable(s.Name).value.with(m.eval(s.Value), active))
	case *loop.Store:
		m.store(s, active)
	case *loop.LoadVec:
		a := m.k.Arrays[s.Array]
		m.access(s, s.Array, m.eval(s.At), a.Width*loop.DeviceSize(a.DType), a.Width*loop.DeviceSize(a.DType), active, false)
		for i, name := range s.Names {
			m.define(name, nil, m.contents(a, m.eval(s.At), i))
		}
	case *loop.StoreVec:
		for _, x := range s.Values {
			m.eval(x)
		}
		a := m.k.Arrays[s.Array]
		m.access(s, s.Array, m.eval(s.At), a.Width*loop.DeviceSize(a.DType), a.Width*loop.DeviceSize(a.DType), active, true)
	case *loop.For:
		m.loop(s, active)
	case *loop.If:
		m.branch(s, active)
	case *loop.Barrier:
		m.counts.Barriers += m.weight
	case *loop.AtomicOp:
		a := m.k.Arrays[s.Array]
		m.eval(s.Value)
		size := loop.DeviceSize(a.DType)
		m.access(s, s.Array, m.eval(s.At), size, size, active, true)
		if s.Old != "" {
			m.define(s.Old, nil, m.contents(a, m.eval(s.At), 0))
		}
	default:
		m.together(s, active)
	}
}

// together runs the statements of warps and of matrix units.
func (m *machine) together(s loop.Stmt, active uint32) {
	switch s := s.(type) {
	case *loop.Subgroup:
		m.eval(s.Value)
		m.exchange(s.Name, 5) // by halves
	case *loop.Shuffle:
		m.eval(s.Value)
		m.exchange(s.Name, 1)
	case *loop.Pack:
		m.eval(s.Low)
		m.eval(s.High)
		m.counts.Issued += m.weight
		m.define(s.Name, nil, nil)
	case *loop.FragmentMulAdd:
		m.counts.Products[2] += m.weight * 2 * loop.FragmentSize * loop.FragmentSize * loop.FragmentSize
	case *loop.Mma:
		m.mma(s)
	case *loop.CopyAsync:
		m.copyAsync(s, active)
	case *loop.CopyTMA:
		b := &m.k.TensorMaps[s.Map]
		m.counts.Copied += m.weight * float64(b.Elements()*loop.DeviceSize(m.k.Arrays[b.Array].DType)) / hardware.SectorBytes
	case *loop.Roles:
		first := 0
		for _, r := range s.List {
			if m.first >= first && m.first < first+r.Threads {
				m.block(r.Body, active)
			}
			first += r.Threads
		}
	}
}

// exchange counts instructions of the memory unit that exchange values between lanes, and their result.
func (m *machine) exchange(name string, n float64) {
	m.counts.Issued += n * m.weight
	m.counts.Lines += n * m.weight
	m.define(name, nil, nil)
}

// mma counts the part of a warp of multiply-adds of a group of four.
func (m *machine) mma(s *loop.Mma) {
	for _, t := range s.Terms {
		if t.LeftRegisters == nil {
			m.eval(t.A.At)
		}
		m.eval(t.B.At)
	}
	n := 2 * float64(loop.MmaRows*s.Shape.N*s.Shape.K()) * float64(len(s.Terms)) / (loop.WarpGroup / warp)
	if s.Shape.Operand == dtype.F32 {
		n *= 2
	}
	tile := 0
	for tile < 2 && s.Shape.N < 256>>tile {
		tile++
	}
	m.counts.Products[tile] += m.weight * n
}

func (m *machine) copyAsync(s *loop.CopyAsync, active uint32) {
	m.eval(s.ToAt)
	if s.Valid != nil {
		if c := m.eval(s.Valid); c != nil && !c.guess {
			active &= c.mask()
		}
	}
	size := loop.DeviceSize(m.k.Arrays[s.From].DType)
	m.access(s, s.From, m.eval(s.FromAt), size, s.Count*size, active, false)
}

// let defines a name. It keeps its value, and so what depends on it, if nothing has changed.
func (m *machine) let(name string, e scalar.Expr) {
	n := m.node(e)
	v := m.variable(name)
	same := v.from == n && m.valid(n) && v.changed >= n.computed
	c := m.value(n)
	if !same {
		m.define(name, n, c)
	}
}

func (m *machine) store(s *loop.Store, active uint32) {
	a, at, value := m.k.Arrays[s.Array], m.eval(s.At), m.eval(s.Value)
	if a.Space == loop.Private {
		if !a.DType.IsFloat() {
			m.keep(s.Array, at, value)
		}
		return
	}
	size := loop.DeviceSize(a.DType)
	m.access(s, s.Array, at, size, size, active, true)
}

// keep stores an integer in a private array.
func (m *machine) keep(array int, at, value *column) {
	if m.private[array] == nil {
		m.private[array] = map[int64]*column{}
	}
	m.private[array][at.at(0)] = value
	m.private[array][anywhere] = value
}

// anywhere names the last value that a private array got.
const anywhere = -1

// loop runs two iterations: the second stands for all after it. One whose bounds depend on data is run once.
func (m *machine) loop(s *loop.For, active uint32) {
	start, end := m.eval(s.Start), m.eval(s.End)
	step, _ := s.Step.IntConst()
	trips, data := int64(0), start.isData() || end.isData()
	for lane := range warp {
		if active>>lane&1 != 0 {
			trips = max(trips, (end.at(lane)-start.at(lane)+step-1)/step)
		}
	}
	if data {
		trips = 1
	}
	overhead := Ops{Issued: 0.5, Int: 0.5} // compilers unroll loops
	if s.Unroll {
		overhead = Ops{}
	}
	weight := m.weight
	runs := min(trips, 2)
	if s.Unroll && trips <= maxUnrolled && m.keeps(s.Body) {
		runs = trips
	}
	for i := range runs {
		if i == runs-1 {
			m.weight = weight * float64(trips-i)
		}
		m.iteration(s, start, i*step, end, active, data)
		m.counts.Ops = m.counts.Ops.Plus(overhead, m.weight)
	}
	m.weight = weight
}

// maxUnrolled bounds the iterations of a loop that are all run since they fill private arrays of integers.
const maxUnrolled = 32

// keeps reports whether statements fill private arrays of integers.
func (m *machine) keeps(body []loop.Stmt) (found bool) {
	loop.WalkStores(body, func(array int) {
		found = found || m.k.Arrays[array].Space == loop.Private && !m.k.Arrays[array].DType.IsFloat()
	})
	return found
}

func (m *machine) iteration(s *loop.For, start *column, offset int64, end *column, active uint32, data bool) {
	v, running := &column{uniform: start != nil && start.uniform, data: data}, active
	for lane := range warp {
		v.v[lane] = start.at(lane) + offset
		if !data && v.v[lane] >= end.at(lane) {
			running &^= 1 << lane
		}
	}
	m.define(s.Var, nil, v).unrolled = s.Unroll
	m.block(s.Body, running)
}

func (m *machine) branch(s *loop.If, active uint32) {
	then, otherwise := active, active
	if c := m.eval(s.Cond); c != nil && !c.guess {
		then, otherwise = active&c.mask(), active&^c.mask()
	}
	m.counts.Issued += m.weight
	m.block(s.Then, then)
	m.block(s.Else, otherwise)
}
