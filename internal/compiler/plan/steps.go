package plan

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/routine"
)

// addSteps prints the kernels and lists the dispatches.
func (c *entryCompiler) addSteps() (err error) {
	if c.entry.Steps, err = c.steps(c.launches, 0); err != nil {
		return err
	}
	if n := c.entry.Dispatches(); n > MaxDispatches {
		return ir.Errorf(ir.ErrUnsupported, "a run of the entry makes %d dispatches; a plan makes up to %d", n, MaxDispatches)
	}
	return nil
}

// steps prints the kernels of launches inside depth loops and lists their
// dispatches, those of inner loops nested. c.regions has the regions of tensors, which
// are exchanged for the odd iterations of a loop with swaps.
func (c *entryCompiler) steps(launches []placedLaunch, depth int) ([]Step, error) {
	out := make([]Step, 0, len(launches))
	for len(launches) > 0 {
		l, n := launches[0], 1
		var step Step
		var err error
		if len(l.loops) == depth {
			step, err = c.launch(l)
		} else {
			for n < len(launches) && launches[n].isInside(depth, l.loops[depth]) {
				n++
			}
			step, err = c.repeat(l.loops[depth], launches[:n], depth+1)
		}
		if err != nil {
			return nil, err
		}
		out, launches = append(out, step), launches[n:]
	}
	return out, nil
}

func (c *entryCompiler) repeat(l *enclosingLoop, launches []placedLaunch, depth int) (Step, error) {
	if l.condition != nil {
		steps, err := c.steps(launches, depth)
		return &While{Condition: *c.cell(&guard{l.condition, 0}, l.condition.grids[0][0]), Steps: steps}, err
	}
	r := &Repeat{Count: l.count}
	var err error
	if r.Steps, err = c.steps(launches, depth); err != nil || l.count == 1 || len(l.swaps) == 0 {
		return r, err
	}
	c.swap(l.swaps)
	defer c.swap(l.swaps)
	r.Odd, err = c.steps(launches, depth)
	return r, err
}

func (c *entryCompiler) swap(pairs [][2]*fusion.Tensor) {
	for _, p := range pairs {
		a, b := p[0].Root(), p[1].Root()
		c.regions[a], c.regions[b] = c.regions[b], c.regions[a]
	}
}

// bindable reports whether a kernel can bind these tensors in all iterations of its
// loops. Tensors of 32-bit elements in one arena can share a binding.
func (c *entryCompiler) bindable(args []*fusion.Tensor, loops []*enclosingLoop) bool {
	if len(loops) > 0 {
		if !c.bindable(args, loops[1:]) {
			return false
		}
		c.swap(loops[0].swaps)
		defer c.swap(loops[0].swaps)
		return len(loops[0].swaps) == 0 || c.bindable(args, loops[1:])
	}
	bindings := len(args)
	for _, members := range c.shareable(args) {
		bindings -= len(members) - 1
	}
	return bindings <= c.target.Limits.StorageBuffers
}

// shareable returns, by buffer, the indices into args of the tensors that can share a
// binding: all of that buffer, if their elements have 32 bits.
func (c *entryCompiler) shareable(args []*fusion.Tensor) map[int][]int {
	out := map[int][]int{}
	for i, t := range args {
		if t != nil {
			out[c.regions[t].buffer] = append(out[c.regions[t].buffer], i)
		}
	}
	for buffer, members := range out {
		words := !slices.ContainsFunc(members, func(i int) bool { return loop.DeviceSize(args[i].DType) != WordBytes })
		if !words || c.plan.Buffers[buffer].Bytes/WordBytes > loop.MaxElements {
			delete(out, buffer)
		}
	}
	return out
}

// launch returns the step of a launch.
func (c *entryCompiler) launch(l placedLaunch) (Step, error) {
	if l.Routine != nil {
		return &Call{Routine: c.routine(l.Routine), Bindings: c.bindings(l.Args)}, nil
	}
	return c.dispatch(l)
}

// routine returns the index of a routine, which it adds if it is new.
func (c *entryCompiler) routine(r routine.Routine) int {
	i := slices.Index(c.plan.Routines, r)
	if i < 0 {
		i = len(c.plan.Routines)
		c.plan.Routines = append(c.plan.Routines, r)
	}
	return i
}

// dispatch binds a launch and prints its kernel.
func (c *entryCompiler) dispatch(l placedLaunch) (*Dispatch, error) {
	k, bindings, err := c.bind(l.Kernel, l.Args)
	if err != nil {
		return nil, err
	}
	d := &Dispatch{Groups: l.Kernel.Groups, Bindings: bindings}
	key := kernelKey{kernel: k, access: accessOf(k, bindings, !withArena || !c.target.OneArena)}
	if l.Draft != nil {
		if key.draft, _, err = c.bind(l.Draft, l.Args); err != nil {
			return nil, err
		}
		d.DraftGroups = l.Draft.Groups
	}
	if d.Kernel, err = c.kernel(key); err != nil {
		return nil, err
	}
	if l.guard != nil {
		d.Grid = c.cell(l.guard, d.Groups)
	}
	return d, nil
}

// bind returns a kernel with the windows of its storage arrays, merged into fewer
// bindings if there are too many.
func (c *entryCompiler) bind(k *loop.Kernel, args []*fusion.Tensor) (*loop.Kernel, []Binding, error) {
	bindings := c.bindings(args)
	if len(bindings) <= c.target.Limits.StorageBuffers {
		return k, bindings, nil
	}
	return c.mergeBindings(k, bindings, c.shareable(args))
}

// bindings returns the windows of a launch's storage arrays.
func (c *entryCompiler) bindings(args []*fusion.Tensor) []Binding {
	out := make([]Binding, len(args))
	for i, t := range args {
		if t == nil {
			out[i] = Binding{c.statusBuffer(), 0, StatusBytes}
			continue
		}
		r := c.regions[t]
		out[i] = Binding{r.buffer, r.offset, r.bytes}
	}
	return out
}

// mergeBindings merges the arrays of one buffer into one binding that spans them all,
// beginning with the buffer of most arrays, until the kernel is within the limit.
func (c *entryCompiler) mergeBindings(k *loop.Kernel, bindings []Binding, shareable map[int][]int) (*loop.Kernel, []Binding, error) {
	buffers := slices.SortedStableFunc(maps.Keys(shareable), func(a, b int) int {
		return cmp.Or(len(shareable[b])-len(shareable[a]), a-b)
	})
	left := len(bindings)
	var spans []loop.Span
	gone := map[int]bool{}
	for _, buffer := range buffers {
		members := shareable[buffer]
		if left <= c.target.Limits.StorageBuffers || len(members) < 2 {
			break
		}
		from, to := bindings[members[0]].Offset, 0
		for _, i := range members {
			from = min(from, bindings[i].Offset)
			to = max(to, bindings[i].Offset+bindings[i].Bytes)
		}
		span := loop.Span{Bytes: to - from}
		for _, i := range members {
			span.Windows = append(span.Windows, loop.Window{Array: i, First: loop.Int((bindings[i].Offset - from) / WordBytes)})
			gone[i] = i != members[0]
		}
		bindings[members[0]] = Binding{buffer, from, to - from}
		spans = append(spans, span)
		left -= len(members) - 1
	}
	if left > c.target.Limits.StorageBuffers {
		return nil, nil, ir.Errorf(ir.ErrUnsupported, "kernel %s needs %d bindings, and this target has %d", k.Name, left, c.target.Limits.StorageBuffers)
	}
	k, err := loop.MergeArrays(k, spans)
	var out []Binding
	for i, b := range bindings {
		if !gone[i] {
			out = append(out, b)
		}
	}
	if err != nil {
		return nil, nil, ir.Errorf(ir.ErrUnsupported, "%v", err)
	}
	return k, out, nil
}

// kernelKey identifies a kernel as a dispatch uses it: its draft or nil, and the access
// of each storage array, one byte each.
type kernelKey struct {
	kernel, draft *loop.Kernel
	access        string
}

// accessOf returns the access of the arrays: that of their whole buffer in this
// dispatch, because WebGPU refuses a buffer that is bound both read-only and writable,
// even where the windows are disjoint. Targets with one arena have no such rule: whole is false.
func accessOf(k *loop.Kernel, bindings []Binding, whole bool) string {
	written := map[int]bool{}
	for i, b := range bindings {
		if k.Arrays[i].Access != loop.Read {
			written[b.Buffer] = whole
		}
	}
	out := make([]byte, len(bindings))
	for i, b := range bindings {
		a := k.Arrays[i].Access
		if a == loop.Read && written[b.Buffer] {
			a = loop.ReadWrite
		}
		out[i] = byte(a)
	}
	return string(out)
}

// withAccess returns a kernel with other accesses of its storage arrays.
func withAccess(of *loop.Kernel, access string) *loop.Kernel {
	k := *of
	k.Arrays = slices.Clone(k.Arrays)
	for i := range access {
		k.Arrays[i].Access = loop.Access(access[i])
	}
	return &k
}

// stores returns which storage arrays a kernel as it was scheduled stores to.
func stores(k *loop.Kernel) []bool {
	var out []bool
	for _, a := range k.Arrays {
		if a.Space == loop.Storage {
			out = append(out, a.Access != loop.Read)
		}
	}
	return out
}

// kernel prints a kernel, unless it is known, and returns its index. Kernels with
// equal text and access are shared.
func (c *entryCompiler) kernel(key kernelKey) (int, error) {
	if number, ok := c.kernelByKey[key]; ok {
		return number, nil
	}
	k, source, err := c.print(key.kernel, key.access)
	if err != nil {
		return 0, err
	}
	// Binary code does not contain the access; no source contains the tensor maps.
	p, text := Printed{Kernel: k, Written: stores(key.kernel)}, key.access+source
	if emit.WithMma {
		text += mapsText(k.TensorMaps)
	}
	draft := ""
	if key.draft != nil {
		if p.Draft, draft, err = c.print(key.draft, key.access); err != nil {
			return 0, err
		}
		text += draft
	}
	number, ok := c.kernelByText[text]
	if !ok {
		number = c.addKernel(p, source, draft)
	}
	c.kernelByKey[key], c.kernelByText[text] = number, number
	return number, nil
}

// mapsText returns a text that differs where tensor maps do.
func mapsText(maps []loop.TensorMap) string {
	var text []byte
	for _, b := range maps {
		lists := [][]int{{b.Array, b.First}, b.Dims, b.Strides, b.Size}
		if c := b.Im2col; c != nil {
			lists = append(lists, c.Lower, c.Upper, c.Step)
		}
		for _, n := range slices.Concat(lists...) {
			text = append(strconv.AppendInt(text, int64(n), 10), ' ')
		}
	}
	return string(text)
}

// print returns a kernel with the given access of its arrays, and its text.
func (c *entryCompiler) print(k *loop.Kernel, access string) (*loop.Kernel, string, error) {
	k = loop.Widen(withAccess(k, access), c.target.Caps)
	source, err := c.printer.Print(k)
	return k, source, err
}

func (c *entryCompiler) addKernel(k Printed, source, draft string) int {
	out := Kernel{Name: k.Name, Source: source, Draft: draft, Workgroup: k.Workgroup, Counters: k.Counters}
	storage := make([]int, len(k.Arrays))
	for i, a := range k.Arrays {
		if a.Space == loop.Storage {
			storage[i] = len(out.Storage)
			out.Storage = append(out.Storage, a.Access)
		}
	}
	out.SharedBytes = k.SharedBytes()
	for _, b := range k.TensorMaps {
		d := k.Arrays[b.Array].DType
		b.Array = storage[b.Array]
		out.TensorMaps = append(out.TensorMaps, TensorMap{b, d})
	}
	out.ScalarBytes = 4 * len(k.Scalars)
	c.plan.Kernels = append(c.plan.Kernels, out)
	c.printed = append(c.printed, k)
	c.requireSubgroups(k.Kernel)
	return len(c.plan.Kernels) - 1
}
