package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// Version names this compiler in the plans it makes.
const Version = "rlx 0.2.0"

// Compile lowers a module to a plan for one target: passes, fusion, schedules,
// memory, and last the text of the kernels, because the access of a kernel's
// arrays depends on their buffers. All dimensions must be constant
// ([ir.Graph.Bind]). The same module and target give the same plan.
//
// Errors are of the kinds of package ir and name the node or the tensor:
// [ir.ErrUnsupported] for what the target cannot do or hold, [ir.ErrShape] for
// unbound symbols.
func Compile(m *ir.Module, t Target, pr Printer) (*Plan, error) {
	p, _, err := CompileKernels(m, t, pr)
	return p, err
}

// Printed is a kernel of a plan in the loop IR, as it was printed, and its draft or nil.
type Printed struct {
	*loop.Kernel
	Draft *loop.Kernel
	// Written reports for each storage array whether the kernel stores to it. The access of an array
	// may be wider: it is that of its buffer.
	Written []bool
}

// Partitions returns the fusion groups of each entry of a module on a target. The errors are those
// of [Compile].
func Partitions(m *ir.Module, t Target, pr Printer) ([]*fusion.Partition, error) {
	if m == nil || pr == nil {
		return nil, ir.Errorf(ir.ErrGraph, "no module or no printer given")
	}
	c := newCompiler(m, t, pr)
	var out []*fusion.Partition
	for _, e := range m.Entries {
		p, err := c.fuse(e)
		if err != nil {
			return nil, format.Errorf("entry %q of module %q: %w", e.Name, m.Name, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// CompileKernels is [Compile] that also returns the kernels in the loop IR, in the
// order of the plan's Kernels, for the simulator and for debugging.
func CompileKernels(m *ir.Module, t Target, pr Printer) (*Plan, []Printed, error) {
	if m == nil || pr == nil {
		return nil, nil, ir.Errorf(ir.ErrGraph, "no module or no printer given")
	}
	if err := checkOutputs(m); err != nil {
		return nil, nil, err
	}
	c := newCompiler(m, t, pr)
	for _, e := range m.Entries {
		if err := c.entry(e); err != nil {
			return nil, nil, format.Errorf("entry %q of module %q: %w", e.Name, m.Name, err)
		}
	}
	c.status()
	c.link()
	c.plan.Requires.Limits = c.plan.requiredLimits()
	if err := Validate(c.plan); err != nil {
		return nil, nil, err
	}
	return c.plan, c.printed, nil
}

// checkOutputs refuses outputs with the name of a parameter or state: a program reads both by name.
func checkOutputs(m *ir.Module) error {
	kept := map[string]bool{}
	for _, e := range m.Entries {
		for _, p := range e.Graph.Ports() {
			if p.Kind != ir.InputPort {
				kept[p.Name] = true
			}
		}
	}
	for _, e := range m.Entries {
		for _, o := range e.Graph.Outputs() {
			if !o.State && kept[o.Name] {
				return ir.Errorf(ir.ErrName, "entry %q of module %q: output %q has the name of a parameter or state; it must have one of its own", e.Name, m.Name, o.Name)
			}
		}
	}
	return nil
}

// link links the kernels of a binary dialect into one module.
func (c *compiler) link() {
	l, ok := c.printer.(Linker)
	if !ok {
		return
	}
	sources := make([]string, len(c.plan.Kernels))
	for i, k := range c.plan.Kernels {
		sources[i] = k.Source
	}
	code, names := l.Link(sources)
	c.plan.Code = code
	for i, name := range names {
		c.plan.Kernels[i].Source = name
	}
}

// compiler compiles one plan.
type compiler struct {
	plan         *Plan
	module       *ir.Module
	target       Target
	printer      Printer
	forms        *ir.Forms
	kept         []bool // which composites are not inlined, by their forms
	persistent   map[string]region
	slots        map[string]int // persistent slots by name
	cache        *sched.Cache   // makes the kernels of groups
	fuser        *sched.Fuser   // and those of parts
	kernelByKey  map[kernelKey]int
	kernelByText map[string]int // by access and source
	printed      []Printed
	states       bumpAllocator
	inputs       bumpAllocator
	constants    bumpAllocator
	temps        liveRangeAllocator
	gates        bumpAllocator
	codes        []StatusCode
	statusAt     int // the status buffer, -1 while there is none
}

func newCompiler(m *ir.Module, t Target, pr Printer) *compiler {
	p := &Plan{Name: m.Name, Compiler: Version, Target: t.Name}
	p.Requires.Limits, p.Requires.Features = t.Limits, slices.Clone(t.Features)
	maxSize := capacityOf(t.Limits)
	c := &compiler{
		plan: p, module: m, target: t, printer: pr, forms: ir.NewForms(),
		persistent: map[string]region{}, slots: map[string]int{},
		cache: sched.NewCache(t.Schedules), fuser: sched.NewFuser(t.Schedules, t.Caps), kernelByKey: map[kernelKey]int{}, kernelByText: map[string]int{},
		states:    bumpAllocator{p: p, kind: StateBuffer, capacity: maxSize},
		inputs:    bumpAllocator{p: p, kind: InputBuffer, capacity: maxSize},
		constants: bumpAllocator{p: p, kind: ConstantBuffer, capacity: maxSize},
		temps:     liveRangeAllocator{p: p, capacity: maxSize, blocks: map[int][]block{}},
		gates:     bumpAllocator{p: p, kind: TempBuffer, capacity: maxSize},
		statusAt:  -1,
	}
	c.keep(t.States)
	return c
}

// entryCompiler adds one entry.
type entryCompiler struct {
	*compiler
	partition *fusion.Partition
	entry     *Entry
	declared  *ir.Graph // as declared, complex values included
	launches  []placedLaunch
	regions   map[*fusion.Tensor]region
}

func (c *compiler) entry(e ir.Entry) error {
	p, err := c.fuse(e)
	if err != nil {
		return err
	}
	return c.newEntry(e, p).compile()
}

// compile adds the slots and steps of the entry. Kernels are made in two phases around the
// placement of memory: schedule makes those of groups, fuseParts those of parts, which are fused
// horizontally by the buffers that they bind. They are printed last, as the access of an array
// is that of its buffer.
func (c *entryCompiler) compile() error {
	for _, phase := range []func() error{
		c.schedule,              // groups → launches
		memoryPhase{c}.placeAll, // tensors → regions of buffers
		c.fuseParts,             // parts → launches
		c.makeGates,             // conditions → launches
		slotPhase{c}.addSlots,   // ports → what the host reads and writes
		c.addSteps,              // launches → printed kernels and dispatches
	} {
		if err := phase(); err != nil {
			return err
		}
	}
	return nil
}

// newEntry adds an empty entry to the plan, for the groups of p.
func (c *compiler) newEntry(e ir.Entry, p *fusion.Partition) *entryCompiler {
	c.plan.Entries = append(c.plan.Entries, Entry{Name: e.Name})
	c.addCodes(p.Checks)
	return &entryCompiler{
		compiler: c, partition: p, declared: e.Graph, entry: &c.plan.Entries[len(c.plan.Entries)-1],
		launches: make([]placedLaunch, 0, len(p.Items)), regions: make(map[*fusion.Tensor]region, len(p.Tensors)),
	}
}

// fuse simplifies the graph of an entry and partitions it into fusion groups.
func (c *compiler) fuse(e ir.Entry) (*fusion.Partition, error) {
	g, err := c.simplify(e.Graph)
	if err != nil {
		return nil, err
	}
	if err := c.require(g); err != nil {
		return nil, err
	}
	o := fusion.DefaultOptions
	o.Tensors = c.target.Limits.Tensors()
	o.FirstCode = len(c.codes) + 1
	o.Branch = c.target.Branch
	o.Unfused = c.target.Unfused
	o.Long = c.target.Long
	o.TensorCores = c.target.Mma
	o.Prologues = c.target.joinsLaunches() && o.Tensors >= prologueTensors
	o.Policy = c.target.fusionPolicy()
	return fusion.Build(g, o)
}

// simplify returns the graph after all passes, with sorts of indices that scatters share.
func (c *compiler) simplify(g *ir.Graph) (*ir.Graph, error) {
	g, err := c.simplifyTypes(g)
	if err != nil {
		return nil, err
	}
	simple := g
	if g, err = passes.ShareOrders(g); err != nil {
		return nil, err
	}
	if withArena && c.target.Mma {
		if g, err = passes.RoundedSigns(g); err != nil {
			return nil, err
		}
		if g, err = passes.ChannelsLast(g); err != nil {
			return nil, err
		}
		if g, err = passes.Narrow(g); err != nil {
			return nil, err
		}
	}
	if g == simple {
		return g, nil
	}
	return passes.Run(g, c.passOptions())
}

func (c *compiler) passOptions() passes.Options {
	return passes.Options{Claim: c.keepsComposite, Decompose: c.target.DecomposesScan}
}

// keepsComposite is [Target.keepsComposite], found once for nodes of one form: an op with kernels of its own makes
// them for the answer.
func (c *compiler) keepsComposite(n *ir.Node) bool {
	form := c.forms.Of(n)
	if form == len(c.kept) {
		c.kept = append(c.kept, c.target.keepsComposite(n))
	}
	return c.kept[form]
}

// simplifyTypes returns the graph after all passes but the last. Complex values become pairs if the
// target does not support them but supports their parts.
func (c *compiler) simplifyTypes(g *ir.Graph) (*ir.Graph, error) {
	o := c.passOptions()
	g, err := passes.Run(g, o)
	if err != nil {
		return nil, err
	}
	pairs := false
	for _, d := range []ir.DType{ir.C64, ir.C128} {
		if c.target.Support(d) != dtype.Unsupported || !passes.HasType(g, d) {
			continue
		}
		if c.target.Support(d.Real()) == dtype.Unsupported {
			return g, nil // require reports the complex type
		}
		pairs = true
	}
	if !pairs {
		return g, nil
	}
	if g, err = passes.LowerComplex(g); err != nil {
		return nil, err
	}
	return passes.Run(g, o)
}

// addCodes numbers the checks of an entry after those of earlier entries.
func (c *compiler) addCodes(checks []*ir.Node) {
	for _, n := range checks {
		name := n.Label()
		if name == "" {
			name = string(n.Op())
		}
		c.codes = append(c.codes, StatusCode{Code: uint32(len(c.codes) + 1), Node: name, Message: n.Attrs().(*ops.CheckIndexAttrs).Failure()})
	}
}

// statusBuffer returns the buffer of the status words, created on first use.
func (c *compiler) statusBuffer() int {
	if c.statusAt < 0 {
		c.statusAt = len(c.plan.Buffers)
		c.plan.Buffers = append(c.plan.Buffers, Buffer{Kind: StatusBuffer, Bytes: RowBytes})
	}
	return c.statusAt
}

func (c *compiler) status() {
	if c.statusAt >= 0 {
		c.plan.Status = &Status{Buffer: c.statusAt, Codes: c.codes}
	}
}

// requiredLimits returns the minimum limits that the plan needs, and not less than
// what every device has.
func (p *Plan) requiredLimits() loop.Limits {
	l := loop.DefaultLimits()
	for _, b := range p.Buffers {
		l.BufferBytes = max(l.BufferBytes, b.Bytes)
	}
	for _, k := range p.Kernels {
		l.StorageBuffers = max(l.StorageBuffers, len(k.Storage))
		l.SharedBytes = max(l.SharedBytes, k.SharedBytes)
		l.Invocations = max(l.Invocations, k.Workgroup[0]*k.Workgroup[1]*k.Workgroup[2])
		for i, n := range k.Workgroup {
			l.Workgroup[i] = max(l.Workgroup[i], n)
		}
	}
	for _, e := range p.Entries {
		raise(&l, e.Steps)
	}
	return l
}

// raise raises limits to those that the dispatches of steps need.
func raise(l *loop.Limits, steps []Step) {
	for _, s := range steps {
		switch s := s.(type) {
		case *Dispatch:
			l.Groups = max(l.Groups, slices.Max(s.Groups[:]), slices.Max(s.DraftGroups[:]))
			for _, b := range s.Bindings {
				l.BindingBytes = max(l.BindingBytes, b.Bytes)
			}
		case *Repeat:
			raise(l, s.Steps)
			raise(l, s.Odd)
		case *While:
			raise(l, s.Steps)
		}
	}
}
