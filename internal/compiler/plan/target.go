package plan

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched"
	"github.com/rlx-go/rlx/internal/compiler/sched/attention"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// Requires lists what a device must support to run a plan.
type Requires struct {
	// Features are WebGPU feature names, such as "shader-f16" and "subgroups".
	Features []string
	Limits   loop.Limits
	// Subgroup is the range of subgroup sizes that the kernels support;
	// zero where no kernel has subgroup statements.
	Subgroup [2]int
}

// Met reports whether a device with these features, limits and range of
// subgroup sizes can run the plan. A zero range is unknown: it meets no plan
// that requires a range.
func (r Requires) Met(features []string, limits loop.Limits, subgroup [2]int) bool {
	for _, f := range r.Features {
		if !slices.Contains(features, f) {
			return false
		}
	}
	fits := r.Subgroup == [2]int{} || (subgroup[0] >= max(r.Subgroup[0], 1) && subgroup[1] <= r.Subgroup[1])
	return fits && r.Limits.Within(limits)
}

// Target describes a device to the compiler: its capabilities and cost parameters.
type Target struct {
	Name string // "webgpu", "cuda", "wasm"
	loop.Caps
	Features []string // that kernels may use, see [Requires]
	// Branches means that executors read gates and branch on the host. Other executors
	// dispatch both branches, with empty grids for the one not taken.
	Branches bool
	Branch   int  // the minimum work for which a branch runs conditionally: see [fusion.Options]
	Unfused  bool // each node is a kernel of its own: see [fusion.Options]
	// OneArena means that intermediate values share one arena, as a kernel may read one part of a buffer and
	// write another. WebGPU tracks buffers as wholes.
	OneArena bool
	// ScoreBytes is the maximum size of an attention's score matrix in memory; larger ones are
	// computed in tiles (flash attention). 0 means [attention.ScoreBytes].
	ScoreBytes int
	// Schedules are the tuned schedules of groups, see [Choices]. Those that are not
	// valid on the target are ignored.
	Schedules sched.Tuned
	// States are the locations of parameters and states in another plan. The plan then uses that
	// memory: its first buffers are those of the other plan.
	States Layout
}

// keepsComposite reports whether a composite is scheduled as one op rather than inlined.
func (t Target) keepsComposite(n *ir.Node) bool {
	if t.needsLongIndices(n) {
		return false // schedules of composites have 32-bit indices
	}
	if sched.HasKernels(n, t.Caps) {
		return true
	}
	if t.Invocations == 1 {
		return false // the other schedules need several threads with shared memory
	}
	if _, ok := n.Def().Lower.(*ir.TotalLowering); ok {
		return true
	}
	maxScores := t.ScoreBytes
	if maxScores == 0 {
		maxScores = attention.ScoreBytes
	}
	return attention.InBlocks(n, t.Caps, maxScores)
}

// fusionPolicy returns the cost parameters for fusing reductions on the target.
func (t Target) fusionPolicy() fusion.Policy {
	if t.Invocations == 1 {
		return hardware.Serial{Profile: t.Profile()}
	}
	return t.Profile()
}

// needsLongIndices reports whether an operand or result of a node has 64-bit indices,
// which only the schedules of maps, reductions and products support.
func (t Target) needsLongIndices(n *ir.Node) bool {
	return t.Long > 0 && slices.ContainsFunc(slices.Concat(n.InTypes(), n.Types()), func(x ir.Type) bool {
		size, ok := x.Shape.Size().Const()
		return ok && size >= t.Long
	})
}

// DecomposesScan reports whether a scan has more operands and results than a kernel can bind, so
// that it is decomposed into other ops: see [ir.PrefixLowering].
func (t Target) DecomposesScan(n *ir.Node) bool {
	l, ok := n.Def().Lower.(*ir.PrefixLowering)
	if !ok || l.Decompose == nil {
		return false
	}
	arrays := len(n.Inputs()) + n.NumResults()
	if slices.ContainsFunc(n.Subgraphs(), fusion.HasChecks) {
		arrays++ // the status words
	}
	return arrays > t.StorageBuffers
}

// minGatedWork is the number of elements that two branches must compute for a gate to
// be profitable: at about 10¹¹ elements a second that takes as long as the launch of the
// gate, about 10 µs, and the validation of the indirect dispatches after it.
const minGatedWork = 1 << 20

// webGPU is the name of the targets for WebGPU.
const webGPU = "webgpu"

// WebGPU returns the target with the default limits, which every WebGPU device supports.
func WebGPU() Target {
	t := Target{Name: webGPU, Caps: loop.DefaultCaps(), Branch: minGatedWork}
	t.Drafts = true
	return t
}

// WithSubgroups returns the target for WebGPU devices whose subgroups are all of one size,
// a power of two (subgroupMinSize and subgroupMaxSize of the adapter's info), and that have
// the features "subgroups" and "subgroup-size-control". Plans that use subgroups list them
// in their [Requires]; a plan for [WebGPU] as a variant serves other devices.
func (t Target) WithSubgroups(size int) Target {
	t.Subgroups, t.Shuffles, t.Subgroup = true, true, [2]int{size, size}
	return t
}

// WithFragments is WithSubgroups for devices that also multiply 8 × 8 fragments of f32
// by subgroups of 32 threads: the feature "chromium-experimental-subgroup-matrix", and that
// shape among the subgroupMatrixConfigs of the adapter's info. Dawn lists it for Apple's
// GPUs. The feature is experimental, so no default target uses it.
func (t Target) WithFragments() Target {
	t = t.WithSubgroups(32)
	t.Fragments = true
	return t
}

// Printer prints kernels of the loop IR in one dialect. Print is a pure function: equal kernels
// have equal text.
type Printer interface {
	Dialect() dtype.Dialect
	// Print returns the source text of a kernel. The error names what the
	// dialect lacks.
	Print(k *loop.Kernel) (string, error)
}

// featureRelaxed is the name of relaxed SIMD in the features of a plan; engines have no
// name for it.
const featureRelaxed = "relaxed-simd"

// shareOps is [loop.Caps.ShareOps] in a page: the work of some tens of microseconds,
// the time to wake a thread.
const shareOps = 1 << 17

// WebAssembly returns the target of engines with 128-bit SIMD, which all have had
// since 2023. A workgroup has one thread. relaxed says that the engine also has relaxed
// SIMD.
func WebAssembly(relaxed bool) Target {
	const limit = 1 << 30 // of the 4 GiB of a memory
	t := Target{Name: "wasm", Branch: 1, Caps: loop.Caps{Dialect: dtype.WASM, Device: hardware.Named("CPU"), ShareOps: shareOps, Limits: loop.Limits{
		StorageBuffers: 32, BindingBytes: limit, BufferBytes: limit, SharedBytes: 2 << 20,
		Invocations: 1, Workgroup: [3]int{1, 1, 1}, Groups: limit,
	}}}
	if relaxed {
		t.Features = []string{featureRelaxed}
	}
	return t
}

// Linker is a [Printer] of a binary dialect, whose kernels are linked into one module.
type Linker interface {
	Printer
	// Link returns the module of the kernels that Print returned, and the export
	// name of each kernel.
	Link(sources []string) (module []byte, names []string)
}

// WebGPU's names for the features of kernels: f16 arithmetic, subgroup operations,
// a fixed subgroup size, and matrix fragments, an experiment of Chromium.
const (
	featureF16          = "shader-f16"
	featureSubgroups    = "subgroups"
	featureSubgroupSize = "subgroup-size-control"
	featureMatrices     = "chromium-experimental-subgroup-matrix"
)

// require records the device features that a graph needs. The error is of kind
// [ir.ErrUnsupported] and names the first node of an element type that kernels of
// the target can neither compute nor store.
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

// requireSubgroups records the WebGPU features that the subgroups of a kernel need.
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
