package sim

import (
	"fmt"

	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Binding is the window of a buffer that a storage array is bound to. Windows of one buffer,
// identified by its first byte, may overlap: races between arrays that share memory are found.
// Elements are little endian, a Bool is a 32-bit word.
type Binding struct {
	Buffer        []byte
	Offset, Bytes int
}

// Launch holds the arguments of one dispatch of a kernel.
type Launch struct {
	// Arrays are the windows of the storage arrays, in order.
	Arrays []Binding
	// Scalars are the values of the kernel's Scalars, Counters those of the
	// enclosing repeats, outermost first.
	Scalars  []scalar.Value
	Counters []int
}

// Options configure the simulation. The zero value is valid.
type Options struct {
	// Subgroup is the subgroup size; 0 means the smallest that the kernel supports.
	Subgroup int
	// Sample bounds the number of workgroups that run, spread evenly over the grid and
	// including the first and the last; 0 runs all.
	Sample int
	// ZeroDivisors allows integer division by zero, with the result for the divisor 1: for
	// kernels that divide user data.
	ZeroDivisors bool
	// Counts, if set, accumulates performance counters.
	Counts *Counts
}

// Run simulates one dispatch and stores its results in the bound buffers. The error is a
// *loop.CheckError for an invalid kernel, a *LaunchError for arguments that do not fit it, or a
// *Fault.
func Run(k *loop.Kernel, l Launch, o Options) error {
	p, err := Prepare(k)
	if err != nil {
		return err
	}
	return p.Run(l, o)
}

// PreparedKernel is a kernel that is checked and translated to functions once, for several dispatches, one at a time.
type PreparedKernel struct {
	m    *machine
	body executor
}

// Prepare checks and translates a kernel. The errors are those of [Run] that no launch changes.
func Prepare(k *loop.Kernel) (*PreparedKernel, error) {
	if err := loop.Check(k); err != nil {
		return nil, err
	}
	return prepareUnchecked(k)
}

// prepareUnchecked is [Prepare] without [loop.Check].
func prepareUnchecked(k *loop.Kernel) (*PreparedKernel, error) {
	c := newCompiler(k)
	body := c.block(k.Body)
	if c.err != nil {
		return nil, c.err
	}
	return &PreparedKernel{c.m, body}, nil
}

// Run is [Run] of the program's kernel. Nothing but the bound buffers is passed from one run to the next.
func (p *PreparedKernel) Run(l Launch, o Options) error {
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
		m.checkSettled()
		if m.fault != nil {
			return m.fault
		}
	}
	return nil
}

// executor executes a piece of the kernel for the active threads, in ascending order. It returns
// early if the machine has a fault.
type executor func(active []int32)

// machine is the state of the running workgroup.
type machine struct {
	clocks
	k       *loop.Kernel
	threads int
	all     []int32 // every thread
	arrays  []*array
	status  *array // the status words of checks, nil if there are none
	builtin map[string]column
	opts    Options
	lanes   int // subgroup size

	group int32  // linear index of the workgroup, plus 1
	first uint32 // the workgroup's first epoch
	at    string // path of the current statement
	fault *Fault

	copies    copies
	mbarriers mbarriers
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

// position returns the value for thread t of a built-in variable that does not depend on the
// workgroup.
func (m *machine) position(kind loop.Builtin, axis, t int) int64 {
	size := m.k.Workgroup
	switch kind {
	case loop.BuiltinLocalID:
		return int64([3]int{t % size[0], t / size[0] % size[1], t / size[0] / size[1]}[axis])
	case loop.BuiltinLane:
		return int64(t % m.lanes)
	case loop.BuiltinSubgroupIndex:
		return int64(t / m.lanes)
	}
	return int64(t)
}

// start begins the workgroup with the given linear index.
func (m *machine) start(group int) {
	m.group = int32(group) + 1
	m.epoch++
	m.first = m.epoch
	m.resetAsync()
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
