package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// Requires is what a device must have to run a plan.
type Requires struct {
	// Features are WebGPU's names, such as "shader-f16" and "subgroups".
	Features []string
	Limits   loop.Limits
	// Subgroup is the range of subgroup sizes that the kernels are right for;
	// zero where none has subgroup statements.
	Subgroup [2]int
}

// Met reports whether a device with these features, limits and range of
// subgroup sizes can run the plan. The range may be zero where it is unknown:
// then no plan with a range of its own fits.
func (r Requires) Met(features []string, limits loop.Limits, subgroup [2]int) bool {
	for _, f := range r.Features {
		if !slices.Contains(features, f) {
			return false
		}
	}
	fits := r.Subgroup == [2]int{} || (subgroup[0] >= max(r.Subgroup[0], 1) && subgroup[1] <= r.Subgroup[1])
	return fits && r.Limits.Within(limits)
}

// Target is what the compiler is told of a device: what it can do, and what pays
// there.
type Target struct {
	Name string // "webgpu", "cuda", "wasm"
	loop.Caps
	Features []string // what kernels may use besides, see [Requires]
	// Branches says that executors decide by a gate what they launch. Others launch all,
	// with empty grids for what is not to run.
	Branches bool
	Branch   int  // how much work it takes for only the branch taken to run: see [fusion.Options]
	Unfused  bool // each node is a kernel of its own: see [fusion.Options]
	// ScoreBytes is the most that the scores of an attention take before they are
	// computed in blocks and not kept, 0 for [sched.ScoreBytes].
	ScoreBytes int
	// Schedules are those that groups were tuned to, see [Choices]. Those that do not
	// fit are not taken.
	Schedules sched.Tuned
}

// keepsComposite reports whether a composite is scheduled as it is.
func (t Target) keepsComposite(n *ir.Node) bool {
	if t.needsLongIndices(n) {
		return false // but by what it is made of
	}
	if sched.HasKernels(n, t.Caps) {
		return true
	}
	if t.Invocations == 1 {
		return false // such kernels are for threads that share memory
	}
	if _, ok := n.Def().Lower.(*ir.TotalLowering); ok {
		return true
	}
	most := t.ScoreBytes
	if most == 0 {
		most = sched.ScoreBytes
	}
	return sched.AttendsInBlocks(n, t.Caps, most)
}

// fusionPolicy tells fusion what the target makes of reductions.
func (t Target) fusionPolicy() fusion.Policy {
	if t.Invocations == 1 {
		return hardware.Serial{Profile: t.Profile()}
	}
	return t.Profile()
}

// needsLongIndices reports whether positions in an operand or result of a node are counted in 64
// bits, which only kernels do that schedules make of maps, reductions and products.
func (t Target) needsLongIndices(n *ir.Node) bool {
	return t.Long > 0 && slices.ContainsFunc(slices.Concat(n.InTypes(), n.Types()), func(x ir.Type) bool {
		size, ok := x.Shape.Size().Const()
		return ok && size >= t.Long
	})
}

// Apart reports whether a running combination has more operands and results than a kernel
// can bind, so that it is made of other ops: see [ir.PrefixLowering].
func (t Target) Apart(n *ir.Node) bool {
	l, ok := n.Def().Lower.(*ir.PrefixLowering)
	if !ok || l.Apart == nil {
		return false
	}
	arrays := len(n.Inputs()) + n.NumResults()
	if slices.ContainsFunc(n.Subgraphs(), fusion.HasChecks) {
		arrays++ // the status words
	}
	return arrays > t.StorageBuffers
}

// minGatedWork is how many elements two branches must compute for a gate to pay: at
// some 10¹¹ elements a second it takes as long as the gate's launch, about 10 µs,
// and the indirect dispatches behind it, which are checked on the device.
const minGatedWork = 1 << 20

// WebGPU returns the target that every WebGPU device meets.
func WebGPU() Target {
	t := Target{Name: "webgpu", Caps: loop.DefaultCaps(), Branch: minGatedWork}
	t.Drafts = true
	return t
}

// WithSubgroups returns the target for WebGPU devices whose subgroups are all of one size,
// a power of two (subgroupMinSize and subgroupMaxSize of the adapter's info), and that have
// the features "subgroups" and "subgroup-size-control". Plans that make use of it say so
// in their [Requires]; one for [WebGPU] as a variant serves the other devices.
func (t Target) WithSubgroups(size int) Target {
	t.Subgroups, t.Shuffles, t.Subgroup = true, true, [2]int{size, size}
	return t
}

// WithFragments is WithSubgroups for devices that besides multiply matrices of 8 × 8 in f32
// by subgroups of 32 threads: the feature "chromium-experimental-subgroup-matrix", and that
// shape among the subgroupMatrixConfigs of the adapter's info. Dawn lists it for Apple's
// GPUs; as the feature is an experiment, nothing asks for it by itself.
func (t Target) WithFragments() Target {
	t = t.WithSubgroups(32)
	t.Fragments = true
	return t
}

// Printer writes kernels of the loop IR in one dialect. Print is a pure
// function: the same kernel gives the same text.
type Printer interface {
	Dialect() dtype.Dialect
	// Print returns the source text of a kernel. The error names what the
	// dialect lacks.
	Print(k *loop.Kernel) (string, error)
}

// featureRelaxed is the name of relaxed SIMD among the features that a plan
// requires; engines do not name it.
const featureRelaxed = "relaxed-simd"

// shareOps is [loop.Caps.ShareOps] in a page, some tens of microseconds: that is
// what waking a thread takes.
const shareOps = 1 << 17

// WebAssembly returns the target of engines with vectors of 128 bits, that is all
// since 2023: one thread, all of a group in one kernel. relaxed says that the
// engine has relaxed SIMD too.
func WebAssembly(relaxed bool) Target {
	const most = 1 << 30 // of the 4 GiB that a memory has
	t := Target{Name: "wasm", Branch: 1, Caps: loop.Caps{Dialect: dtype.WASM, ShareOps: shareOps, Limits: loop.Limits{
		StorageBuffers: 32, BindingBytes: most, BufferBytes: most, SharedBytes: 2 << 20,
		Invocations: 1, Workgroup: [3]int{1, 1, 1}, Groups: most,
	}}}
	if relaxed {
		t.Features = []string{featureRelaxed}
	}
	return t
}

// Linker is a [Printer] whose kernels are parts of one module.
type Linker interface {
	Printer
	// Link makes the module of kernels from what Print returned for each, and
	// names the kernels as the module does.
	Link(sources []string) (module []byte, names []string)
}

// WebGPU's names for what kernels need besides: to compute in f16, to have the threads of
// a subgroup meet, to have a subgroup be of one size and full, and to multiply in
// fragments, which is an experiment of Chromium's.
const (
	featureF16          = "shader-f16"
	featureSubgroups    = "subgroups"
	featureSubgroupSize = "subgroup-size-control"
	featureMatrices     = "chromium-experimental-subgroup-matrix"
)

// require notes what a device must have to run a graph. The error is of kind
// [ir.ErrUnsupported] and names the first node with elements that kernels of
// the target can neither compute with nor store.
func (c *compiler) require(g *ir.Graph) error {
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			if err := c.requireType(t.DType); err != nil {
				return n.Fail(err)
			}
		}
		for _, sub := range n.Subgraphs() {
			if err := c.require(sub); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *compiler) requireType(d ir.DType) error {
	dialect := c.target.Dialect
	switch c.target.Support(d) {
	case dtype.Unsupported:
		return ir.Errorf(ir.ErrUnsupported, "kernels in %s cannot hold %s: convert first", dialect, d)
	case dtype.Storage:
		return nil
	}
	if d == ir.F16 && dialect == dtype.WGSL {
		c.requireFeatures(featureF16)
	}
	return nil
}

// requireSubgroups notes what a kernel needs of a WebGPU device for its subgroups.
func (c *compiler) requireSubgroups(k *loop.Kernel) {
	if c.target.Dialect == dtype.WGSL && k.Subgroup != [2]int{} {
		c.requireFeatures(featureSubgroups, featureSubgroupSize)
		c.plan.Requires.Subgroup = k.Subgroup
		if k.HasFragments() {
			c.requireFeatures(featureMatrices)
		}
	}
}

func (c *compiler) requireFeatures(names ...string) {
	for _, name := range names {
		if features := &c.plan.Requires.Features; !slices.Contains(*features, name) {
			*features = append(*features, name)
		}
	}
}
