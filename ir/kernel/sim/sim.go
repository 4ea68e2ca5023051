package sim

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Binding is the window of a buffer that a storage array is bound to. Windows
// of one buffer, recognised by its first byte, may overlap: a race between two
// arrays that share memory is found too. Elements are little endian, a Bool is
// a 32-bit word.
type Binding struct {
	Buffer        []byte
	Offset, Bytes int
}

// Launch is what one dispatch of a kernel gets.
type Launch struct {
	// Arrays has a window for each storage array, in order.
	Arrays []Binding
	// Scalars are the values of the kernel's Scalars, Counters those of the
	// enclosing repeats, outermost first.
	Scalars  []scalar.Value
	Counters []int
}

// Options say how a kernel is simulated. The zero value is fine.
type Options struct {
	// Subgroup is the number of threads in a subgroup; 0 is the smallest that
	// the kernel is right for.
	Subgroup int
	// Sample bounds how many workgroups run, spread evenly over the grid with
	// the first and the last among them; 0 runs all.
	Sample int
	// ZeroDivisors allows division of integers by zero, which gives what the
	// divisor 1 would: for kernels that divide what users bring.
	ZeroDivisors bool
	// Counts, where set, is added to.
	Counts *Counts
}

// Kind is a kind of fault.
type Kind uint8

// The kinds of fault.
const (
	// OutOfBounds: an index outside its array.
	OutOfBounds Kind = iota
	// Race: two threads of a workgroup touch an element, one of them writes,
	// and there is no barrier in between.
	Race
	// GroupRace: a workgroup touches what another one writes.
	GroupRace
	// DivergentBarrier: a barrier or subgroup operation that only some threads
	// of a workgroup come to.
	DivergentBarrier
	// Uninitialised: shared or private memory is read before it is written.
	Uninitialised
	// ZeroDivisor: an integer is divided by zero.
	ZeroDivisor
	// Unfinished: memory or a variable is touched, or the kernel ends, while an
	// asynchronous copy or multiply-add works on it.
	Unfinished
	// Unfenced: a multiply-add reads shared memory that was stored to without a
	// proxy fence.
	Unfenced
	// Misaligned: a copy or a multiply-add begins at an address that is no
	// multiple of what it takes, or the threads of a warp group or of a fragment at
	// different ones.
	Misaligned
	// OutOfRange: a variable has a value outside the range stated where it is
	// used.
	OutOfRange
)

var kindNames = [...]string{
	"index out of bounds", "race between threads", "race between workgroups", "divergent barrier",
	"uninitialised memory", "division by zero",
	"asynchronous work not waited for", "no proxy fence before an asynchronous read", "misaligned address", "variable out of range",
}

// String returns the kind in words.
func (k Kind) String() string { return kindNames[k] }

// Fault is something a kernel must not do.
type Fault struct {
	Kind   Kind
	Kernel string
	Group  [3]int // of the thread
	Thread int    // local index of the thread; for a divergent barrier, one that did not come
	Array  string // array or variable, "" where it is about neither
	Index  int    // element of the array, or value of the variable
	Other  int    // of a race: the other thread, or linear number of the other workgroup; -1 for several
	Stmt   string // path of statements, from the outside in
}

// Error returns "kernel sum: race between threads: tile[3], thread 4 against 5
// of group [0 0 0], in for k > store tile".
func (f *Fault) Error() string {
	s := fmt.Sprintf("kernel %s: %s: ", f.Kernel, f.Kind)
	if f.Array != "" {
		s += fmt.Sprintf("%s[%d], ", f.Array, f.Index)
	}
	s += fmt.Sprintf("thread %d of group %d", f.Thread, f.Group)
	if f.Kind == Race || f.Kind == GroupRace {
		s += fmt.Sprintf(" against %d", f.Other)
	}
	return s + ", in " + f.Stmt
}

// LaunchError says why a kernel cannot be simulated at all.
type LaunchError struct {
	Kernel string
	Reason string
}

// Error returns "kernel sum: 2 arrays for 3 bindings".
func (e *LaunchError) Error() string { return "kernel " + e.Kernel + ": " + e.Reason }

// Run simulates one dispatch and leaves its results in the bound buffers. The
// error is a *loop.CheckError for a kernel that breaks a rule of the loop IR,
// a *LaunchError for a launch that does not fit it, or a *Fault.
func Run(k *loop.Kernel, l Launch, o Options) error {
	p, err := Compile(k)
	if err != nil {
		return err
	}
	return p.Run(l, o)
}

// Program is a kernel made ready for repeated simulation. One goroutine may
// use it at a time.
type Program struct {
	m    *machine
	body step
}

// Compile prepares a kernel. The error is a *loop.CheckError or, for complex
// numbers, a *LaunchError.
func Compile(k *loop.Kernel) (*Program, error) {
	if err := loop.Check(k); err != nil {
		return nil, err
	}
	c := newCompiler(k)
	body := c.block(k.Body)
	if c.err != nil {
		return nil, c.err
	}
	return &Program{m: c.m, body: body}, nil
}

// Run simulates one dispatch, see [Run].
func (p *Program) Run(l Launch, o Options) error {
	m := p.m
	if err := m.bind(l, o); err != nil {
		return err
	}
	total := m.k.Groups[0] * m.k.Groups[1] * m.k.Groups[2]
	count := total
	if o.Sample > 0 {
		count = min(count, o.Sample)
	}
	for i := range count {
		group := i
		if count > 1 {
			group = i * (total - 1) / (count - 1)
		}
		m.start(group)
		if o.Counts != nil {
			o.Counts.Groups++
		}
		p.body(m.all)
		m.settled()
		if m.fault != nil {
			return m.fault
		}
	}
	return nil
}

// step runs a piece of the kernel for the threads of active, in ascending
// order. It stops early where the machine has a fault.
type step func(active []int32)

// column holds the value of a variable or expression for each thread: f for
// floats, i for integers and bools.
type column struct {
	f []float64
	i []int64
}

// machine is the state of the workgroup that runs.
type machine struct {
	k       *loop.Kernel
	threads int
	all     []int32 // every thread
	arrays  []*array
	status  *array // for Check, nil without
	builtin map[string]column
	opts    Options
	lanes   int // threads in a subgroup

	group int32  // linear number of the workgroup, plus 1
	epoch uint32 // interval between barriers, never the same in two workgroups
	first uint32 // the workgroup's first epoch
	at    string // the statement that runs
	fault *Fault

	copies  [][]copyGroup  // by thread: those under way and, last, the open one
	stored  [][]place      // by thread: what it stored since its last proxy fence, where that matters
	batches []batch        // multiply-adds under way, oldest first
	held    map[string]int // by variable: how many of them it takes part in, until a wait names it; nil where there are none
}

func (m *machine) launchError(format string, args ...any) error {
	return &LaunchError{m.k.Name, fmt.Sprintf(format, args...)}
}

// bind attaches arrays, scalars and counters for one dispatch.
func (m *machine) bind(l Launch, o Options) error {
	m.opts, m.fault, m.lanes = o, nil, o.Subgroup
	if m.lanes == 0 {
		m.lanes = max(m.k.Subgroup[0], 1)
	}
	if sizes := m.k.Subgroup; sizes != [2]int{} && (m.lanes < sizes[0] || m.lanes > sizes[1] || m.lanes&(m.lanes-1) != 0) {
		return m.launchError("subgroups of %d, not %d to %d", m.lanes, sizes[0], sizes[1])
	}
	if len(l.Scalars) < len(m.k.Scalars) || len(l.Counters) < m.k.Counters {
		return m.launchError("%d scalars and %d counters, not %d and %d",
			len(l.Scalars), len(l.Counters), len(m.k.Scalars), m.k.Counters)
	}
	for name, c := range m.builtin {
		kind, i := loop.BuiltinOf(name)
		switch kind {
		case loop.BuiltinScalar:
			c.fill(l.Scalars[i])
		case loop.BuiltinCounter:
			c.fill(scalar.Value{I: int64(l.Counters[i])})
		default:
			for t := range m.threads {
				c.i[t] = m.position(kind, i, t)
			}
		}
	}
	return m.bindStorage(l.Arrays)
}

// position returns the value of a built-in variable of thread t that does not
// depend on the workgroup.
func (m *machine) position(kind loop.Builtin, axis, t int) int64 {
	size := m.k.Workgroup
	switch kind {
	case loop.BuiltinLocalID:
		return int64([3]int{t % size[0], t / size[0] % size[1], t / size[0] / size[1]}[axis])
	case loop.BuiltinLane:
		return int64(t % m.lanes)
	case loop.BuiltinSubgroupSize:
		return int64(m.lanes)
	case loop.BuiltinSubgroupIndex:
		return int64(t / m.lanes)
	}
	return int64(t)
}

// start begins the workgroup with the given linear number.
func (m *machine) start(group int) {
	m.group = int32(group) + 1
	m.epoch++
	m.first = m.epoch
	m.forget()
	id := m.groupID()
	for name, c := range m.builtin {
		if kind, axis := loop.BuiltinOf(name); kind == loop.BuiltinGroupID {
			c.fill(scalar.Value{I: int64(id[axis])})
		}
	}
}

func (m *machine) groupID() [3]int {
	g, n := int(m.group)-1, m.k.Groups
	return [3]int{g % n[0], g / n[0] % n[1], g / n[0] / n[1]}
}

// fail records the first fault.
func (m *machine) fail(kind Kind, thread int32, array string, index, other int) {
	if m.fault == nil {
		m.fault = &Fault{kind, m.k.Name, m.groupID(), int(thread), array, index, other, m.at}
	}
}

func newColumn(t dtype.DType, n int) column {
	if t.IsFloat() {
		return column{f: make([]float64, n)}
	}
	return column{i: make([]int64, n)}
}

// fill gives all threads the same value.
func (c column) fill(v scalar.Value) {
	for t := range c.f {
		c.f[t] = v.F
	}
	for t := range c.i {
		c.i[t] = v.I
	}
}

// copyFrom copies the values of the active threads.
func (c column) copyFrom(from column, active []int32) {
	if c.f != nil {
		for _, t := range active {
			c.f[t] = from.f[t]
		}
		return
	}
	for _, t := range active {
		c.i[t] = from.i[t]
	}
}

// value returns the value of thread t.
func (c column) value(t int32) scalar.Value {
	if c.f != nil {
		return scalar.Value{F: c.f[t]}
	}
	return scalar.Value{I: c.i[t]}
}

func (c column) set(t int32, v scalar.Value) {
	if c.f != nil {
		c.f[t] = v.F
	} else {
		c.i[t] = v.I
	}
}
